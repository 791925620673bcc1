package transfer

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine"
)

const (
	// wholeFile is up to which size, in bytes, a file is read whole and
	// becomes part of the vault in one step.
	wholeFile = 2 << 20
	// pieceBytes is how much of a larger file is copied at a time.
	pieceBytes = 1 << 20
)

// entry imports the entry name of d, which is no directory, under the name as.
func (im *importer) entry(d *importDir, name, as, rel string, st hostStat) {
	if im.run.ended() {
		return
	}
	im.run.at(rel)
	defer im.run.doneFiles.Add(1)
	if st.nlink < 2 {
		im.make(d, name, as, rel, st)
		return
	}
	made, settle := im.links.claim(fileID{st.dev, st.ino})
	if made == nil {
		settle(im.make(d, name, as, rel, st))
		return
	}
	a, err := im.v.Ingest(im.run.ctx, d.ino, &engine.Entry{Name: as, Link: *made, Replace: true})
	if err != nil {
		im.refused(rel, err)
		return
	}
	im.run.hardLinks.Add(1)
	im.tally(a.Mode)
}

// tally counts an entry that is in the vault.
func (im *importer) tally(mode uint32) {
	switch mode & engine.TypeMask {
	case engine.TypeRegular:
		im.run.files.Add(1)
	case engine.TypeSymlink:
		im.run.symlinks.Add(1)
	default:
		im.run.others.Add(1)
	}
}

// make makes the inode of an entry and returns it, or nil if it was left out.
func (im *importer) make(d *importDir, name, as, rel string, st hostStat) *engine.Ino {
	if im.opts.Update {
		if ino := im.unchanged(d, name, as, st); ino != nil {
			im.tally(st.mode)
			im.run.doneBytes.Add(st.size)
			return ino
		}
	}
	e := &engine.Entry{Name: as, Replace: true}
	switch st.mode & engine.TypeMask {
	case engine.TypeRegular:
		return im.regular(d, name, rel, e)
	case engine.TypeSymlink:
		target, err := d.host.readlink(name)
		if err != nil {
			im.run.fail(rel, err)
			return nil
		}
		e.Target = target
	case engine.TypeSocket:
		im.run.note(rel, engine.Unsupported, "a socket")
		return nil
	case engine.TypeChar, engine.TypeBlock:
		if !asRoot() {
			im.run.fail(rel, &engine.Error{Kind: engine.Permission, Err: message("only root imports device nodes")})
			return nil
		}
		e.Rdev = st.rdev
	}
	im.describe(e, st)
	return im.ingest(d, rel, e)
}

// unchanged finds the file or link of the vault that looks like that of the host; nil
// if there is none.
func (im *importer) unchanged(d *importDir, name, as string, st hostStat) *engine.Ino {
	a, err := im.v.Lookup(im.run.ctx, d.ino, as)
	if err != nil || !im.looksSame(a, st) || !a.IsRegular() && !a.IsSymlink() {
		return nil // what is wrong with it shows when it is replaced
	}
	if a.IsSymlink() {
		was, err := im.v.Readlink(im.run.ctx, a.Ino)
		if is, herr := d.host.readlink(name); err != nil || herr != nil || was != is {
			return nil
		}
	} else {
		im.run.unchanged.Add(1)
	}
	return &a.Ino
}

// looksSame compares what stat tells, but for the time of the last access.
func (im *importer) looksSame(a engine.Attr, st hostStat) bool {
	o := im.ownerOf(st)
	return a.Mode == st.mode && (a.IsDir() || a.Size == st.size) && a.Mtime == st.mtime && a.UID == o.UID && a.GID == o.GID
}

// describe copies the attributes of an entry.
func (im *importer) describe(e *engine.Entry, st hostStat) {
	e.Mode, e.Owner, e.Atime, e.Mtime = st.mode, im.ownerOf(st), st.atime, st.mtime
}

func (im *importer) ingest(d *importDir, rel string, e *engine.Entry) *engine.Ino {
	a, err := im.v.Ingest(im.run.ctx, d.ino, e)
	if err != nil {
		im.refused(rel, err)
		return nil
	}
	im.tally(a.Mode)
	return &a.Ino
}

// regular imports a regular file.
func (im *importer) regular(d *importDir, name, rel string, e *engine.Entry) *engine.Ino {
	f, st, err := d.host.openFile(name)
	if err != nil {
		im.run.fail(rel, err)
		return nil
	}
	defer f.close() // nothing was written through it
	im.describe(e, st)
	e.Xattrs = im.xattrs(f, rel)
	whole := st.size <= wholeFile
	if whole {
		if whole, err = readWhole(f, st, e); err != nil {
			im.run.fail(rel, err)
			return nil
		}
	}
	if !whole {
		return im.stream(d, f, rel, st, e)
	}
	im.run.doneBytes.Add(e.Size)
	ino := im.ingest(d, rel, e)
	if ino != nil {
		im.run.bytes.Add(e.Size)
	}
	return ino
}

// readWhole reads all of a file into e. It returns false for one that turned out
// to be longer than its size said.
func readWhole(f *hostFile, st hostStat, e *engine.Entry) (bool, error) {
	e.Content, e.Size = nil, st.size
	if st.size > 0 && st.sparse() {
		return true, readExtents(f, e)
	}
	buf := make([]byte, st.size+1) // the byte more shows the end of the file
	n, err := f.readAt(buf, 0)
	if err != nil || int64(n) > st.size {
		return false, err
	}
	e.Size = int64(n)
	for at := 0; at < n; at += engine.ChunkSize {
		end := min(at+engine.ChunkSize, n)
		e.Content = append(e.Content, engine.Chunk{Index: int64(at / engine.ChunkSize), Data: buf[at:end:end]})
	}
	return true, nil
}

