// Command gen writes the types of the SDKs from the schemas that avfs prints, so that
// they say what the command line does, and the kinds of errors from the contract. It
// also derives the synchronous half of the Python SDK from the asynchronous one.
//
// Usage: gen [-avfs PROGRAM] [-contract FILE] [-from sdk] [-to DIR]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// The files that are written, below the folder of the SDKs.
const (
	pythonTypes = "python/avfs/_types.py"
	pythonSync  = "python/avfs/_sync.py"
	pythonAsync = "python/avfs/_async.py" // which pythonSync is made of
	pythonKinds = "python/avfs/_kinds.py"
	nodeTypes   = "node/types.d.cts"
	nodeKinds   = "node/lib/kinds.cjs"
)

func main() {
	program := flag.String("avfs", "bin/avfs", "the program whose schemas count")
	contract := flag.String("contract", "docs/contract.md", "the document with the table of kinds of errors")
	from := flag.String("from", "sdk", "the folder of the SDKs")
	to := flag.String("to", "", "where to write, by default to the same folder")
	flag.Parse()
	if *to == "" {
		*to = *from
	}
	if err := generate(*program, *contract, *from, *to); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate(program, contract, from, to string) error {
	all, err := readTypes(program)
	if err != nil {
		return err
	}
	table, err := readKinds(contract)
	if err != nil {
		return err
	}
	async, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(pythonAsync)))
	if err != nil {
		return err
	}
	sync, err := synchronous(string(async))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		pythonTypes: python(all), pythonSync: sync, pythonKinds: kindsInPython(table),
		nodeTypes: typescript(all), nodeKinds: kindsInNode(table),
	} {
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
