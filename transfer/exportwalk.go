package transfer

import (
	"errors"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// walk hands the entries of d to the workers and goes down into the directories.
// It gives up the caller's reference to d.
func (ex *exporter) walk(d *exportDir) {
	defer d.release()
	var subs []engine.DirEntry
	err := ex.r.ReadDir(ex.run.ctx, d.a.Ino, "", func(e engine.DirEntry) error {
		switch {
		case ex.run.ended():
			return ex.run.ctx.Err()
		case !possible(e.Name):
			ex.run.fail(join(d.rel, e.Name), &engine.Error{Kind: engine.InvalidName})
		case ex.only != nil && !ex.only(join(d.rel, e.Name)):
		case e.Type == engine.TypeDir:
			subs = append(subs, e)
		default:
			d.retain()
			ex.run.do(func() {
				defer d.release()
				ex.entry(d, e.Name, join(d.rel, e.Name), e)
			})
		}
		return nil
	})
	if err != nil {
		ex.run.fail(d.rel, err)
	}
	for _, e := range subs {
		if ex.run.ended() {
			return
		}
		ex.descend(d, e)
	}
}

// possible rejects names that a damaged store might hold and that would lead out
// of a directory.
func possible(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// descend exports a directory in d.
func (ex *exporter) descend(d *exportDir, e engine.DirEntry) {
	rel := join(d.rel, e.Name)
	a, err := ex.r.Stat(ex.run.ctx, e.Ino)
	if err != nil {
		ex.run.fail(rel, err)
		return
	}
	if err := d.host.mkdir(e.Name); err != nil && !(ex.overwrite && kindOf(err) == engine.Exists) {
		ex.run.fail(rel, err)
		return
	}
	host, _, err := d.host.openDir(e.Name)
	if err != nil {
		ex.run.fail(rel, err)
		return
	}
	sub := &exportDir{ex: ex, parent: d, host: host, rel: rel, a: a}
	d.retain()
	sub.retain()
	ex.walk(sub)
}

// count walks the source on a goroutine of its own to find the totals. The
// returned function ends it.
func (ex *exporter) count(top engine.Ino) (stop func()) {
	if ex.run.progress == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		c := &exportCounter{ex: ex, quit: quit, seen: map[engine.Ino]bool{}}
		if c.tree(top, "") == nil {
			ex.run.totalFiles.Store(c.files)
			ex.run.totalBytes.Store(c.bytes)
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// exportCounter adds up a tree.
type exportCounter struct {
	ex           *exporter
	quit         chan struct{}
	seen         map[engine.Ino]bool
	files, bytes int64
}

var errQuit = errors.New("the export is over")

// tree fails only when there is no point in going on: the export itself meets
// and reports what else is wrong.
func (c *exportCounter) tree(dir engine.Ino, rel string) error {
	var subs []engine.DirEntry
	err := c.ex.r.ReadDir(c.ex.run.ctx, dir, "", func(e engine.DirEntry) error {
		select {
		case <-c.quit:
			return errQuit
		default:
		}
		if c.ex.only != nil && !c.ex.only(join(rel, e.Name)) {
			return nil
		}
		if e.Type == engine.TypeDir {
			subs = append(subs, e)
			return nil
		}
		c.files++
		if a, err := c.ex.r.Stat(c.ex.run.ctx, e.Ino); err == nil && a.IsRegular() && !c.seen[e.Ino] {
			c.seen[e.Ino] = a.Nlink > 1
			c.bytes += a.Size
		}
		return nil
	})
	if errors.Is(err, errQuit) || c.ex.run.ended() {
		return errQuit
	}
	for _, sub := range subs {
		if err := c.tree(sub.Ino, join(rel, sub.Name)); err != nil {
			return err
		}
	}
	return nil
}
