package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

type quotaCmds struct {
	Show quotaShowCmd `cmd:"" default:"1" help:"Show what a vault uses and may use."`
	Set  quotaSetCmd  `cmd:"" help:"Set limits. What is there stays; it can shrink and not grow."`
}

type quotaShowCmd struct{}

func (quotaShowCmd) run(a *app) error {
	doc, err := call(a, workspace.OpQuota, func(v string) workspace.InVault { return workspace.InVault{Vault: v} }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.printQuota(doc)
}

type quotaSetCmd struct {
	Bytes     string `help:"Most content of all files, as 500000, 64K, 10M, 2G or 1T. 0 or none removes a limit." placeholder:"SIZE"`
	Files     string `help:"Most files, directories and links." placeholder:"N"`
	FileBytes string `help:"Largest size of one file." placeholder:"SIZE"`
}

func (c *quotaSetCmd) run(a *app) error {
	var change engine.QuotaChange
	for _, f := range []struct {
		flag, value string
		into        **int64
		suffixes    string
	}{
		{"--bytes", c.Bytes, &change.MaxBytes, sizeSuffixes},
		{"--files", c.Files, &change.MaxFiles, ""},
		{"--file-bytes", c.FileBytes, &change.MaxFileBytes, sizeSuffixes},
	} {
		if f.value == "" {
			continue
		}
		n, err := parseLimit(f.value, f.suffixes)
		if err != nil {
			return usageError("%s: %w", f.flag, err)
		}
		*f.into = &n
	}
	if change == (engine.QuotaChange{}) {
		return usageError("nothing to set: give --bytes, --files or --file-bytes")
	}
	doc, err := call(a, workspace.OpQuotaSet, func(v string) workspace.QuotaRequest {
		return workspace.QuotaRequest{Vault: v, Change: change}
	}, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.printQuota(doc)
}

// sizeSuffixes are the units of sizes, each 1024 times the one before.
const sizeSuffixes = "KMGT"

// parseLimit reads a whole number, with one of the suffixes, which may be followed
// by B or iB. "none" is 0.
func parseLimit(s, suffixes string) (int64, error) {
	if strings.EqualFold(s, "none") {
		return 0, nil
	}
	number, unit := strings.ToUpper(s), int64(1)
	if suffixes != "" {
		number = strings.TrimSuffix(number, "B")
		if i := len(number) - 2; i > 0 && strings.HasSuffix(number, "I") && strings.IndexByte(suffixes, number[i]) >= 0 {
			number = number[:i+1]
		}
		if i := len(number) - 1; i > 0 {
			if n := strings.IndexByte(suffixes, number[i]); n >= 0 {
				number, unit = number[:i], 1<<(10*(n+1))
			}
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no limit", s)
	}
	return int64(n) * unit, nil
}

func (a *app) printQuota(doc workspace.QuotaDoc) error {
	return a.print(doc, func(w io.Writer) {
		limit := func(n *int64) string {
			if n == nil {
				return "none"
			}
			return size(*n)
		}
		files := "none"
		if doc.Limits.MaxFiles != nil {
			files = strconv.FormatInt(*doc.Limits.MaxFiles, 10)
		}
		table(w, [][]string{
			{"", "USED", "LIMIT"},
			{"size", size(doc.Bytes), limit(doc.Limits.MaxBytes)},
			{"files", strconv.FormatInt(doc.Files, 10), files},
			{"one file", "", limit(doc.Limits.MaxFileBytes)},
		})
		if doc.UnlinkedFiles > 0 {
			fmt.Fprintf(w, "%d removed files are still open and hold %s\n", doc.UnlinkedFiles, size(doc.UnlinkedBytes))
		}
	})
}
