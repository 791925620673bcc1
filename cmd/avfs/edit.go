package main

import (
	"fmt"
	"io"

	"github.com/agentvfs/avfs/workspace"
)

type editCmd struct {
	Path workspace.Path `arg:"" help:"The file to edit."`
	Old  string         `required:"" help:"The text to replace, exactly as it is in the file, where it must be once." placeholder:"TEXT"`
	New  string         `required:"" help:"What to put there; may be empty." placeholder:"TEXT"`
	All  bool           `help:"Replace the text wherever it is."`
}

func (c *editCmd) run(a *app) error {
	req := workspace.EditRequest{Path: c.Path, Old: []byte(c.Old), New: []byte(c.New), All: c.All}
	res, err := call(a, workspace.OpEdit, func(v string) workspace.EditRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d replaced, the first in line %d\n", safe(res.Path), res.Replaced, res.Line)
	})
}
