package patch

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" // #nosec G505 -- the ids of git's blobs are SHA-1
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// noBlob stands for no content in the index line of git.
const noBlob = "0000000000000000000000000000000000000000"

// blob is the content of a file, or the target of a symbolic link.
type blob struct {
	id    string // as git computes it
	size  int64
	bytes []byte // nil where the content is larger than MaxText
	link  bool
	open  func() (io.ReadCloser, error)
}

// content reads an entry; the blob of nil is nil. What is larger than MaxText is
// read for its id only, and not kept.
func (p *printer) content(t Tree, e *entry) (*blob, error) {
	if e == nil {
		return nil, nil
	}
	b := &blob{size: e.attr.Size, link: e.attr.IsSymlink()}
	if b.link {
		target, err := t.Readlink(p.ctx, e.attr.Ino)
		b.bytes, b.size = []byte(target), int64(len(target))
		b.id = blobID(b.bytes)
		return b, err
	}
	b.open = func() (io.ReadCloser, error) {
		f, err := t.Open(p.ctx, e.attr.Ino)
		return &fileReader{ctx: p.ctx, f: f}, err
	}
	r, err := b.open()
	if err != nil {
		return nil, err
	}
	h := sha1.New() // #nosec G401 -- as above
	fmt.Fprintf(h, "blob %d\x00", b.size)
	if b.large() {
		_, err = io.Copy(h, r)
	} else {
		b.bytes = make([]byte, b.size)
		_, err = io.ReadFull(r, b.bytes)
		h.Write(b.bytes)
	}
	b.id = hex.EncodeToString(h.Sum(nil))
	return b, errors.Join(err, r.Close())
}

func blobID(content []byte) string {
	h := sha1.New() // #nosec G401 -- as above
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

func (b *blob) large() bool { return b != nil && b.size > MaxText }

// binary reports whether the content is no text.
func (b *blob) binary() bool { return b != nil && !b.link && bytes.IndexByte(b.bytes, 0) >= 0 }

// text is the content of a blob that is not large; that of nil is empty.
func (b *blob) text() []byte {
	if b == nil {
		return nil
	}
	return b.bytes
}

// fileReader reads a file of a snapshot from the start on.
type fileReader struct {
	ctx context.Context
	f   *engine.SnapshotFile
	off int64
}

// Read implements io.Reader.
func (r *fileReader) Read(p []byte) (int, error) {
	n, err := r.f.ReadAt(r.ctx, p, r.off)
	r.off += int64(n)
	if err == nil && n == 0 && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (r *fileReader) Close() error { return r.f.Close() }

// binary writes the content of a file that is no text, or too large to be compared.
func (p *printer) binary(op fileOp, before, after *blob) error {
	if !p.opts.Binary {
		what := "Binary files"
		if !before.binary() && !after.binary() {
			what = "Large files"
		}
		_, err := fmt.Fprintf(p.w, "%s %s and %s differ\n", what, strings.TrimSuffix(fileLabel("a/", op.old), "\t"), strings.TrimSuffix(fileLabel("b/", op.new), "\t"))
		return err
	}
	if _, err := io.WriteString(p.w, "GIT binary patch\n"); err != nil {
		return err
	}
	for _, b := range []*blob{after, before} { // forwards, then backwards
		if err := p.literal(b); err != nil {
			return err
		}
	}
	return nil
}

// literal writes whole content: compressed, in lines of up to 52 bytes, each with its
// length in front and in base 85.
func (p *printer) literal(b *blob) error {
	if b == nil {
		b = &blob{bytes: []byte{}}
	}
	fmt.Fprintf(p.w, "literal %d\n", b.size)
	lines := &base85Lines{w: p.w}
	z := zlib.NewWriter(lines)
	err := b.copyTo(z)
	if err = errors.Join(err, z.Close(), lines.flush()); err != nil {
		return err
	}
	return p.w.WriteByte('\n')
}

func (b *blob) copyTo(w io.Writer) error {
	if b.bytes != nil {
		_, err := w.Write(b.bytes)
		return err
	}
	r, err := b.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, r.Close())
}

// lineBytes is how many bytes a line of a binary patch holds.
const lineBytes = 52

// base85Lines writes lines in git's form of base 85.
type base85Lines struct {
	w    io.Writer
	line []byte
}

// Write implements io.Writer.
func (l *base85Lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(lineBytes-len(l.line), len(p))
		l.line = append(l.line, p[:k]...)
		p = p[k:]
		if len(l.line) == lineBytes {
			if err := l.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

const base85Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// flush writes what is left as a line.
func (l *base85Lines) flush() error {
	n := len(l.line)
	if n == 0 {
		return nil
	}
	out := make([]byte, 0, 2+5*(lineBytes/4))
	if n <= 26 {
		out = append(out, byte('A'+n-1))
	} else {
		out = append(out, byte('a'+n-27))
	}
	for len(l.line)%4 != 0 {
		l.line = append(l.line, 0)
	}
	for i := 0; i < len(l.line); i += 4 {
		word := binary.BigEndian.Uint32(l.line[i:])
		var digits [5]byte
		for j := 4; j >= 0; j-- {
			digits[j] = base85Digits[word%85]
			word /= 85
		}
		out = append(out, digits[:]...)
	}
	l.line = l.line[:0]
	_, err := l.w.Write(append(out, '\n'))
	return err
}
