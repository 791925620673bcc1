package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/agentvfs/avfs/engine"
)

// Kinds of errors of OpEdit.
const (
	// TextNotFound says that a file does not have the text to replace.
	TextNotFound engine.Kind = "TextNotFound"
	// TextNotUnique says that it has the text more than once; the details tell in
	// which lines.
	TextNotUnique engine.Kind = "TextNotUnique"
)

// EditRequest asks to replace a text in a file.
type EditRequest struct {
	Vault string `json:"vault"`
	Path  Path   `json:"path"`
	Old   []byte `json:"old"`
	New   []byte `json:"new"`
	All   bool   `json:"all,omitempty"` // replace every occurrence; else there must be exactly one
}

// EditResult says what was replaced.
type EditResult struct {
	Path       string `json:"path"`
	PathB64    string `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Replaced   int    `json:"replaced"`           // occurrences
	Line       int    `json:"line"`               // of the first of them, counted from 1
	SizeBefore int64  `json:"size_before"`
	SizeAfter  int64  `json:"size_after"`
}

// OpEdit replaces a text in a file, durably and in one step: what others write at the
// same time comes before or after it, and nothing is lost.
var OpEdit = Op[EditRequest, EditResult]{Name: "fs.edit", Run: func(ctx context.Context, o *Owner, req EditRequest, _ Streams) (EditResult, error) {
	res, clean := EditResult{}, path.Clean("/"+string(req.Path))
	res.Path, res.PathB64 = exactly(clean)
	err := checkEdit(req)
	if err != nil {
		return res, err
	}
	err = o.edit(ctx, req.Vault, []string{"edit", clean}, func(v *engine.Vault) error {
		return v.EditFile(ctx, string(req.Path), func(old []byte) ([]byte, error) { return replaceText(old, req, &res) })
	})
	return res, err
}}

// checkEdit rejects what makes no sense whatever the file has.
func checkEdit(req EditRequest) error {
	invalid := func(text string) error {
		return &engine.Error{Kind: engine.Invalid, Op: "edit", Path: string(req.Path), Err: errors.New(text)}
	}
	switch {
	case len(req.Old) == 0:
		return invalid("the text to replace is empty; a whole file is written with write")
	case bytes.Equal(req.Old, req.New):
		return invalid("the new text is the old one")
	}
	return nil
}

// replaceText makes the new content of a file, and fills the result.
func replaceText(old []byte, req EditRequest, res *EditResult) ([]byte, error) {
	first := bytes.Index(old, req.Old)
	if first < 0 {
		return nil, &engine.Error{Kind: TextNotFound, Err: errors.New("the text to replace is not in the file")}
	}
	res.Replaced = bytes.Count(old, req.Old)
	// Occurrences that overlap are as ambiguous as those that do not.
	if !req.All && bytes.Contains(old[first+1:], req.Old) {
		return nil, notUnique(old, req.Old)
	}
	next := bytes.ReplaceAll(old, req.Old, req.New)
	res.Line = bytes.Count(old[:first], []byte{'\n'}) + 1
	res.SizeBefore, res.SizeAfter = int64(len(old)), int64(len(next))
	return next, nil
}

// toldLines is how many lines an error names.
const toldLines = 10

func notUnique(content, text []byte) error {
	lines, count, line, at := []int{}, 0, 1, 0
	for {
		next := bytes.Index(content[at:], text)
		if next < 0 {
			break
		}
		line += bytes.Count(content[at:at+next], []byte{'\n'})
		if count++; count <= toldLines {
			lines = append(lines, line)
		}
		if content[at+next] == '\n' {
			line++
		}
		at += next + 1
	}
	return &engine.Error{
		Kind: TextNotUnique, Err: fmt.Errorf("the text to replace is in the file %d times", count),
		Details: map[string]any{"count": count, "lines": lines},
	}
}
