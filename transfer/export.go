package transfer

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"

	"github.com/agentvfs/avfs/engine"
)

// Reader is what Export reads from: an *engine.Vault or an *engine.Snapshot.
type Reader interface {
	Resolve(ctx context.Context, p string, follow bool) (engine.Attr, error)
	Stat(ctx context.Context, ino engine.Ino) (engine.Attr, error)
	ReadDir(ctx context.Context, dir engine.Ino, after string, fn func(engine.DirEntry) error) error
	Readlink(ctx context.Context, ino engine.Ino) (string, error)
	ListXattr(ctx context.Context, ino engine.Ino) ([]string, error)
	GetXattr(ctx context.Context, ino engine.Ino, name string) ([]byte, error)
}

// content is an open file of a Reader.
type content interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Seek(ctx context.Context, off int64, hole bool) (int64, error)
	Close() error
}

// opener returns how r opens files, which a Vault and a Snapshot do differently.
func opener(r Reader) (func(context.Context, engine.Ino) (content, error), error) {
	switch r := r.(type) {
	case *engine.Vault:
		return func(ctx context.Context, ino engine.Ino) (content, error) { return r.Open(ctx, ino, engine.OpenRead) }, nil
	case *engine.Snapshot:
		return func(ctx context.Context, ino engine.Ino) (content, error) { return r.Open(ctx, ino) }, nil
	}
	return nil, &engine.Error{Kind: engine.Unsupported, Op: "export", Err: message("neither a vault nor a snapshot")}
}

// ExportOptions tunes Export. The zero value and nil are the defaults.
type ExportOptions struct {
	// Progress is told how far the export is, about ten times a second and
	// once at the end, by one goroutine at a time.
	Progress func(Progress)
	// Workers is how many files are written at once; 0 suits the machine.
	Workers int
	// Overwrite allows a destination that holds something: directories are
	// merged and files replaced, as Import does it the other way round.
	Overwrite bool
	// Only leaves out every entry of a directory for which it is false, and what is
	// below that. It gets the path below src; nil leaves out nothing. Several
	// goroutines call it at once.
	Only func(rel string) bool
	// Owner is whom everything on the host belongs to. nil keeps the vault's
	// owners when the process is root's and else takes the process's.
	Owner *engine.Owner
}

// Export copies the directory or file src of r to dst on the host.
//
// A directory becomes dst, which must be missing or empty unless
// ExportOptions.Overwrite is set, and takes src's attributes. A file becomes dst,
// or an entry of dst where that is a directory. Missing directories above dst are
// made. Symbolic links on the way to src are followed inside the vault, and on the
// way to dst on the host; below dst nothing is ever written through a link.
//
// Set-id bits are kept where the owner is kept, too. An Export of a live vault
// sees changes that happen meanwhile; give it a Snapshot for one moment. One that
// is cancelled leaves whole files, but directories that it did not end are
// accessible to the process's user only.
func Export(ctx context.Context, r Reader, src, dst string, opts *ExportOptions) (Report, error) {
	const op = "export"
	if opts == nil {
		opts = &ExportOptions{}
	}
	open, err := opener(r)
	if err != nil {
		return Report{}, err
	}
	top, err := r.Resolve(ctx, src, true)
	if err != nil {
		return Report{}, failure(op, src, err)
	}
	ex := &exporter{r: r, open: open, overwrite: opts.Overwrite, only: opts.Only, owner: opts.Owner, keep: opts.Owner == nil && asRoot()}
	ex.run = newRun(ctx, op, opts.Workers, opts.Progress)
	if top.IsDir() {
		err = ex.tree(top, dst)
	} else {
		ex.run.sole = true
		err = ex.single(top, src, dst)
	}
	if err != nil {
		ex.run.stop(failureAt(op, dst, err))
	}
	return ex.run.finish()
}

// exporter is one export.
type exporter struct {
	run       *run
	r         Reader
	open      func(context.Context, engine.Ino) (content, error)
	overwrite bool
	only      func(rel string) bool
	owner     *engine.Owner // of everything, where it is not nil
	keep      bool          // keep the vault's owners
	top       *hostDir
	links     links[engine.Ino, hostName]
}

// hostName is a name that the export made.
type hostName struct {
	dir, name string // dir is relative to the destination
	id        fileID
}

