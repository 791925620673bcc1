package conformance

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

var mountFileTests = []mountTest{
	{"cut bytes stay away", "what a truncation removed must never come back, not even past a hole", (*mountSuite).truncated},
	{"random writes equal a model", "chunk borders and holes are where ranges get lost", (*mountSuite).fuzz},
	{"large transfers", "one call moves megabytes, which arrive in many requests", (*mountSuite).largeTransfer},
	{"far offsets", "sparse images are larger than memory, and there is an end to a file's size", (*mountSuite).farOffsets},
	{"blocks tell the truth", "tar and cp take a file without blocks for a hole", (*mountSuite).blocks},
	{"copy_file_range gives real bytes", "cp and language runtimes use every copying call there is", (*mountSuite).copyRange},
	{"appends never overlap", "two processes that log into one file must not overwrite each other", (*mountSuite).appends},
	{"an append finds the end that the engine has", "a line logged from outside the mount must not be overwritten", (*mountSuite).appendOutside},
	{"mapped writes are visible", "linkers and databases write through shared mappings", (*mountSuite).mapped},
	{"mapped writes beside an appender", "the kernel may write a mapped page back through the appender's handle", (*mountSuite).mappedAppend},
	{"a mapping of a shrunk file", "a page beyond the end faults, and never brings old bytes", (*mountSuite).mappedShrunk},
	{"locks exclude", "databases trust flock and record locks, also against each other's processes", (*mountSuite).locks},
	{"holes are found and made", "images and databases give space back by punching holes, and cp keeps them", (*mountSuite).holes},
	{"fallocate and holes", "a program that gets a clean refusal falls back", (*mountSuite).fallocate},
}

func (s *mountSuite) truncated(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "SECRETSECRET")
	mustDo(t, os.Truncate(f, 3))
	mustDo(t, os.Truncate(f, 12))
	wantFile(t, f, "SEC"+strings.Repeat("\x00", 9))
	mustDo(t, os.Truncate(f, 2))
	fd := openFD(t, f, unix.O_RDWR, 0)
	_, err := unix.Pwrite(fd, []byte("X"), 5)
	mustDo(t, err)
	wantFile(t, f, "SE\x00\x00\x00X")
	big := bytes.Repeat([]byte("x"), 300_000)
	_, err = unix.Pwrite(fd, big, 0)
	mustDo(t, err)
	mustDo(t, unix.Ftruncate(fd, 131_000))
	_, err = unix.Pwrite(fd, []byte("end"), 290_000)
	mustDo(t, err)
	want := append(append([]byte{}, big[:131_000]...), make([]byte, 290_000-131_000)...)
	wantFile(t, f, string(want)+"end")
}

func (s *mountSuite) fuzz(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	fd := openFD(t, f, unix.O_RDWR|unix.O_CREAT, 0o600)
	r := rand.New(rand.NewSource(7))
	var model []byte
	grow := func(n int) {
		if n > len(model) {
			model = append(model, make([]byte, n-len(model))...)
		}
	}
	for i := range 2000 {
		off, n := r.Intn(300_000), 1+r.Intn(70_000)
		switch k := r.Intn(10); {
		case k < 5:
			data := make([]byte, n)
			r.Read(data)
			_, err := unix.Pwrite(fd, data, int64(off))
			mustDo(t, err)
			grow(off + n)
			copy(model[off:], data)
		case k < 6:
			mustDo(t, unix.Ftruncate(fd, int64(off)))
			grow(off)
			model = model[:off:off]
		default:
			want := ""
			if off < len(model) {
				want = string(model[off:min(off+n, len(model))])
			}
			if preadFD(t, fd, n, int64(off)) != want {
				t.Fatalf("step %d: %d bytes at %d differ from the model", i, n, off)
			}
		}
	}
	equal(t, "size", fstatOf(t, fd).Size, int64(len(model)))
	wantFile(t, f, string(model))
}