// readExtents reads the data of a file with holes into chunks that end with it.
func readExtents(f *hostFile, e *engine.Entry) error {
	for off := int64(0); ; {
		x, ok, err := f.nextData(off, e.Size)
		if err != nil || !ok {
			return err
		}
		x.to = min(x.to, e.Size)
		for at := x.from; at < x.to; {
			end := min(x.to, (at/engine.ChunkSize+1)*engine.ChunkSize)
			data := grownChunk(e, at/engine.ChunkSize, int(end-at/engine.ChunkSize*engine.ChunkSize))
			n, err := f.readAt(data[at%engine.ChunkSize:], at)
			if err != nil {
				return err
			}
			if at += int64(n); at < end { // shorter than its size said
				cutTo(e, at)
				return nil
			}
		}
		off = x.to
	}
}

// cutTo ends e at size, which lies in its last chunk or at the start of it.
func cutTo(e *engine.Entry, size int64) {
	last := len(e.Content) - 1
	c := &e.Content[last]
	e.Size = size
	if c.Data = c.Data[:size-c.Index*engine.ChunkSize]; len(c.Data) == 0 {
		e.Content = e.Content[:last]
	}
}

// grownChunk returns the last chunk of e, which has the given index, with n bytes.
func grownChunk(e *engine.Entry, index int64, n int) []byte {
	if last := len(e.Content) - 1; last < 0 || e.Content[last].Index != index {
		e.Content = append(e.Content, engine.Chunk{Index: index})
	}
	c := &e.Content[len(e.Content)-1]
	grown := make([]byte, n)
	copy(grown, c.Data)
	c.Data = grown
	return grown
}

// stream imports a large file piece by piece.
func (im *importer) stream(d *importDir, f *hostFile, rel string, st hostStat, e *engine.Entry) *engine.Ino {
	return im.grow(d, rel, e, func(h *engine.File) (int64, error) { return im.copyData(h, f, rel, st) })
}

// grow makes a file under another name and gives it its own when it is whole. content
// writes it and returns its size; an error of it is recorded already, or told by it.
func (im *importer) grow(d *importDir, rel string, e *engine.Entry, content func(*engine.File) (int64, error)) *engine.Ino {
	temp := tempName("import")
	h, a, err := im.v.Create(im.run.ctx, d.ino, temp, 0o600, e.Owner, engine.OpenWrite, true)
	if err != nil {
		im.refused(rel, err)
		return nil
	}
	ok := im.fill(h, rel, e, content)
	if err := h.Close(); err != nil {
		im.refused(rel, err)
		ok = false
	}
	if ok {
		err := im.v.Rename(im.run.ctx, d.ino, temp, d.ino, e.Name, 0)
		if err == nil {
			im.run.bytes.Add(e.Size)
			im.tally(e.Mode)
			return &a.Ino
		}
		im.refused(rel, err)
	}
	if err := im.v.Unlink(context.WithoutCancel(im.run.ctx), d.ino, temp); err != nil {
		im.refused(rel, err)
	}
	return nil
}

// fill gives the file h content and attributes. It records what goes wrong.
func (im *importer) fill(h *engine.File, rel string, e *engine.Entry, content func(*engine.File) (int64, error)) bool {
	size, err := content(h)
	if err != nil {
		return false
	}
	e.Size = size
	for _, x := range e.Xattrs {
		if err := im.v.SetXattr(im.run.ctx, h.Ino(), x.Name, x.Value, 0); err != nil {
			im.refused(rel, err)
			return false
		}
	}
	set := engine.SetAttr{Mode: &e.Mode, UID: &e.Owner.UID, GID: &e.Owner.GID, Size: &size, Atime: &e.Atime, Mtime: &e.Mtime}
	if _, err := h.SetAttr(im.run.ctx, set); err != nil {
		im.refused(rel, err)
		return false
	}
	return true
}

// errRecorded says that the report knows already.
var errRecorded = errors.New("recorded")

// copyData copies the data of f and returns its size.
func (im *importer) copyData(h *engine.File, f *hostFile, rel string, st hostStat) (int64, error) {
	buf := make([]byte, pieceBytes)
	if !st.sparse() {
		end, err := im.copyRange(h, f, rel, extent{0, 1<<63 - 1}, buf)
		return end, err
	}
	for off := int64(0); ; {
		x, ok, err := f.nextData(off, st.size)
		if err != nil {
			im.run.fail(rel, err)
			return 0, errRecorded
		}
		if !ok {
			im.run.doneBytes.Add(max(st.size-off, 0))
			break
		}
		im.run.doneBytes.Add(x.from - off)
		if _, err := im.copyRange(h, f, rel, x, buf); err != nil {
			return 0, err
		}
		off = x.to
	}
	now, err := f.stat()
	if err != nil {
		im.run.fail(rel, err)
		return 0, errRecorded
	}
	return now.size, nil
}

// copyRange copies x, or as much of it as the file has, and returns where it ended.
func (im *importer) copyRange(h *engine.File, f *hostFile, rel string, x extent, buf []byte) (int64, error) {
	for off := x.from; off < x.to; {
		if im.run.ended() {
			return off, errRecorded
		}
		part := buf[:min(int64(len(buf)), x.to-off)]
		n, err := f.readAt(part, off)
		if err != nil {
			im.run.fail(rel, err)
			return off, errRecorded
		}
		if _, err := h.WriteAt(im.run.ctx, part[:n], off); err != nil {
			im.refused(rel, err)
			return off, errRecorded
		}
		off += int64(n)
		im.run.doneBytes.Add(int64(n))
		if n < len(part) {
			return off, nil
		}
	}
	return x.to, nil
}
