package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// kind is a kind of errors with its exit code.
type kind struct {
	name string
	code int
}

var kindName = regexp.MustCompile("`([A-Za-z]+)`")

// readKinds reads the table of kinds in the contract, which a test of the command
// line holds to be what the program does.
func readKinds(path string) ([]kind, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []kind
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		code, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue // the head of the table
		}
		for _, m := range kindName.FindAllStringSubmatch(cells[2], -1) {
			all = append(all, kind{m[1], code})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no table of kinds", path)
	}
	return all, nil
}

func kindsInPython(all []kind) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\"\"\"The exit codes of the kinds of errors.\"\"\"\n\nEXIT_CODES: dict[str, int] = {\n", generated)
	for _, k := range all {
		fmt.Fprintf(&b, "    %q: %d,\n", k.name, k.code)
	}
	b.WriteString("}\n")
	return b.String()
}

func kindsInNode(all []kind) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n'use strict'\n\n/** The exit codes of the kinds of errors. */\nexports.EXIT_CODES = Object.freeze({\n", generated)
	for _, k := range all {
		fmt.Fprintf(&b, "  %s: %d,\n", k.name, k.code)
	}
	b.WriteString("})\n")
	return b.String()
}
