package transfer

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// ExportTar writes the directory or file src of r to w as a tar archive in the PAX
// format, which GNU tar, bsdtar and Go read. It keeps what Export keeps, always with
// the vault's owners, as numbers; holes become zeros, which such archives have no
// common form for. Names count from src, whose own attributes are those of "./". Of
// options only Progress counts.
//
// One that ends with an error has written an archive that is cut short, unless the
// error is a PartialError.
func ExportTar(ctx context.Context, r Reader, src string, w io.Writer, opts *ExportOptions) (Report, error) {
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
	ex := &tarExporter{exporter: &exporter{r: r, open: open}, w: tar.NewWriter(w), made: map[engine.Ino]string{}}
	ex.run = newRun(ctx, op, 1, opts.Progress)
	stop := ex.run.report()
	if top.IsDir() {
		stopCount := ex.count(top.Ino)
		err = ex.tree(top, "")
		stopCount()
	} else {
		ex.run.sole = true
		err = ex.entry(top, path.Base(path.Clean("/"+src)))
	}
	stop()
	if err == nil {
		err = ex.w.Close()
	}
	if err != nil {
		ex.run.stop(failureAt(op, src, err))
	}
	return ex.run.finish()
}

// tarExporter writes one archive.
type tarExporter struct {
	*exporter
	w    *tar.Writer
	made map[engine.Ino]string // the first names of files that have several
}

// tree writes a directory and what is below it. An error is one of the archive; what is
// wrong with an entry is recorded.
func (ex *tarExporter) tree(a engine.Attr, rel string) error {
	if err := ex.entry(a, rel); err != nil {
		return err
	}
	var entries []engine.DirEntry
	err := ex.r.ReadDir(ex.run.ctx, a.Ino, "", func(e engine.DirEntry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		ex.run.fail(rel, err)
	}
	for _, e := range entries {
		name := join(rel, e.Name)
		if ex.run.ended() {
			return nil
		}
		if !possible(e.Name) {
			ex.run.fail(name, &engine.Error{Kind: engine.InvalidName})
			continue
		}
		child, err := ex.r.Stat(ex.run.ctx, e.Ino)
		if err != nil {
			ex.run.fail(name, err)
			continue
		}
		if child.IsDir() {
			err = ex.tree(child, name)
		} else {
			err = ex.entry(child, name)
			ex.run.doneFiles.Add(1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry writes one entry.
func (ex *tarExporter) entry(a engine.Attr, rel string) error {
	ex.run.at(rel)
	h := &tar.Header{
		Name: rel, Mode: int64(a.Mode & 0o7777), Uid: int(a.UID), Gid: int(a.GID), Format: tar.FormatPAX,
		ModTime: time.Unix(0, a.Mtime), AccessTime: time.Unix(0, a.Atime), PAXRecords: ex.xattrs(a, rel),
	}
	if first, ok := ex.made[a.Ino]; ok && a.Nlink > 1 && !a.IsDir() {
		h.Typeflag, h.Linkname, h.PAXRecords = tar.TypeLink, first, nil
		if err := ex.w.WriteHeader(h); err != nil {
			return err
		}
		ex.run.hardLinks.Add(1)
		ex.tally(a)
		return nil
	}
	if ok, err := ex.describe(h, a, rel); !ok || err != nil {
		return err
	}
	if err := ex.write(h, a, rel); err != nil || ex.run.ended() {
		return err
	}
	if a.Nlink > 1 && !a.IsDir() {
		ex.made[a.Ino] = rel
	}
	if a.IsDir() {
		ex.run.dirs.Add(1)
	} else {
		ex.tally(a)
	}
	return nil
}

// describe gives a header what depends on the type; false leaves the entry out.
func (ex *tarExporter) describe(h *tar.Header, a engine.Attr, rel string) (bool, error) {
	switch a.Mode & engine.TypeMask {
	case engine.TypeDir:
		h.Typeflag, h.Name = tar.TypeDir, "./"
		if rel != "" {
			h.Name = rel + "/"
		}
	case engine.TypeRegular:
		h.Typeflag, h.Size = tar.TypeReg, a.Size
	case engine.TypeSymlink:
		target, err := ex.r.Readlink(ex.run.ctx, a.Ino)
		if err != nil {
			ex.run.fail(rel, err)
			return false, nil
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
	case engine.TypeFIFO:
		h.Typeflag = tar.TypeFifo
	case engine.TypeChar, engine.TypeBlock:
		h.Typeflag = tar.TypeChar
		if a.Mode&engine.TypeMask == engine.TypeBlock {
			h.Typeflag = tar.TypeBlock
		}
		h.Devmajor, h.Devminor = int64(a.Rdev>>8&0xfff), int64(a.Rdev&0xff|a.Rdev>>12&^0xff)
	default:
		ex.run.note(rel, engine.Unsupported, "a socket")
		return false, nil
	}
	return true, nil
}

// xattrs are the extended attributes that are kept, as PAX records.
func (ex *tarExporter) xattrs(a engine.Attr, rel string) map[string]string {
	names, err := ex.r.ListXattr(ex.run.ctx, a.Ino)
	if err != nil {
		ex.run.fail(rel, err)
	}
	var records map[string]string
	for _, name := range names {
		if !keptXattr(name) || strings.ContainsAny(name, "=\x00") {
			ex.run.dropXattr(name)
			continue
		}
		value, err := ex.r.GetXattr(ex.run.ctx, a.Ino, name)
		if err != nil {
			ex.run.fail(rel, err)
			continue
		}
		if records == nil {
			records = map[string]string{}
		}
		records[xattrRecord+name] = string(value)
	}
	return records
}

// write writes a header and, for a file, its content. A file that cannot be read ends
// the archive: its size has been written already.
func (ex *tarExporter) write(h *tar.Header, a engine.Attr, rel string) (err error) {
	if !a.IsRegular() {
		return ex.w.WriteHeader(h)
	}
	f, err := ex.open(ex.run.ctx, a.Ino)
	if err != nil {
		ex.run.fail(rel, err)
		return nil
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := ex.w.WriteHeader(h); err != nil {
		return err
	}
	buf := make([]byte, min(pieceBytes, max(a.Size, 1)))
	for off := int64(0); off < a.Size; {
		n, err := f.ReadAt(ex.run.ctx, buf[:min(int64(len(buf)), a.Size-off)], off)
		if err == nil && n == 0 {
			err = &engine.Error{Kind: engine.Corrupt, Err: message("the file became shorter meanwhile")}
		}
		if err != nil {
			return failure(ex.run.op, rel, err)
		}
		if _, err := ex.w.Write(buf[:n]); err != nil {
			return err
		}
		off += int64(n)
		ex.run.doneBytes.Add(int64(n))
	}
	ex.run.bytes.Add(a.Size)
	return nil
}