func (s *mountSuite) largeTransfer(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	data := make([]byte, 9<<20+123)
	rand.New(rand.NewSource(1)).Read(data)
	fd := openFD(t, f, unix.O_RDWR|unix.O_CREAT, 0o600)
	n, err := unix.Pwrite(fd, data, 0)
	mustDo(t, err)
	equal(t, "written by one call", n, len(data))
	mustDo(t, unix.Fsync(fd))
	wantFile(t, f, string(data))
	again := openFD(t, f, unix.O_RDONLY|unix.O_DIRECT, 0)
	equal(t, "read past the page cache", preadFD(t, again, 1<<20, 4096), string(data[4096:4096+1<<20]))
}

func (s *mountSuite) farOffsets(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	fd := openFD(t, f, unix.O_RDWR|unix.O_CREAT, 0o600)
	const far = 5 << 30
	_, err := unix.Pwrite(fd, []byte("end"), far)
	mustDo(t, err)
	equal(t, "size", fstatOf(t, fd).Size, far+3)
	equal(t, "the hole", preadFD(t, fd, 4, 1<<30), "\x00\x00\x00\x00")
	equal(t, "the end", preadFD(t, fd, 10, far), "end")
	if st := fstatOf(t, fd); st.Blocks*512 > 1<<20 {
		t.Errorf("a hole takes %d blocks", st.Blocks)
	}
	wantErrno(t, "beyond every limit", unix.Ftruncate(fd, 1<<62), unix.EFBIG)
	_, err = unix.Pwrite(fd, []byte("x"), 1<<62)
	wantErrno(t, "a write beyond every limit", err, unix.EFBIG)
}

func (s *mountSuite) blocks(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	data := make([]byte, 1<<20)
	rand.New(rand.NewSource(2)).Read(data)
	putFile(t, f, string(data))
	if st := lstatOf(t, f); st.Blocks*512 < 1<<20 {
		t.Errorf("1 MiB of data takes %d blocks", st.Blocks)
	}
	empty := filepath.Join(dir, "empty")
	putFile(t, empty, "")
	equal(t, "blocks of an empty file", lstatOf(t, empty).Blocks, 0)
	putFile(t, empty, "x")
	if lstatOf(t, empty).Blocks == 0 {
		t.Error("one byte takes no block")
	}
	wantOutput(t, shellIn(t, dir, `cp --sparse=always f g; tar -S -cf t.tar f; cmp f g && tar -xOf t.tar f | cmp - f && echo same`), "same\n")
}

func (s *mountSuite) copyRange(t *testing.T) {
	dir := s.dir(t)
	a := filepath.Join(dir, "a")
	data := make([]byte, 3<<20+7)
	rand.New(rand.NewSource(3)).Read(data)
	putFile(t, a, string(data))
	in, out := openFD(t, a, unix.O_RDONLY, 0), openFD(t, filepath.Join(dir, "b"), unix.O_WRONLY|unix.O_CREAT, 0o600)
	for {
		n, err := unix.CopyFileRange(in, nil, out, nil, 1<<20, 0)
		mustDo(t, err)
		if n == 0 {
			break
		}
	}
	wantFile(t, filepath.Join(dir, "b"), string(data))
	in, out = openFD(t, a, unix.O_RDONLY, 0), openFD(t, filepath.Join(dir, "c"), unix.O_WRONLY|unix.O_CREAT, 0o600)
	for {
		n, err := unix.Sendfile(out, in, nil, 1<<20)
		mustDo(t, err)
		if n == 0 {
			break
		}
	}
	wantFile(t, filepath.Join(dir, "c"), string(data))
	wantErrno(t, "reflink", unix.IoctlFileClone(out, in), unix.EOPNOTSUPP)
	wantOutput(t, shellIn(t, dir, `cp --reflink=auto a d && cmp a d && echo same`), "same\n")
}

