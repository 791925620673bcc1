package main

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
	"github.com/agentvfs/avfs/workspace"
)

// stdStream stands for standard input or output where a file is named.
const stdStream = "-"

// importArchive imports an archive, and closes it.
func (a *app) importArchive(from string, dest workspace.Path, in io.ReadCloser) error {
	started := time.Now()
	progress, done := a.progress("importing")
	req := workspace.ImportTarRequest{From: from, Dest: dest}
	input := &notedReader{r: in}
	res, err := call(a, workspace.OpImportTar, func(v string) workspace.ImportTarRequest { req.Vault = v; return req },
		workspace.Streams{In: input, Progress: progress})
	done()
	if rerr := input.failure(); rerr != nil { // it is the reason for whatever else is said
		err = &engine.Error{Kind: engine.Invalid, Op: "import", Path: from, Err: rerr}
	}
	err = errors.Join(err, in.Close())
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { describeTransfer(w, "imported", res.Report, time.Since(started)) })
}

// notedReader remembers why the input could not be read to its end: the operation only
// sees that it ended.
type notedReader struct {
	r   io.Reader
	mu  sync.Mutex // guards err
	err error
}

// Read implements io.Reader.
func (n *notedReader) Read(p []byte) (int, error) {
	k, err := n.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.err = err
	}
	return k, err
}

func (n *notedReader) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// openArchive opens a tar archive, which may be compressed; - is standard input.
func (a *app) openArchive(name string) (io.ReadCloser, error) {
	if name == stdStream {
		if isTerminal(a.stdin) {
			return nil, usageError("the archive comes from standard input, which is a terminal: tar c . | avfs import --tar -")
		}
		r, err := decompressed(a.stdin)
		return io.NopCloser(r), err
	}
	if _, err := a.hostPath(name); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r, err := decompressed(f)
	if err != nil {
		return nil, errors.Join(&engine.Error{Kind: engine.KindOf(err), Op: "import", Path: name, Err: err}, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{r, f}, nil
}

// decompressed undoes the compression that the first bytes tell of.
func decompressed(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	magic, err := b.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var plain io.Reader
	switch {
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		plain, err = gzip.NewReader(b)
	case bytes.HasPrefix(magic, []byte("\x28\xb5\x2f\xfd")):
		plain, err = zstd.NewReader(b)
	case bytes.HasPrefix(magic, []byte("BZh")):
		plain, err = bzip2.NewReader(b), nil
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		plain, err = xz.NewReader(b)
	default:
		return b, nil
	}
	return compressed{plain}, asBroken(err)
}

// compressed reads what a compressed archive holds.
type compressed struct{ io.Reader }

func (c compressed) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != io.EOF && err != nil {
		err = asBroken(err)
	}
	return n, err
}

// asBroken makes what a decompressor says of an archive Invalid. What kept the archive
// from being read at all has a kind of its own.
func asBroken(err error) error {
	if _, ofHost := errors.AsType[*fs.PathError](err); err == nil || ofHost || engine.KindOf(err) != engine.Internal {
		return err
	}
	return &engine.Error{Kind: engine.Invalid, Err: err}
}

// gitArchive is the tree of a revision as an archive. Close waits for git's end.
type gitArchive struct {
	*bufio.Reader
	pipe *io.PipeReader
	err  chan error
}

// openGit begins to read the tree of a repository, named as REPO or REPO@REVISION.
func openGit(ctx context.Context, name string) (*gitArchive, error) {
	dir, rev := splitRevision(name)
	out, in := io.Pipe()
	g := &gitArchive{Reader: bufio.NewReaderSize(out, 64<<10), pipe: out, err: make(chan error, 1)}
	go func() { // ends with the tree, or with Close
		err := transfer.GitTar(ctx, dir, rev, in)
		g.err <- err
		_ = in.CloseWithError(err) // never fails
	}()
	if _, err := g.Peek(1); err != nil { // before anything is changed
		return nil, errors.Join(<-g.err, out.Close())
	}
	return g, nil
}

// Close implements io.Closer.
func (g *gitArchive) Close() error {
	err := g.pipe.CloseWithError(errArchiveClosed)
	<-g.err // reading has given it already, if anybody read on
	return err
}

var errArchiveClosed = errors.New("nobody reads on")

// splitRevision takes REPO@REVISION apart, where REPO is a directory; either may have
// an @ of its own.
func splitRevision(name string) (dir, rev string) {
	for i := range name {
		if name[i] != '@' || i == 0 {
			continue
		}
		if info, err := os.Stat(name[:i]); err == nil && info.IsDir() {
			if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
				return name[:i], name[i+1:]
			}
		}
	}
	return name, ""
}

