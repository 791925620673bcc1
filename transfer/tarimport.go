package transfer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// xattrRecord begins the PAX records that hold extended attributes, as GNU tar and
// bsdtar write them.
const xattrRecord = "SCHILY.xattr."

// ImportTar copies what a tar archive holds into the directory dst of the vault, as
// Import copies a directory: entries that only dst has stay, files are replaced, and
// a directory never replaces a file nor a file a directory. Of options only Progress
// and Owner count.
//
// Names count from dst, with or without a leading slash. An entry whose name has ".."
// in it, or leads through a symbolic link, is left out and reported; so is a hard link
// to what the archive has not brought. Runs of zeros as long as a chunk become holes,
// since few archives say where holes were.
//
// An archive that is damaged or cut short ends the import with what came before.
func ImportTar(ctx context.Context, v *engine.Vault, r io.Reader, dst string, opts *ImportOptions) (Report, error) {
	const op = "import"
	if opts == nil {
		opts = &ImportOptions{}
	}
	im := &importer{v: v, opts: *opts, owner: opts.Owner, made: processOwner()}
	if im.owner != nil {
		im.made = *im.owner
	} else if !asRoot() {
		im.owner = &im.made
	}
	im.run = newRun(ctx, op, 1, opts.Progress)
	if err := (&tarImporter{importer: im, dirs: map[string]*tarDir{}, names: map[string]engine.Ino{}}).all(r, dst); err != nil {
		im.run.stop(failureAt(op, dst, err))
	}
	return im.run.finish()
}

// tarImporter imports one archive.
type tarImporter struct {
	*importer
	dirs  map[string]*tarDir    // that are known, by their path below dst
	names map[string]engine.Ino // what the archive has brought, for hard links
}

// tarDir is a directory of the vault. Its attributes are set at the end, if the
// archive has any for it: every entry moves its times.
type tarDir struct {
	ino engine.Ino
	set *engine.SetAttr
}

// all imports every entry, and then sets the attributes of directories.
func (im *tarImporter) all(r io.Reader, dst string) error {
	top, err := im.v.MkdirAll(im.run.ctx, dst, 0o755, im.made)
	if err != nil {
		return err
	}
	im.dirs[""] = &tarDir{ino: top.Ino}
	defer im.run.report()()
	t := tar.NewReader(r)
	for !im.run.ended() {
		h, err := t.Next()
		if errors.Is(err, io.EOF) { // what follows is padding, and the check of a compression
			_, err = io.Copy(io.Discard, r)
			if err == nil {
				break
			}
		}
		if err != nil {
			return &engine.Error{Kind: engine.Invalid, Err: err}
		}
		im.run.at(h.Name)
		if err := im.entry(h, t); err != nil {
			return err
		}
	}
	return im.finishDirs()
}

// finishDirs sets the attributes of directories, those further down first.
func (im *tarImporter) finishDirs() error {
	var rels []string
	for rel, d := range im.dirs {
		if d.set != nil {
			rels = append(rels, rel)
		}
	}
	slices.SortFunc(rels, func(a, b string) int { return strings.Compare(b, a) })
	for _, rel := range rels {
		if _, err := im.v.SetAttr(im.run.ctx, im.dirs[rel].ino, *im.dirs[rel].set); err != nil {
			im.refused(rel, err)
			continue
		}
		im.run.dirs.Add(1)
	}
	return nil
}

// entry imports one entry. It records what goes wrong with it; an error is one of the
// archive itself.
func (im *tarImporter) entry(h *tar.Header, r io.Reader) error {
	defer im.run.doneFiles.Add(1)
	rel := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
	if slices.Contains(strings.Split(h.Name, "/"), "..") {
		im.run.fail(h.Name, &engine.Error{Kind: engine.InvalidName, Err: message("the name leads out of the archive")})
		return nil
	}
	if h.Typeflag == tar.TypeDir {
		im.directory(h, rel)
		return nil
	}
	if rel == "" {
		im.run.fail(rel, &engine.Error{Kind: engine.InvalidName})
		return nil
	}
	dir, err := im.dir(path.Dir("/" + rel)[1:])
	if err != nil {
		im.refused(rel, err)
		return nil
	}
	return im.file(h, r, dir.ino, rel)
}

// dir finds the directory at rel, or makes it. No link is followed on the way.
func (im *tarImporter) dir(rel string) (*tarDir, error) {
	if d := im.dirs[rel]; d != nil {
		return d, nil
	}
	up, err := im.dir(path.Dir("/" + rel)[1:])
	if err != nil {
		return nil, err
	}
	name := path.Base(rel)
	a, err := im.v.Lookup(im.run.ctx, up.ino, name)
	switch {
	case engine.KindOf(err) == engine.NotFound:
		a, err = im.v.Mkdir(im.run.ctx, up.ino, name, 0o755, im.made)
	case err == nil && !a.IsDir():
		err = &engine.Error{Kind: engine.NotDirectory, Err: message("a directory above it is no directory, or a link")}
	}
	if err != nil {
		return nil, err
	}
	d := &tarDir{ino: a.Ino}
	im.dirs[rel] = d
	return d, nil
}

// directory makes a directory, or takes the one that is there.
func (im *tarImporter) directory(h *tar.Header, rel string) {
	d, err := im.dir(rel)
	if err != nil {
		im.refused(rel, err)
		return
	}
	e := im.described(h, engine.TypeDir)
	for _, x := range e.Xattrs {
		if err := im.v.SetXattr(im.run.ctx, d.ino, x.Name, x.Value, 0); err != nil {
			im.refused(rel, err)
		}
	}
	d.set = &engine.SetAttr{Mode: &e.Mode, UID: &e.Owner.UID, GID: &e.Owner.GID, Atime: &e.Atime, Mtime: &e.Mtime}
}

