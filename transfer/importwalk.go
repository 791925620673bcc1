package transfer

import (
	"errors"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// found is an entry that the walk saw.
type found struct {
	name, rel string
	st        hostStat
}

// walk hands the entries of d to the workers and goes down into the directories.
// It gives up the caller's reference to d.
func (im *importer) walk(d *importDir) {
	defer d.release()
	var subs []found
	im.list(d.host, d.rel, im.run.fail, func(e found) {
		if e.st.mode&engine.TypeMask == engine.TypeDir {
			subs = append(subs, e)
			return
		}
		d.retain()
		im.run.do(func() {
			defer d.release()
			im.entry(d, e.name, e.name, e.rel, e.st)
		})
	})
	for _, e := range subs {
		if im.run.ended() {
			return
		}
		im.descend(d, e)
	}
}

// list calls fn for the entries of a directory that are to be imported.
func (im *importer) list(host *hostDir, rel string, fail func(string, error), fn func(found)) {
	names, err := host.names()
	if err != nil {
		fail(rel, err)
	}
	for _, name := range names {
		if im.run.ended() {
			return
		}
		e := found{name: name, rel: join(rel, name)}
		if e.st, err = host.stat(name); err != nil {
			fail(e.rel, err)
			continue
		}
		if im.opts.Exclude != nil && im.opts.Exclude(e.rel, e.st.mode&engine.TypeMask == engine.TypeDir) {
			continue
		}
		fn(e)
	}
}

// descend imports a directory in d.
func (im *importer) descend(d *importDir, e found) {
	host, st, err := d.host.openDir(e.name)
	if err != nil {
		im.run.fail(e.rel, err)
		return
	}
	if im.isTarget(host) {
		im.run.fail(e.rel, errors.Join(errIntoItself, host.close()))
		return
	}
	sub := &importDir{im: im, parent: d, host: host, st: st, rel: e.rel}
	if sub.ino, err = im.makeDir(d, sub, e.name); err != nil {
		im.refused(e.rel, errors.Join(err, host.close()))
		return
	}
	d.retain()
	sub.retain()
	if im.opts.OneFileSystem && st.dev != im.dev {
		sub.release()
		return
	}
	im.walk(sub)
}

// makeDir makes the directory for sub in the vault, or takes the one that is there.
func (im *importer) makeDir(d, sub *importDir, name string) (engine.Ino, error) {
	a, err := im.v.Ingest(im.run.ctx, d.ino, &engine.Entry{
		Name: name, Mode: sub.st.mode, Owner: im.ownerOf(sub.st), Atime: sub.st.atime, Mtime: sub.st.mtime,
		Xattrs: im.xattrs(sub.host.file(), sub.rel),
	})
	if engine.KindOf(err) != engine.Exists {
		return a.Ino, err
	}
	if a, err = im.v.Lookup(im.run.ctx, d.ino, name); err != nil {
		return 0, err
	}
	if !a.IsDir() {
		return 0, &engine.Error{Kind: engine.NotDirectory, Err: message("a file is in the way of the directory")}
	}
	im.setXattrs(sub, a.Ino)
	return a.Ino, nil
}

// setXattrs gives an existing directory the extended attributes of d.
func (im *importer) setXattrs(d *importDir, ino engine.Ino) {
	for _, x := range im.xattrs(d.host.file(), d.rel) {
		if err := im.v.SetXattr(im.run.ctx, ino, x.Name, x.Value, 0); err != nil {
			im.refused(d.rel, err)
		}
	}
}

// xattrs reads the extended attributes that are kept.
func (im *importer) xattrs(f *hostFile, rel string) []engine.Xattr {
	names, err := f.xattrs()
	if err != nil {
		im.run.fail(rel, err)
		return nil
	}
	var kept []engine.Xattr
	for _, name := range names {
		if !keptXattr(name) {
			im.run.dropXattr(name)
			continue
		}
		value, err := f.xattr(name)
		if err != nil {
			im.run.fail(rel, err)
			continue
		}
		kept = append(kept, engine.Xattr{Name: name, Value: value})
	}
	return kept
}

// keptXattr reports whether an extended attribute is content of the tree, and not
// of the system it lies on.
func keptXattr(name string) bool { return strings.HasPrefix(name, "user.") }

// count walks src on a goroutine of its own to find the totals. The returned
// function ends it.
func (im *importer) count(src string) (stop func()) {
	if im.run.progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	c := &counter{im: im, quit: make(chan struct{}), seen: map[fileID]bool{}}
	go func() {
		defer close(done)
		host, _, err := openTop(src)
		if err != nil {
			return // the import says so
		}
		c.tree(host, "")
		if !c.ended() {
			im.run.totalFiles.Store(c.files)
			im.run.totalBytes.Store(c.bytes)
		}
	}()
	return func() {
		close(c.quit)
		<-done
	}
}

// counter adds up a tree. It ignores errors: the import meets and reports them.
type counter struct {
	im           *importer
	quit         chan struct{}
	seen         map[fileID]bool
	files, bytes int64
}

func (c *counter) ended() bool {
	select {
	case <-c.quit:
		return true
	default:
		return c.im.run.ended()
	}
}

// tree counts what is in host and closes it.
func (c *counter) tree(host *hostDir, rel string) {
	defer host.close()
	c.im.list(host, rel, func(string, error) {}, func(e found) {
		if c.ended() {
			return
		}
		if e.st.mode&engine.TypeMask == engine.TypeDir {
			c.below(host, e)
			return
		}
		c.files++
		id := fileID{e.st.dev, e.st.ino}
		if e.st.mode&engine.TypeMask != engine.TypeRegular || e.st.nlink > 1 && c.seen[id] {
			return
		}
		if e.st.nlink > 1 {
			c.seen[id] = true
		}
		c.bytes += e.st.size
	})
}

func (c *counter) below(host *hostDir, e found) {
	sub, st, err := host.openDir(e.name)
	if err != nil {
		return
	}
	if c.im.isTarget(sub) || c.im.opts.OneFileSystem && st.dev != c.im.dev {
		_ = sub.close() // nothing was written through it
		return
	}
	c.tree(sub, e.rel)
}
