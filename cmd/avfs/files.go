package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentvfs/avfs/workspace"
)

type lsCmd struct {
	Long  bool             `short:"l" help:"One line each, with mode, owner, size and time."`
	Paths []workspace.Path `arg:"" optional:"" name:"path" help:"What to list; by default the top directory."`
}

func (c *lsCmd) run(a *app) error {
	list, err := a.entries(workspace.OpList, workspace.PathRequest{Paths: orTop(c.Paths)})
	if err != nil {
		return err
	}
	p := a.paint()
	return a.print(list, func(w io.Writer) {
		if c.Long {
			longList(w, list, p)
			return
		}
		for _, e := range list {
			fmt.Fprintln(w, p.name(e, safe(e.Name)))
		}
	})
}

// entries runs an operation that describes paths, past states included.
func (a *app) entries(op workspace.Op[workspace.PathRequest, []workspace.Entry], req workspace.PathRequest) ([]workspace.Entry, error) {
	req.Past = true
	return call(a, op, func(v string) workspace.PathRequest { req.Vault = v; return req }, workspace.Streams{})
}

func orTop(paths []workspace.Path) []workspace.Path {
	if len(paths) == 0 {
		return []workspace.Path{"/"}
	}
	return paths
}

func longList(w io.Writer, list []workspace.Entry, p paint) {
	rows := make([][]string, 0, len(list))
	for _, e := range list {
		name := p.name(e, safe(e.Name))
		if e.Target != "" {
			name += " -> " + safe(e.Target)
		}
		rows = append(rows, []string{
			typeLetters[e.Type] + modeText(e.Mode), strconv.Itoa(int(e.Nlink)), fmt.Sprintf("%d:%d", e.UID, e.GID),
			strconv.FormatInt(e.Size, 10), clock(e.Mtime), name,
		})
	}
	table(w, rows)
}

var typeLetters = map[string]string{"dir": "d", "symlink": "l", "file": "-", "fifo": "p", "socket": "s", "char": "c", "block": "b"}

// modeText is an octal mode as ls writes it.
func modeText(octal string) string {
	mode, err := strconv.ParseUint(octal, 8, 32)
	if err != nil {
		return octal
	}
	text := []byte("rwxrwxrwx")
	for i := range text {
		if mode&(1<<(8-i)) == 0 {
			text[i] = '-'
		}
	}
	special := func(bit uint64, at int, with, without byte) {
		if mode&bit == 0 {
			return
		}
		if text[at] == 'x' {
			text[at] = with
		} else {
			text[at] = without
		}
	}
	special(0o4000, 2, 's', 'S')
	special(0o2000, 5, 's', 'S')
	special(0o1000, 8, 't', 'T')
	return string(text)
}

type catCmd struct {
	Paths []workspace.Path `arg:"" name:"path" help:"Files to print."`
}