// described is an entry with the attributes of a header.
func (im *tarImporter) described(h *tar.Header, kind uint32) *engine.Entry {
	e := &engine.Entry{Name: path.Base("/" + h.Name), Replace: true, Mode: kind | uint32(h.Mode)&0o7777, Mtime: h.ModTime.UnixNano()}
	e.Atime = e.Mtime
	if !h.AccessTime.IsZero() {
		e.Atime = h.AccessTime.UnixNano()
	}
	e.Owner = im.ownerOf(hostStat{uid: uint32(h.Uid), gid: uint32(h.Gid)})
	for record, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(record, xattrRecord)
		switch {
		case !ok:
		case keptXattr(name):
			e.Xattrs = append(e.Xattrs, engine.Xattr{Name: name, Value: []byte(value)})
		default:
			im.run.dropXattr(name)
		}
	}
	return e
}

// file imports what is no directory.
func (im *tarImporter) file(h *tar.Header, r io.Reader, dir engine.Ino, rel string) error {
	var e *engine.Entry
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont, '\x00':
		return im.content(h, r, dir, rel, im.described(h, engine.TypeRegular))
	case tar.TypeLink:
		im.hardLink(h, dir, rel)
		return nil
	case tar.TypeSymlink:
		e = im.described(h, engine.TypeSymlink)
		e.Target = h.Linkname
	case tar.TypeFifo:
		e = im.described(h, engine.TypeFIFO)
	case tar.TypeChar, tar.TypeBlock:
		if !asRoot() {
			im.run.fail(rel, &engine.Error{Kind: engine.Permission, Err: message("only root imports device nodes")})
			return nil
		}
		kind := engine.TypeChar
		if h.Typeflag == tar.TypeBlock {
			kind = engine.TypeBlock
		}
		e = im.described(h, kind)
		e.Rdev = deviceNumber(h.Devmajor, h.Devminor)
	case tar.TypeXGlobalHeader:
		return nil
	default:
		im.run.note(rel, engine.Unsupported, "an entry of a kind that no file system has")
		return nil
	}
	if ino := im.ingest(&importDir{ino: dir}, rel, e); ino != nil {
		im.names[rel] = *ino
	}
	return nil
}

// deviceNumber is Linux's encoding of a device, as stat has it.
func deviceNumber(major, minor int64) uint32 {
	return uint32(minor&0xff | (major&0xfff)<<8 | (minor&^0xff)<<12)
}

func (im *tarImporter) hardLink(h *tar.Header, dir engine.Ino, rel string) {
	ino, ok := im.names[strings.TrimPrefix(path.Clean("/"+h.Linkname), "/")]
	if !ok {
		im.run.fail(rel, &engine.Error{Kind: engine.NotFound, Err: message("the archive has not brought what the hard link is to")})
		return
	}
	a, err := im.v.Ingest(im.run.ctx, dir, &engine.Entry{Name: path.Base(rel), Link: ino, Replace: true})
	if err != nil {
		im.refused(rel, err)
		return
	}
	im.run.hardLinks.Add(1)
	im.tally(a.Mode)
	im.names[rel] = ino
}

// content imports a regular file: in one step, or a large one under another name until
// it is whole.
func (im *tarImporter) content(h *tar.Header, r io.Reader, dir engine.Ino, rel string, e *engine.Entry) error {
	d := &importDir{ino: dir}
	e.Size = h.Size
	var ino *engine.Ino
	if h.Size <= wholeFile {
		buf := make([]byte, h.Size)
		if _, err := io.ReadFull(r, buf); err != nil {
			return &engine.Error{Kind: engine.Invalid, Err: err}
		}
		for at := 0; at < len(buf); at += engine.ChunkSize {
			if data := buf[at:min(at+engine.ChunkSize, len(buf))]; !allZero(data) {
				e.Content = append(e.Content, engine.Chunk{Index: int64(at / engine.ChunkSize), Data: slices.Clip(data)})
			}
		}
		im.run.doneBytes.Add(h.Size)
		ino = im.ingest(d, rel, e)
	} else {
		var broken error
		ino = im.grow(d, rel, e, func(h *engine.File) (int64, error) {
			n, err := im.pour(h, r, rel)
			if err != nil && !errors.Is(err, errRecorded) {
				broken = err
			}
			return n, err
		})
		if broken != nil {
			return &engine.Error{Kind: engine.Invalid, Err: broken}
		}
	}
	if ino != nil {
		im.names[rel] = *ino
		if h.Size <= wholeFile {
			im.run.bytes.Add(h.Size)
		}
	}
	return nil
}

// pour writes what r has to h and returns how long that is. Whole chunks of zeros
// become holes.
func (im *tarImporter) pour(h *engine.File, r io.Reader, rel string) (int64, error) {
	buf := make([]byte, engine.ChunkSize)
	for off := int64(0); ; {
		if im.run.ended() {
			return off, errRecorded
		}
		n, err := io.ReadFull(r, buf)
		if n > 0 && !allZero(buf[:n]) {
			if _, err := h.WriteAt(im.run.ctx, buf[:n], off); err != nil {
				im.refused(rel, err)
				return off, errRecorded
			}
		}
		off += int64(n)
		im.run.doneBytes.Add(int64(n))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n > 0 {
			return off, nil
		}
		if err != nil {
			return off, err
		}
	}
}

var zeroChunk [engine.ChunkSize]byte

func allZero(b []byte) bool { return len(b) > 0 && bytes.Equal(b, zeroChunk[:len(b)]) }
