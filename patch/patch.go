package patch

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/agentvfs/avfs/engine"
)

// MaxText is the size in bytes up to which a file is compared line by line.
const MaxText = 16 << 20

// Tree is one of the two states; an *engine.Snapshot is one.
type Tree interface {
	Resolve(ctx context.Context, p string, follow bool) (engine.Attr, error)
	ReadDir(ctx context.Context, dir engine.Ino, after string, fn func(engine.DirEntry) error) error
	Readlink(ctx context.Context, ino engine.Ino) (string, error)
	ListXattr(ctx context.Context, ino engine.Ino) ([]string, error)
	GetXattr(ctx context.Context, ino engine.Ino, name string) ([]byte, error)
	Open(ctx context.Context, ino engine.Ino) (*engine.SnapshotFile, error)
}

// Options tunes Write. The zero value and nil are the defaults.
type Options struct {
	// Binary writes binary files as git's binary patches, whole and in both
	// directions. Without it they are only named.
	Binary bool
	// Context is how many equal lines surround what differs: 0 is 3, below 0 none.
	Context int
}

func (o *Options) context() int {
	switch {
	case o.Context == 0:
		return 3
	case o.Context < 0:
		return 0
	}
	return o.Context
}

// Report says what was written and what could not be.
type Report struct {
	Files   []FileStat
	LeftOut []LeftOut // in the order of paths
}

// FileStat is one section of the text.
type FileStat struct {
	Path    string `json:"path"`
	PathB64 string `json:"path_b64,omitempty"` // the exact bytes where Path is not exact
	Added   int    `json:"added"`              // lines; 0 for binary files
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"` // or larger than MaxText
	Coarse  bool   `json:"coarse,omitempty"` // one replaced block stands for too many lines
}

// LeftOut is a difference that the format cannot express.
type LeftOut struct {
	Path    string `json:"path"`
	PathB64 string `json:"path_b64,omitempty"` // the exact bytes where Path is not exact
	What    string `json:"what"`
	exact   string
}

// Write writes how b differs from a. changes is all of what engine.Store.Diff lists
// from a to b, or the part of it at some paths.
func Write(ctx context.Context, w io.Writer, a, b Tree, changes []engine.FileChange, opts *Options) (Report, error) {
	if opts == nil {
		opts = &Options{}
	}
	p := &planner{ctx: ctx, a: a, b: b, changes: changes}
	ops, err := p.plan()
	if err != nil {
		return Report{}, err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	pr := &printer{ctx: ctx, w: out, a: a, b: b, opts: opts}
	rep := Report{Files: []FileStat{}, LeftOut: p.leftOut()}
	for _, op := range ops {
		stat, err := pr.section(op)
		if err != nil {
			return rep, err
		}
		if stat != nil {
			rep.Files = append(rep.Files, *stat)
		}
	}
	return rep, out.Flush()
}

// printer writes sections.
type printer struct {
	ctx  context.Context
	w    *bufio.Writer
	a, b Tree
	opts *Options
}

// section writes what became of one file; nil is nothing that the format knows.
func (p *printer) section(op fileOp) (*FileStat, error) {
	before, err := p.content(p.a, op.old)
	if err != nil {
		return nil, err
	}
	after, err := p.content(p.b, op.new)
	if err != nil {
		return nil, err
	}
	same := before != nil && after != nil && before.id == after.id
	if same && op.old.path == op.new.path && op.old.mode == op.new.mode {
		return nil, nil
	}
	stat := &FileStat{}
	stat.Path, stat.PathB64 = printable(op.name())
	if err := p.header(op, before, after, same); err != nil || same {
		return stat, err
	}
	if before.large() || after.large() || before.binary() || after.binary() {
		stat.Binary = true
		return stat, p.binary(op, before, after)
	}
	d := compareLines(before.text(), after.text())
	stat.Coarse = d.coarse
	stat.Added, stat.Deleted = d.count()
	if len(d.edits) == 0 {
		return stat, nil // an empty file came or went
	}
	fmt.Fprintf(p.w, "--- %s\n+++ %s\n", fileLabel("a/", op.old), fileLabel("b/", op.new))
	return stat, d.write(p.w, p.opts.context())
}

// header writes the lines above the content.
func (p *printer) header(op fileOp, before, after *blob, same bool) error {
	oldName, newName := op.name(), op.name()
	if op.old != nil {
		oldName = op.old.path
	}
	fmt.Fprintf(p.w, "diff --git %s %s\n", headName("a/"+oldName), headName("b/"+newName))
	oldID, newID, mode := noBlob, noBlob, ""
	switch {
	case op.old == nil:
		fmt.Fprintf(p.w, "new file mode %s\n", op.new.mode)
		newID = after.id
	case op.new == nil:
		fmt.Fprintf(p.w, "deleted file mode %s\n", op.old.mode)
		oldID = before.id
	default:
		oldID, newID = before.id, after.id
		if mode = " " + op.old.mode; op.old.mode != op.new.mode {
			mode = ""
			fmt.Fprintf(p.w, "old mode %s\nnew mode %s\n", op.old.mode, op.new.mode)
		}
		if op.old.path != op.new.path {
			if !before.large() && !after.large() {
				fmt.Fprintf(p.w, "similarity index %d%%\n", similarity(before, after))
			}
			fmt.Fprintf(p.w, "rename from %s\nrename to %s\n", quoted(op.old.path), quoted(op.new.path))
		}
	}
	if same {
		return nil
	}
	_, err := fmt.Fprintf(p.w, "index %s..%s%s\n", oldID, newID, mode)
	return err
}

// headName is a name in the first line of a section. Git cannot tell where a name ends
// that has a space before a slash, and reads it between quotes only.
func headName(name string) string {
	if q := quoted(name); q[0] == '"' || !strings.Contains(name, " /") {
		return q
	}
	return `"` + name + `"`
}

// fileLabel is a name in the lines above the hunks.
func fileLabel(prefix string, e *entry) string {
	if e == nil {
		return "/dev/null"
	}
	name := quoted(prefix + e.path)
	if strings.ContainsRune(name, ' ') && name[0] != '"' {
		name += "\t" // else the name would end at the space for some readers
	}
	return name
}

// printable is p as UTF-8 and, where that loses bytes, as base64 too.
func printable(p string) (text, b64 string) {
	if utf8.ValidString(p) {
		return p, ""
	}
	return strings.ToValidUTF8(p, "\uFFFD"), base64.StdEncoding.EncodeToString([]byte(p))
}