// exportDir is a directory in work. It is open until its entries are done.
type exportDir struct {
	ex     *exporter
	parent *exportDir // nil at the top
	host   *hostDir
	rel    string
	a      engine.Attr
	refs   atomic.Int64 // the walk's, those of waiting entries and of directories below
}

func (d *exportDir) retain() { d.refs.Add(1) }

// release gives up one reference. The last one sets the directory's attributes:
// every entry moved its times, and its mode may forbid entries.
func (d *exportDir) release() {
	for d != nil && d.refs.Add(-1) == 0 {
		d.ex.close(d)
		d = d.parent
	}
}

func (ex *exporter) close(d *exportDir) {
	if !ex.run.ended() {
		ex.describe(d.host.file(), d.a, d.rel)
		if err := d.host.setTimes(".", d.a.Atime, d.a.Mtime); err != nil {
			ex.run.fail(d.rel, err)
		}
		ex.run.dirs.Add(1)
	}
	if err := d.host.close(); err != nil {
		ex.run.fail(d.rel, err)
	}
}

// ownerOf is whom a file on the host is to belong to; nil leaves that to the system.
func (ex *exporter) ownerOf(a engine.Attr) *engine.Owner {
	if ex.keep {
		return &engine.Owner{UID: a.UID, GID: a.GID}
	}
	return ex.owner
}

// modeOf is the mode on the host: a set-id bit must not grant the rights of
// somebody else than it did in the vault.
func (ex *exporter) modeOf(a engine.Attr) uint32 {
	o := processOwner()
	if p := ex.ownerOf(a); p != nil {
		o = *p
	}
	mode := a.Mode
	if !a.IsDir() && (o.UID != a.UID || o.GID != a.GID) {
		mode &^= engine.ModeSetUID | engine.ModeSetGID
	}
	return mode
}

// describe sets extended attributes, owner and mode. It records what fails.
func (ex *exporter) describe(f *hostFile, a engine.Attr, rel string) {
	names, err := ex.r.ListXattr(ex.run.ctx, a.Ino)
	if err != nil {
		ex.run.fail(rel, err)
	}
	for _, name := range names {
		if !keptXattr(name) {
			ex.run.dropXattr(name)
			continue
		}
		value, err := ex.r.GetXattr(ex.run.ctx, a.Ino, name)
		if err == nil {
			err = f.setXattr(name, value)
		}
		switch {
		case err == nil:
		case kindOf(err) == engine.Unsupported: // by the whole file system
			ex.run.dropXattr(name)
		default:
			ex.run.fail(rel, err)
		}
	}
	if err := f.setOwnerAndMode(ex.ownerOf(a), ex.modeOf(a)); err != nil {
		ex.run.fail(rel, err)
	}
}

// tree exports a directory.
func (ex *exporter) tree(a engine.Attr, dst string) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(dst)), 0o777); err != nil {
		return err
	}
	if err := os.Mkdir(dst, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	host, _, err := openTop(dst)
	if err != nil {
		return err
	}
	if !ex.overwrite {
		names, err := host.names()
		if err == nil && len(names) > 0 {
			err = &engine.Error{Kind: engine.NotEmpty}
		}
		if err != nil {
			return errors.Join(err, host.close())
		}
	}
	ex.top = host
	top := &exportDir{ex: ex, host: host, a: a}
	top.retain() // for the walk
	top.retain() // until no more links are made from it
	defer ex.run.report()()
	defer ex.count(a.Ino)()
	ex.walk(top)
	ex.run.drain()
	top.release()
	return nil
}

// single exports what is no directory.
func (ex *exporter) single(a engine.Attr, src, dst string) error {
	name := path.Base(path.Clean("/" + src))
	if info, err := os.Stat(dst); err == nil && info.IsDir() {
		dst = filepath.Join(dst, name)
	}
	dir := filepath.Dir(filepath.Clean(dst))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	host, _, err := openTop(dir)
	if err != nil {
		return err
	}
	ex.top = host
	stop := ex.run.report()
	defer stop()
	ex.run.totalFiles.Store(1)
	ex.run.totalBytes.Store(a.Size)
	ex.entry(&exportDir{ex: ex, host: host}, filepath.Base(dst), name, engine.DirEntry{Ino: a.Ino})
	return host.close()
}
