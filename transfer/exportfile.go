package transfer

import (
	"bytes"
	"errors"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// entry exports e, which is no directory, as name in d.
func (ex *exporter) entry(d *exportDir, name, rel string, e engine.DirEntry) {
	if ex.run.ended() {
		return
	}
	ex.run.at(rel)
	defer ex.run.doneFiles.Add(1)
	a, err := ex.r.Stat(ex.run.ctx, e.Ino)
	if err != nil {
		ex.run.fail(rel, err)
		return
	}
	if a.Nlink < 2 {
		ex.make(d, name, rel, a)
		return
	}
	made, settle := ex.links.claim(a.Ino)
	if made == nil {
		settle(ex.makeFirst(d, name, rel, a))
		return
	}
	switch err := ex.link(d, name, made); {
	case err == nil:
		ex.run.hardLinks.Add(1)
		ex.tally(a)
	case unlinkable(err):
		if ex.make(d, name, rel, a) {
			ex.run.note(rel, kindOf(err), "a hard link became a file of its own")
		}
	default:
		ex.run.fail(rel, err)
	}
}

// unlinkable reports whether err is that of a file system without hard links, or
// with a bound on them.
func unlinkable(err error) bool {
	switch kindOf(err) {
	case engine.Unsupported, engine.Permission, engine.TooManyLinks:
		return true
	}
	return false
}

// tally counts an entry that is on the host.
func (ex *exporter) tally(a engine.Attr) {
	switch a.Mode & engine.TypeMask {
	case engine.TypeRegular:
		ex.run.files.Add(1)
	case engine.TypeSymlink:
		ex.run.symlinks.Add(1)
	default:
		ex.run.others.Add(1)
	}
}

// makeFirst makes the first of several names of an inode, nil if it was left out.
func (ex *exporter) makeFirst(d *exportDir, name, rel string, a engine.Attr) *hostName {
	if !ex.make(d, name, rel, a) {
		return nil
	}
	st, err := d.host.stat(name)
	if err != nil {
		ex.run.fail(rel, err)
		return nil
	}
	return &hostName{dir: d.rel, name: name, id: fileID{st.dev, st.ino}}
}

// link gives what was made before another name in d.
func (ex *exporter) link(d *exportDir, name string, made *hostName) error {
	from, err := ex.reopen(made.dir)
	if err != nil {
		return err
	}
	defer from.close() // nothing was written through it
	st, err := from.stat(made.name)
	if err != nil {
		return err
	}
	if made.id != (fileID{st.dev, st.ino}) {
		return errReplaced
	}
	if now, err := d.host.stat(name); err == nil && made.id == (fileID{now.dev, now.ino}) {
		return nil
	}
	return ex.place(d, name, func(as string) error { return d.host.link(from, made.name, as) })
}

// reopen opens a directory below the destination step by step.
func (ex *exporter) reopen(rel string) (*hostDir, error) {
	dir, _, err := ex.top.openDir(".")
	if err != nil || rel == "" {
		return dir, err
	}
	for _, name := range strings.Split(rel, "/") {
		next, _, err := dir.openDir(name)
		if err = errors.Join(err, dir.close()); err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// place has how make something called name. With Overwrite what has the name gives
// way as in a rename.
func (ex *exporter) place(d *exportDir, name string, how func(as string) error) error {
	err := how(name)
	if err == nil || !ex.overwrite || kindOf(err) != engine.Exists {
		return err
	}
	temp := tempName("export")
	if err := how(temp); err != nil {
		return err
	}
	if err := d.host.rename(temp, name); err != nil {
		return errors.Join(err, d.host.remove(temp))
	}
	return nil
}

// make makes an inode and reports whether it is there.
func (ex *exporter) make(d *exportDir, name, rel string, a engine.Attr) bool {
	if a.Mode&engine.TypeMask == engine.TypeSocket {
		ex.run.note(rel, engine.Unsupported, "a socket")
		return false
	}
	err := ex.place(d, name, func(as string) error { return ex.makeAs(d, as, rel, a) })
	if err != nil {
		ex.run.fail(rel, err)
		return false
	}
	ex.tally(a)
	if a.IsRegular() {
		ex.run.bytes.Add(a.Size)
	}
	return true
}

func (ex *exporter) makeAs(d *exportDir, as, rel string, a engine.Attr) error {
	switch a.Mode & engine.TypeMask {
	case engine.TypeRegular:
		return ex.regular(d, as, rel, a)
	case engine.TypeSymlink:
		target, err := ex.r.Readlink(ex.run.ctx, a.Ino)
		if err == nil {
			err = d.host.symlink(target, as)
		}
		if err != nil {
			return err
		}
		if err := d.host.setLinkAttrs(as, ex.ownerOf(a), a.Atime, a.Mtime); err != nil {
			ex.run.fail(rel, err)
		}
		return nil
	case engine.TypeChar, engine.TypeBlock:
		if !asRoot() {
			return &engine.Error{Kind: engine.Permission, Err: message("only root exports device nodes")}
		}
	}
	if err := d.host.mknod(as, ex.modeOf(a), a.Rdev, ex.ownerOf(a)); err != nil {
		return err
	}
	if err := d.host.setTimes(as, a.Atime, a.Mtime); err != nil {
		ex.run.fail(rel, err)
	}
	return nil
}

// regular writes a regular file, whole or not at all.
func (ex *exporter) regular(d *exportDir, as, rel string, a engine.Attr) error {
	h, err := ex.open(ex.run.ctx, a.Ino)
	if err != nil {
		return err
	}
	f, err := d.host.create(as)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	err = ex.copyOut(f, h, a)
	if err == nil {
		ex.describe(f, a, rel)
	}
	err = errors.Join(err, f.close(), h.Close())
	if err != nil {
		return errors.Join(err, d.host.remove(as))
	}
	if err := d.host.setTimes(as, a.Atime, a.Mtime); err != nil {
		ex.run.fail(rel, err)
	}
	return nil
}

// copyOut copies content. A file with holes gets them, and more of them: blocks
// of zeros are left out, too.
func (ex *exporter) copyOut(f *hostFile, h content, a engine.Attr) error {
	buf := make([]byte, min(max(a.Size, 1), pieceBytes))
	if a.Blocks*512 >= a.Size {
		_, err := ex.copyRange(f, h, extent{0, a.Size}, buf, false)
		return err
	}
	for off := int64(0); off < a.Size; {
		x, ok, err := nextData(ex, h, off, a.Size)
		if err != nil {
			return err
		}
		if !ok {
			ex.run.doneBytes.Add(a.Size - off)
			break
		}
		ex.run.doneBytes.Add(x.from - off)
		if _, err := ex.copyRange(f, h, x, buf, true); err != nil {
			return err
		}
		off = x.to
	}
	return f.truncate(a.Size)
}

// nextData is the first range with data at or after off, and whether there is one.
func nextData(ex *exporter, h content, off, size int64) (extent, bool, error) {
	from, err := h.Seek(ex.run.ctx, off, false)
	if engine.KindOf(err) == engine.NoData || err == nil && from >= size {
		return extent{}, false, nil
	}
	if err != nil {
		return extent{}, false, err
	}
	to, err := h.Seek(ex.run.ctx, from, true)
	if engine.KindOf(err) == engine.NoData {
		return extent{}, false, nil // cut off meanwhile
	}
	return extent{from, min(to, size)}, true, err
}

// copyRange copies x, or as much of it as the file has, and returns where it ended.
func (ex *exporter) copyRange(f *hostFile, h content, x extent, buf []byte, sparse bool) (int64, error) {
	for off := x.from; off < x.to; {
		if ex.run.ended() {
			return off, ex.run.ctx.Err()
		}
		part := buf[:min(int64(len(buf)), x.to-off)]
		n, err := h.ReadAt(ex.run.ctx, part, off)
		if err != nil {
			return off, err
		}
		if sparse {
			err = writeSparse(f, part[:n], off)
		} else {
			err = f.writeAt(part[:n], off)
		}
		if err != nil {
			return off, err
		}
		off += int64(n)
		ex.run.doneBytes.Add(int64(n))
		if n < len(part) {
			return off, nil // cut off meanwhile
		}
	}
	return x.to, nil
}

// blockBytes is the granularity of holes that an export makes.
const blockBytes = 4096

var zeros [blockBytes]byte

// writeSparse writes p without its blocks of zeros.
func writeSparse(f *hostFile, p []byte, off int64) error {
	start := 0 // of the data not written yet
	for at := 0; at < len(p); {
		end := min(len(p), at+blockBytes-int((off+int64(at))%blockBytes))
		if bytes.Equal(p[at:end], zeros[:end-at]) {
			if err := f.writeAt(p[start:at], off+int64(start)); err != nil {
				return err
			}
			start = end
		}
		at = end
	}
	return f.writeAt(p[start:], off+int64(start))
}