// exportArchive writes a tree to a tar archive; - is standard output. Another file
// appears when it is whole.
func (a *app) exportArchive(req workspace.ExportRequest, name, compress string) error {
	compress, err := compression(name, compress)
	if err != nil {
		return err
	}
	if name == stdStream {
		if a.flags.JSON || isTerminal(a.stdout) {
			return usageError("an archive goes to standard output, which must be neither a terminal nor --json's")
		}
		rep, started := transfer.Report{}, time.Now()
		if rep, err = a.writeArchive(req, a.stdout, compress); err != nil {
			return err
		}
		if !a.flags.Quiet {
			describeTransfer(a.stderr, "exported", rep, time.Since(started))
		}
		return nil
	}
	started, rep := time.Now(), transfer.Report{}
	err = a.writeHost(name, req.Overwrite, func(w io.Writer) (err error) {
		rep, err = a.writeArchive(req, w, compress)
		return err
	})
	if err != nil {
		return err
	}
	return a.print(rep, func(w io.Writer) { describeTransfer(w, "exported", rep, time.Since(started)) })
}

// writeHost writes a file of the host, which appears when it is whole.
func (a *app) writeHost(name string, overwrite bool, write func(w io.Writer) error) error {
	if _, err := a.hostPath(name); err != nil {
		return err
	}
	if _, err := os.Lstat(name); err == nil && !overwrite {
		return &engine.Error{Kind: engine.Exists, Op: "export", Path: name, Err: errors.New("already exists (--overwrite replaces it)")}
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".avfs-export-*")
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// The compressions of archives.
const (
	compressNone = "none"
	compressGzip = "gzip"
	compressZstd = "zstd"
)

// compression is how an archive of that name is compressed, unless it is said.
func compression(name, said string) (string, error) {
	switch said {
	case compressNone, compressGzip, compressZstd:
		return said, nil
	case "":
	default:
		return "", usageError("an archive is compressed with %s, %s or %s, not %q", compressNone, compressGzip, compressZstd, said)
	}
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".gz", ".tgz":
		return compressGzip, nil
	case ".zst", ".tzst", ".zstd":
		return compressZstd, nil
	case ".xz", ".txz", ".bz2", ".tbz2":
		return "", usageError("avfs does not write %s; another program can: avfs export --tar PATH - | xz > FILE.tar.xz", ext)
	}
	return compressNone, nil
}

// writeArchive writes the archive to w.
func (a *app) writeArchive(req workspace.ExportRequest, w io.Writer, compress string) (transfer.Report, error) {
	end := func() error { return nil }
	switch compress {
	case compressGzip:
		z := gzip.NewWriter(w)
		w, end = z, z.Close
	case compressZstd:
		z, err := zstd.NewWriter(w)
		if err != nil {
			return transfer.Report{}, err
		}
		w, end = z, z.Close
	}
	progress, done := a.progress("exporting")
	rep, err := call(a, workspace.OpExportTar, func(v string) workspace.ExportRequest { req.Vault = v; return req },
		workspace.Streams{Out: w, Progress: progress})
	done()
	return rep, errors.Join(err, end())
}

// ignoredBelow lists what Git ignores in a directory, as paths of a request.
func ignoredBelow(ctx context.Context, dir string) ([]workspace.Path, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, usageError("--gitignore is for a directory")
	}
	ignored, err := transfer.GitIgnored(ctx, dir)
	list := make([]workspace.Path, len(ignored))
	for i, p := range ignored {
		list[i] = workspace.Path(p)
	}
	return list, err
}