func (s *mountSuite) appends(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "log")
	putFile(t, f, "")
	mustDo(t, os.Link(f, filepath.Join(dir, "twin"))) // to the kernel another file
	var wg sync.WaitGroup
	const writers, lines = 4, 200
	for w := range writers {
		path := f
		if w%2 == 1 {
			path = filepath.Join(dir, "twin")
		}
		fd := openFD(t, path, unix.O_WRONLY|unix.O_APPEND, 0)
		wg.Go(func() {
			for i := range lines {
				if _, err := unix.Write(fd, fmt.Appendf(nil, "%d-%03d\n", w, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(f)
	mustDo(t, err)
	equal(t, "bytes", len(got), writers*lines*6)
	seen := map[string]bool{}
	for line := range strings.Lines(string(got)) {
		seen[line] = true
	}
	equal(t, "whole lines", len(seen), writers*lines)
}

func (s *mountSuite) appendOutside(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "log")
	fd := openFD(t, f, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND, 0o600)
	_, err := unix.Write(fd, []byte("one\n"))
	mustDo(t, err)
	s.outside(t, dir, "log", func(f outsideFile) { f.write(t, "two\n", 4) })
	_, err = unix.Write(fd, []byte("three\n"))
	mustDo(t, err)
	wantFile(t, f, "one\ntwo\nthree\n")
}

func (s *mountSuite) mapped(t *testing.T) {
	f := filepath.Join(s.dir(t), "m")
	s.child(t, "map shared", f)
	want := make([]byte, 65536)
	copy(want[4096:], "hello")
	wantFile(t, f, string(want))
}

// mapShared writes through a shared mapping and reads it back through descriptors.
func mapShared(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(65536); err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 65536, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(m[4096:], "hello")
	if err := unix.Msync(m, unix.MS_SYNC); err != nil {
		return err
	}
	p := make([]byte, 5)
	if _, err := f.ReadAt(p, 4096); err != nil || string(p) != "hello" {
		return fmt.Errorf("read %q, %v", p, err)
	}
	if _, err := f.WriteAt([]byte("HELLO"), 8192); err != nil {
		return err
	}
	if got := string(m[8192:8197]); got != "HELLO" {
		return fmt.Errorf("the mapping shows %q after a write", got)
	}
	if _, err := f.WriteAt(make([]byte, 5), 8192); err != nil {
		return err
	}
	return unix.Munmap(m)
}

func (s *mountSuite) mappedAppend(t *testing.T) {
	f := filepath.Join(s.dir(t), "m")
	putFile(t, f, strings.Repeat("-", 10_000))
	fd := openFD(t, f, unix.O_WRONLY|unix.O_APPEND, 0)
	_, err := unix.Write(fd, []byte("start\n"))
	mustDo(t, err)
	s.child(t, "map append", f)
	_, err = unix.Write(fd, []byte("end\n"))
	mustDo(t, err)
	want := "MAPPED" + strings.Repeat("-", 9_994) + "start\n" + "end\n"
	wantFile(t, f, want)
}

// mapAppend changes the first page of a file that somebody else appends to.
func mapAppend(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 10_006, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(m, "MAPPED")
	if err := unix.Msync(m, unix.MS_SYNC); err != nil {
		return err
	}
	return unix.Munmap(m)
}

func (s *mountSuite) mappedShrunk(t *testing.T) {
	f := filepath.Join(s.dir(t), "m")
	s.child(t, "map shrunk", f)
	wantFile(t, f, "AA"+strings.Repeat("\x00", 6))
}

// mapShrunk cuts a mapped file within its first page and lets it grow again.
func mapShrunk(path string) error {
	if err := os.WriteFile(path, []byte("AAAAAAAA"), 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	m[7] = 'B'
	if err := f.Truncate(2); err != nil {
		return err
	}
	if err := f.Truncate(8); err != nil {
		return err
	}
	if got := string(m[:8]); got != "AA\x00\x00\x00\x00\x00\x00" {
		return fmt.Errorf("the mapping shows %q", got)
	}
	return unix.Munmap(m)
}

func (s *mountSuite) locks(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "0123456789")
	a, b := openFD(t, f, unix.O_RDWR, 0), openFD(t, f, unix.O_RDWR, 0)
	mustDo(t, unix.Flock(a, unix.LOCK_EX|unix.LOCK_NB))
	wantErrno(t, "a second exclusive flock", unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
	mustDo(t, unix.Flock(a, unix.LOCK_UN))
	mustDo(t, unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB))
	lock := func(fd int, typ int16, start, n int64) error {
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: typ, Start: start, Len: n})
	}
	mustDo(t, lock(a, unix.F_WRLCK, 0, 5))
	wantErrno(t, "an overlapping record lock", lock(b, unix.F_WRLCK, 4, 2), unix.EAGAIN)
	mustDo(t, lock(b, unix.F_WRLCK, 5, 5))
	mustDo(t, unix.Close(a))
	mustDo(t, lock(b, unix.F_WRLCK, 0, 10))
}

func (s *mountSuite) fallocate(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "data")
	fd := openFD(t, f, unix.O_RDWR, 0)
	if err := unix.Fallocate(fd, 0, 0, 10_000); s.lacks(t, Preallocation, err, unix.EOPNOTSUPP) {
		equal(t, "size after a refused fallocate", fstatOf(t, fd).Size, 4)
	} else {
		mustDo(t, err)
		equal(t, "size after fallocate", fstatOf(t, fd).Size, 10_000)
	}
	equal(t, "content", preadFD(t, fd, 4, 0), "data")
	end, err := unix.Seek(fd, 0, unix.SEEK_HOLE)
	mustDo(t, err)
	if end < 4 {
		t.Errorf("the data has a hole at %d", end)
	}
	_, err = unix.Seek(fd, 1<<20, unix.SEEK_DATA)
	wantErrno(t, "data beyond the end", err, unix.ENXIO)
}

// holes checks ranges that are whole 128 KiB, so that every granularity will do.
func (s *mountSuite) holes(t *testing.T) {
	const unit = 128 << 10
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	fd := openFD(t, f, unix.O_RDWR|unix.O_CREAT, 0o600)
	for _, at := range []int64{2, 3, 6} {
		_, err := unix.Pwrite(fd, bytes.Repeat([]byte{'x'}, unit), at*unit)
		mustDo(t, err)
	}
	err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, 20*unit)
	if s.lacks(t, Preallocation, err, unix.EOPNOTSUPP) {
		t.Skip("SKIP: see above")
	}
	mustDo(t, err)
	equal(t, "size after fallocate that keeps it", fstatOf(t, fd).Size, 7*unit)
	seek := func(what string, from int64, whence int, want int64) {
		t.Helper()
		got, err := unix.Seek(fd, from*unit, whence)
		if mustDo(t, err); got != want*unit {
			t.Errorf("%s: found at %d, want %d", what, got, want*unit)
		}
	}
	seek("the first data", 0, unix.SEEK_DATA, 2)
	seek("the hole after it", 2, unix.SEEK_HOLE, 4)
	seek("the data after that", 4, unix.SEEK_DATA, 6)
	seek("the hole at the end", 6, unix.SEEK_HOLE, 7)
	blocks := fstatOf(t, fd).Blocks
	mustDo(t, unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 3*unit, unit))
	seek("the hole that was punched", 2, unix.SEEK_HOLE, 3)
	equal(t, "blocks that were given back", (blocks-fstatOf(t, fd).Blocks)*512, unit)
	mustDo(t, unix.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, 6*unit+5, 2*unit))
	equal(t, "size after zeroing past the end", fstatOf(t, fd).Size, 8*unit+5)
	want := make([]byte, 8*unit+5)
	copy(want[2*unit:], bytes.Repeat([]byte{'x'}, unit))
	copy(want[6*unit:], "xxxxx")
	wantFile(t, f, string(want))
	wantErrno(t, "a mode that is no mode", unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE, 0, unit), unix.EOPNOTSUPP)
	wantOutput(t, shellIn(t, dir, `cp f g; cmp f g && [ $(stat -c %b g) -le $(stat -c %b f) ] && echo sparse`), "sparse\n")
}