// content is a file's content as JSON: text where it is UTF-8, else base64.
type content struct {
	Path    string  `json:"path"`
	PathB64 string  `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Text    *string `json:"text,omitempty"`
	Base64  *string `json:"base64,omitempty"`
}

func (c *catCmd) run(a *app) error {
	if !a.flags.JSON {
		return a.read(c.Paths, a.stdout)
	}
	docs := make([]content, 0, len(c.Paths))
	for _, p := range c.Paths {
		var b bytes.Buffer
		if err := a.read([]workspace.Path{p}, &b); err != nil {
			return err
		}
		docs = append(docs, newContent(string(p), b.Bytes()))
	}
	if len(docs) == 1 {
		return a.printJSON(docs[0])
	}
	return a.printJSON(docs)
}

// read writes the content of files to w.
func (a *app) read(paths []workspace.Path, w io.Writer) error {
	req := workspace.PathRequest{Paths: paths, Past: true}
	_, err := callOut(a, workspace.OpRead, func(v string) workspace.PathRequest { req.Vault = v; return req }, w)
	return err
}

// callOut is call for an operation whose output goes to w.
func callOut[Req, Res any](a *app, op workspace.Op[Req, Res], bind func(vault string) Req, w io.Writer) (Res, error) {
	out := &held{}
	res, err := call(a, op, bind, workspace.Streams{Out: out})
	if errors.Is(err, errTooLong) {
		op.Long = true
		return call(a, op, bind, workspace.Streams{Out: w})
	}
	_, werr := w.Write(out.Bytes())
	return res, errors.Join(err, werr)
}

// heldBytes is how much input or output of an operation waits in memory, so that
// this process has the store open no longer than it takes, however slow the other
// end of a pipe is. What is longer goes through an owner in the background.
const heldBytes = 16 << 20

var errTooLong = errors.New("too long to be held in memory")

// held is output that waits.
type held struct{ bytes.Buffer }

func (h *held) Write(p []byte) (int, error) {
	if h.Len()+len(p) > heldBytes {
		return 0, errTooLong
	}
	return h.Buffer.Write(p)
}

func newContent(path string, b []byte) content {
	doc := content{}
	doc.Path, doc.PathB64 = exactly(path)
	if utf8.Valid(b) {
		text := string(b)
		doc.Text = &text
	} else {
		text := base64.StdEncoding.EncodeToString(b)
		doc.Base64 = &text
	}
	return doc
}

type writeCmd struct {
	Path    workspace.Path `arg:"" help:"The file to write."`
	Content *string        `arg:"" optional:"" help:"What to write, byte for byte, instead of standard input."`
	Append  bool           `help:"Add to the end instead of replacing the content."`
	Parents bool           `short:"p" help:"Make missing directories."`
	Mode    string         `help:"Permission bits of a new file, in octal." placeholder:"0644"`
}

func (c *writeCmd) run(a *app) error {
	in := a.stdin
	if c.Content != nil {
		in = strings.NewReader(*c.Content)
	} else if isTerminal(in) {
		return usageError("write takes the content from standard input, which is a terminal: echo text | avfs write %s", c.Path)
	}
	mode, err := octal(c.Mode)
	if err != nil {
		return err
	}
	req := workspace.WriteRequest{Path: c.Path, Append: c.Append, Parents: c.Parents, Mode: mode}
	start, err := io.ReadAll(io.LimitReader(in, heldBytes))
	if err != nil {
		return err
	}
	op := workspace.OpWrite
	op.Long = len(start) == heldBytes
	in = io.MultiReader(bytes.NewReader(start), in)
	res, err := call(a, op, func(v string) workspace.WriteRequest { req.Vault = v; return req }, workspace.Streams{In: in})
	if err != nil {
		return err
	}
	return a.print(res, nil)
}

// octal reads permission bits; empty is 0.
func octal(text string) (uint32, error) {
	if text == "" {
		return 0, nil
	}
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o7777 {
		return 0, usageError("a mode is octal, such as 0644, not %q", text)
	}
	return uint32(mode), nil
}

type mkdirCmd struct {
	Paths   []workspace.Path `arg:"" name:"path" help:"Directories to make."`
	Parents bool             `short:"p" help:"Make missing directories above; one that exists is no error."`
	Mode    string           `help:"Permission bits, in octal." placeholder:"0755"`
}

func (c *mkdirCmd) run(a *app) error {
	mode, err := octal(c.Mode)
	if err != nil {
		return err
	}
	return a.change(workspace.OpMkdir, workspace.PathRequest{Paths: c.Paths, Parents: c.Parents, Mode: mode})
}

type rmCmd struct {
	Paths     []workspace.Path `arg:"" name:"path" help:"What to remove."`
	Recursive bool             `short:"r" help:"Remove directories with everything below them."`
	Force     bool             `short:"f" help:"Paths that do not exist are no error."`
}

func (c *rmCmd) run(a *app) error {
	return a.change(workspace.OpRemove, workspace.PathRequest{Paths: c.Paths, Recursive: c.Recursive, Force: c.Force})
}

// change runs an operation that makes or removes paths.
func (a *app) change(op workspace.Op[workspace.PathRequest, workspace.PathsResult], req workspace.PathRequest) error {
	res, err := call(a, op, func(v string) workspace.PathRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, nil)
}

type cpCmd struct {
	Paths     []workspace.Path `arg:"" name:"path" help:"What to copy, and last where to."`
	Recursive bool             `short:"r" help:"Copy directories with everything below them."`
}

func (c *cpCmd) run(a *app) error { return a.transfer(workspace.OpCopy, c.Paths, c.Recursive) }

type mvCmd struct {
	Paths []workspace.Path `arg:"" name:"path" help:"What to move, and last where to."`
}

func (c *mvCmd) run(a *app) error { return a.transfer(workspace.OpMove, c.Paths, false) }

func (a *app) transfer(op workspace.Op[workspace.CopyRequest, workspace.PathsResult], paths []workspace.Path, recursive bool) error {
	if len(paths) < 2 {
		return usageError("name at least one source and a target")
	}
	last := len(paths) - 1
	req := workspace.CopyRequest{From: paths[:last], To: paths[last], Recursive: recursive}
	res, err := call(a, op, func(v string) workspace.CopyRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, nil)
}

type statCmd struct {
	Paths  []workspace.Path `arg:"" name:"path" help:"What to describe."`
	Follow bool             `short:"L" help:"Follow symbolic links."`
}

func (c *statCmd) run(a *app) error {
	list, err := a.entries(workspace.OpStat, workspace.PathRequest{Paths: c.Paths, Follow: c.Follow})
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		for i, e := range list {
			if i > 0 {
				fmt.Fprintln(w)
			}
			describeEntry(w, e)
		}
	})
}

func describeEntry(w io.Writer, e workspace.Entry) {
	rows := [][]string{
		{"path", safe(e.Path)},
		{"type", e.Type},
		{"mode", e.Mode + " " + modeText(e.Mode)},
		{"size", fmt.Sprintf("%d (%d blocks)", e.Size, e.Blocks)},
		{"owner", fmt.Sprintf("%d:%d", e.UID, e.GID)},
		{"links", strconv.Itoa(int(e.Nlink))},
		{"inode", strconv.FormatUint(e.Ino, 10)},
		{"modified", e.Mtime.Local().Format(time.RFC3339Nano)},
		{"changed", e.Ctime.Local().Format(time.RFC3339Nano)},
		{"created", e.Btime.Local().Format(time.RFC3339Nano)},
	}
	if e.Target != "" {
		rows = append(rows, []string{"target", safe(e.Target)})
	}
	table(w, rows)
}

type treeCmd struct {
	Depth int            `short:"L" help:"How far to go down; 0 is no limit." placeholder:"N"`
	Path  workspace.Path `arg:"" optional:"" default:"/" help:"Where to begin."`
}

func (c *treeCmd) run(a *app) error {
	if c.Depth < 0 {
		return usageError("the depth is 0 or more")
	}
	list, err := a.entries(workspace.OpTree, workspace.PathRequest{Paths: []workspace.Path{c.Path}, Depth: c.Depth})
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) { drawTree(w, list, a.paint()) })
}

// drawTree draws entries, which come a directory before what is in it.
func drawTree(w io.Writer, list []workspace.Entry, p paint) {
	// last[i] says whether entry i is the last of its directory.
	last := make([]bool, len(list))
	seen := map[int]bool{} // depths at which a later sibling exists
	for i := len(list) - 1; i >= 0; i-- {
		d := depthOf(list[i])
		last[i] = !seen[d]
		seen[d] = true
		delete(seen, d+1)
	}
	var bars []string
	for i, e := range list {
		name, depth := safe(e.Name), depthOf(e)
		if depth == 0 {
			name = safe(e.Path)
		}
		name = p.name(e, name)
		if e.Target != "" {
			name += " -> " + safe(e.Target)
		}
		if depth == 0 {
			bars = bars[:0]
			fmt.Fprintln(w, name)
			continue
		}
		bars = bars[:depth-1]
		branch, bar := "\u251c\u2500\u2500 ", "\u2502   "
		if last[i] {
			branch, bar = "\u2514\u2500\u2500 ", "    "
		}
		fmt.Fprintln(w, strings.Join(bars, "")+branch+name)
		bars = append(bars, bar)
	}
}

func depthOf(e workspace.Entry) int {
	if e.Depth == nil {
		return 0
	}
	return *e.Depth
}
