package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/agentvfs/avfs/engine"
)

// ImportOptions tunes Import. The zero value and nil are the defaults.
type ImportOptions struct {
	// Progress is told how far the import is, about ten times a second and
	// once at the end, by one goroutine at a time. With it the source is
	// walked twice, the first time to find the totals.
	Progress func(Progress)
	// Workers is how many files are read at once; 0 suits the machine.
	Workers int
	// OneFileSystem leaves out what is below mount points; they become empty
	// directories.
	OneFileSystem bool
	// Owner is whom everything belongs to in the vault. nil keeps the
	// host's owners when the process is root's and else takes the process's.
	Owner *engine.Owner
	// Exclude leaves out an entry, and what is below it. rel is its
	// slash-separated path relative to src. With Progress it is called from
	// two goroutines, and twice for each entry.
	Exclude func(rel string, isDir bool) bool
	// Update leaves a file of the vault as it is whose size, modification time,
	// mode and owner are those of the host's, without reading either, and
	// likewise a symbolic link with the same target. A file of which the content
	// alone has changed, to the same size and with the time set back, is missed.
	Update bool
}

// Import copies the directory or file src of the host to the path dst of the
// vault.
//
// A directory is merged into dst, which is made with the directories above it
// where it is missing, as cp -a src/. dst/ merges: entries that only dst has stay,
// files are replaced, directories take the attributes of src's, and a directory
// never replaces a file nor a file a directory. A file becomes dst, or an entry of
// dst where that is a directory. Symbolic links on the way to src are followed,
// also src itself, those below it are copied.
//
// The vault's commits take the import in like any other change: it is durable
// after a durable Commit. An import that is cancelled leaves whole entries, but
// directories that it did not end may lack their times.
//
// A directory that shows this vault, such as its mount point, may be imported;
// where the walk meets dst in it, it goes no deeper and reports a Loop.
func Import(ctx context.Context, v *engine.Vault, src, dst string, opts *ImportOptions) (Report, error) {
	const op = "import"
	if opts == nil {
		opts = &ImportOptions{}
	}
	real, err := filepath.EvalSymlinks(src)
	if err != nil {
		return Report{}, failureAt(op, src, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return Report{}, failureAt(op, src, err)
	}
	im := &importer{v: v, opts: *opts, owner: opts.Owner, made: processOwner()}
	if im.owner != nil {
		im.made = *im.owner
	} else if !asRoot() {
		im.owner = &im.made
	}
	im.run = newRun(ctx, op, opts.Workers, opts.Progress)
	if info.IsDir() {
		err = im.tree(real, dst)
	} else {
		im.run.sole = true
		err = im.single(real, dst)
	}
	if err != nil {
		im.run.stop(failureAt(op, src, err))
	}
	return im.run.finish()
}

// failureAt is failure for a path that the caller gave.
func failureAt(op, p string, err error) error {
	var e *engine.Error
	if errors.As(err, &e) && e.Path != "" {
		return e
	}
	return failure(op, p, err)
}

// processOwner is the user and group of this process, 0 where there are none.
func processOwner() engine.Owner {
	return engine.Owner{UID: uint32(max(os.Getuid(), 0)), GID: uint32(max(os.Getgid(), 0))}
}

// importer is one import.
type importer struct {
	run   *run
	v     *engine.Vault
	opts  ImportOptions
	owner *engine.Owner // of everything; nil keeps the host's
	made  engine.Owner  // of directories above dst
	links links[fileID, engine.Ino]
	dev   uint64 // of the top directory
	dst   engine.Ino
	mark  mark
}

// fileID names an inode of the host.
type fileID struct{ dev, ino uint64 }

// importDir is a directory in work. It is open until its entries are done.
type importDir struct {
	im     *importer
	parent *importDir // nil at the top
	host   *hostDir
	st     hostStat
	rel    string
	ino    engine.Ino
	refs   atomic.Int64 // the walk's, those of waiting entries and of directories below
}

func (d *importDir) retain() { d.refs.Add(1) }

// release gives up one reference. The last one sets the directory's attributes:
// every entry moved its times.
func (d *importDir) release() {
	for d != nil && d.refs.Add(-1) == 0 {
		d.im.close(d)
		d = d.parent
	}
}

func (im *importer) close(d *importDir) {
	if err := d.host.close(); err != nil {
		im.run.fail(d.rel, err)
	}
	if im.run.ended() {
		return
	}
	mode, o := d.st.mode, im.ownerOf(d.st)
	if im.opts.Update {
		if a, err := im.v.Stat(im.run.ctx, d.ino); err == nil && im.looksSame(a, d.st) {
			im.run.dirs.Add(1)
			return
		}
	}
	set := engine.SetAttr{Mode: &mode, UID: &o.UID, GID: &o.GID, Atime: &d.st.atime, Mtime: &d.st.mtime}
	if _, err := im.v.SetAttr(im.run.ctx, d.ino, set); err != nil {
		im.refused(d.rel, err)
		return
	}
	im.run.dirs.Add(1)
}

func (im *importer) ownerOf(st hostStat) engine.Owner {
	if im.owner != nil {
		return *im.owner
	}
	return engine.Owner{UID: st.uid, GID: st.gid}
}

// refused handles an error of the vault. One of storage would meet every
// further entry, too.
func (im *importer) refused(rel string, err error) {
	switch engine.KindOf(err) {
	case engine.Internal, engine.Corrupt, engine.VaultNotFound:
		im.run.stop(failure(im.run.op, rel, err))
	default:
		im.run.fail(rel, err)
	}
}

// tree imports a directory.
func (im *importer) tree(src, dst string) error {
	host, st, err := openTop(src)
	if err != nil {
		return err
	}
	a, err := im.v.MkdirAll(im.run.ctx, dst, 0o755, im.made)
	if err != nil {
		return errors.Join(err, host.close())
	}
	im.dev, im.dst = st.dev, a.Ino
	top := &importDir{im: im, host: host, st: st, ino: a.Ino}
	top.retain() // for the walk
	top.retain() // until the mark is gone
	defer im.run.report()()
	stopCount := im.count(src)
	if im.isTarget(host) {
		im.run.stop(errIntoItself)
	}
	im.setXattrs(top, a.Ino)
	im.walk(top)
	im.run.drain()
	stopCount() // it may set the mark, too
	err = im.mark.remove(im)
	top.release()
	return err
}

// mark is a name in dst that is nowhere else, by which the walk recognises dst if
// the source shows this vault. It is made when a file system is met that might.
type mark struct {
	once sync.Once
	name string // "" without need
	err  error
}

func (m *mark) set(im *importer) error {
	m.once.Do(func() {
		name := tempName("import")
		e := &engine.Entry{Name: name, Mode: engine.TypeFIFO | 0o600, Owner: im.made}
		if _, m.err = im.v.Ingest(im.run.ctx, im.dst, e); m.err == nil {
			m.name = name
		}
	})
	return m.err
}

func (m *mark) remove(im *importer) error {
	if m.name == "" {
		return nil
	}
	return im.v.Unlink(context.WithoutCancel(im.run.ctx), im.dst, m.name)
}

var errIntoItself = &engine.Error{Kind: engine.Loop, Err: message("the directory is the import's own target")}

// isTarget reports whether the directory is dst, seen through a mount.
func (im *importer) isTarget(host *hostDir) bool {
	if !host.mayShowVault() {
		return false
	}
	if err := im.mark.set(im); err != nil {
		im.run.stop(failure(im.run.op, "", err))
		return true
	}
	_, err := host.stat(im.mark.name)
	return err == nil
}

// tempName is a name that nothing else has.
func tempName(what string) string { return ".avfs-" + what + "-" + rand.Text() }

// single imports what is no directory.
func (im *importer) single(src, dst string) error {
	host, _, err := openTop(filepath.Dir(src))
	if err != nil {
		return err
	}
	name := filepath.Base(src)
	st, err := host.stat(name)
	if err != nil {
		return errors.Join(err, host.close())
	}
	dir, as, err := im.place(dst, name)
	if err != nil {
		return errors.Join(err, host.close())
	}
	stop := im.run.report()
	defer stop()
	im.run.totalFiles.Store(1)
	im.run.totalBytes.Store(st.size)
	im.entry(&importDir{im: im, host: host, ino: dir}, name, as, name, st)
	return host.close()
}

// place finds the directory and the name for a file that is to become dst.
func (im *importer) place(dst, name string) (dir engine.Ino, as string, err error) {
	a, err := im.v.Resolve(im.run.ctx, dst, true)
	switch {
	case err == nil && a.IsDir():
		return a.Ino, name, nil
	case err != nil && engine.KindOf(err) != engine.NotFound:
		return 0, "", err
	}
	clean := path.Clean("/" + dst)
	a, err = im.v.MkdirAll(im.run.ctx, path.Dir(clean), 0o755, im.made)
	return a.Ino, path.Base(clean), err
}
