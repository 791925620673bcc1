package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mountRandomTests hold a file against a copy of it in memory, through random
// operations. The method is that of Apple's fsx.
var mountRandomTests = []mountTest{
	{"random operations on one file", "caches, holes, mappings and clones must agree in any order", (*mountSuite).randomFile},
}

// envSoak asks for the longest form of tests that can run for as long as one likes.
const envSoak = "AVFS_SOAK"

// What one run of random operations does. Long runs are several, with other seeds,
// so that each stays within a child's lifetime.
const (
	randomOps       = 10_000
	randomRunsLong  = 20
	randomRunsSoak  = 100 // a million operations together
	randomRunsShort = 2
	randomMaxSize   = 600_000 // bytes: several chunks and a part of one
	randomMaxIO     = 70_000
)

func (s *mountSuite) randomFile(t *testing.T) {
	dir := s.dir(t)
	runs := randomRunsLong
	switch {
	case testing.Short() || raceDetector:
		runs = randomRunsShort
	case os.Getenv(envSoak) != "":
		runs = randomRunsSoak
	}
	first := rand.Uint64() % 1_000_000
	for i := range runs {
		seed := first + uint64(i)
		s.child(t, "random", fmt.Sprintf("%d:%s", seed, filepath.Join(dir, "f")))
		if t.Failed() {
			t.Fatalf("the seed was %d, after %d runs", seed, i)
		}
	}
}

// shadowed is a file and what it must hold.
type shadowed struct {
	rng   *rand.Rand
	path  string
	fd    int
	want  []byte
	trace []string // the newest operations

	noFallocate bool // a refusal is no failure
}

// playRandom is the role of the child: arg is SEED:PATH.
func (s *mountSuite) playRandom(arg string) error {
	var seed uint64
	number, path, _ := strings.Cut(arg, ":")
	if _, err := fmt.Sscan(number, &seed); err != nil {
		return err
	}
	_, lacking := s.opts.Lacks[Preallocation]
	f := &shadowed{rng: rand.New(rand.NewPCG(seed, 1)), path: path, fd: -1, noFallocate: lacking}
	if err := f.reopen(unix.O_CREAT | unix.O_TRUNC); err != nil {
		return err
	}
	for i := range randomOps {
		if err := f.step(); err != nil {
			return fmt.Errorf("seed %d, operation %d: %w; before: %s", seed, i, err, strings.Join(f.trace, ", "))
		}
	}
	return errors.Join(f.check(), unix.Close(f.fd))
}

// step does one operation, and from time to time compares everything.
func (f *shadowed) step() error {
	ops := []struct {
		name   string
		weight int
		run    func(f *shadowed) error
	}{
		{"write", 20, (*shadowed).write}, {"read", 20, (*shadowed).read}, {"append", 5, (*shadowed).append},
		{"map write", 10, (*shadowed).mapWrite}, {"map read", 10, (*shadowed).mapRead}, {"truncate", 10, (*shadowed).truncate},
		{"punch", 6, (*shadowed).punch}, {"zero", 6, (*shadowed).zero}, {"allocate", 3, (*shadowed).allocate},
		{"clone", 6, (*shadowed).clone}, {"seek", 6, (*shadowed).seek}, {"sync", 2, (*shadowed).sync},
		{"forget", 3, (*shadowed).forget}, {"reopen", 2, func(f *shadowed) error { return f.reopen(0) }},
		{"check", 1, (*shadowed).check},
	}
	total := 0
	for _, op := range ops {
		total += op.weight
	}
	n := f.rng.IntN(total)
	for _, op := range ops {
		if n -= op.weight; n < 0 {
			f.note("%s", op.name)
			return op.run(f)
		}
	}
	return nil
}

func (f *shadowed) note(format string, args ...any) {
	const kept = 12
	if len(f.trace) == kept {
		f.trace = f.trace[1:]
	}
	f.trace = append(f.trace, fmt.Sprintf(format, args...))
}

// about adds the numbers of the operation that runs.
func (f *shadowed) about(off, n int) { f.trace[len(f.trace)-1] += fmt.Sprintf(" %d+%d", off, n) }

// span is a random range that ends by limit; near borders of pages and chunks more
// often than elsewhere.
func (f *shadowed) span(limit int) (off, n int) {
	if limit <= 0 {
		return 0, 0
	}
	off = f.rng.IntN(limit)
	if f.rng.IntN(3) == 0 {
		off &^= 4095
	}
	n = min(1+f.rng.IntN(randomMaxIO), limit-off)
	if f.rng.IntN(3) == 0 {
		n = min((n+4095)&^4095, limit-off)
	}
	f.about(off, n)
	return off, n
}

func (f *shadowed) fill(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(f.rng.Uint32())
	}
	return p
}

// grow makes the shadow at least n bytes long.
func (f *shadowed) grow(n int) {
	if n > len(f.want) {
		f.want = append(f.want, make([]byte, n-len(f.want))...)
	}
}

func (f *shadowed) same(what string, off int, got []byte) error {
	want := f.want[off : off+len(got)]
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s shows %#x at %d, want %#x", what, got[i], off+i, want[i])
		}
	}
	return nil
}

func (f *shadowed) write() error {
	off, n := f.span(randomMaxSize)
	p := f.fill(n)
	f.grow(off + n)
	copy(f.want[off:], p)
	return pwriteAll(f.fd, p, off)
}

func pwriteAll(fd int, p []byte, off int) error {
	for len(p) > 0 {
		n, err := unix.Pwrite(fd, p, int64(off))
		if err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	return nil
}

func (f *shadowed) read() error {
	off, n := f.span(len(f.want))
	p := make([]byte, n)
	got, err := preadAll(f.fd, p, off)
	if err != nil {
		return fmt.Errorf("read at %d: %w", off, err)
	}
	if got != n {
		return fmt.Errorf("read %d of %d bytes", got, n)
	}
	return f.same("read", off, p)
}

func preadAll(fd int, p []byte, off int) (done int, err error) {
	for done < len(p) {
		n, err := unix.Pread(fd, p[done:], int64(off+done))
		if err != nil || n == 0 {
			return done, err
		}
		done += n
	}
	return done, nil
}

// append writes through a second descriptor, which knows no offset.
func (f *shadowed) append() error {
	n := 1 + f.rng.IntN(5000)
	if len(f.want)+n > randomMaxSize {
		return nil
	}
	fd, err := unix.Open(f.path, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	p := f.fill(n)
	f.about(len(f.want), n)
	f.want = append(f.want, p...)
	_, err = unix.Write(fd, p)
	return errors.Join(err, unix.Close(fd))
}

// mapped runs fn on a mapping of the whole file.
func (f *shadowed) mapped(prot int, fn func(m []byte) error) error {
	if len(f.want) == 0 {
		return nil
	}
	m, err := unix.Mmap(f.fd, 0, len(f.want), prot, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	return errors.Join(fn(m), unix.Munmap(m))
}

func (f *shadowed) mapWrite() error {
	off, n := f.span(len(f.want))
	return f.mapped(unix.PROT_READ|unix.PROT_WRITE, func(m []byte) error {
		copy(m[off:], f.fill(n))
		copy(f.want[off:], m[off:off+n])
		if f.rng.IntN(2) == 0 {
			return unix.Msync(m, unix.MS_SYNC)
		}
		return nil
	})
}

func (f *shadowed) mapRead() error {
	off, n := f.span(len(f.want))
	return f.mapped(unix.PROT_READ, func(m []byte) error { return f.same("the mapping", off, m[off:off+n]) })
}

func (f *shadowed) truncate() error {
	size := f.rng.IntN(randomMaxSize)
	if f.rng.IntN(3) == 0 {
		size &^= 4095
	}
	f.about(size, 0)
	f.grow(size)
	f.want = f.want[:size:size]
	if f.rng.IntN(2) == 0 {
		return unix.Truncate(f.path, int64(size))
	}
	return unix.Ftruncate(f.fd, int64(size))
}

// fallocate does what a mount may lack; then nothing has changed.
func (f *shadowed) fallocate(mode uint32, limit int, then func(off, n int)) error {
	off, n := f.span(limit)
	if n == 0 {
		return nil
	}
	err := unix.Fallocate(f.fd, mode, int64(off), int64(n))
	if f.noFallocate && errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	then(off, n)
	return err
}

func (f *shadowed) clear(off, n int) {
	end := min(off+n, len(f.want))
	if off < end {
		clear(f.want[off:end])
	}
}

func (f *shadowed) punch() error {
	return f.fallocate(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, randomMaxSize, f.clear)
}

func (f *shadowed) zero() error {
	if f.rng.IntN(2) == 0 {
		return f.fallocate(unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE, randomMaxSize, f.clear)
	}
	return f.fallocate(unix.FALLOC_FL_ZERO_RANGE, randomMaxSize, func(off, n int) { f.grow(off + n); f.clear(off, n) })
}

func (f *shadowed) allocate() error {
	if f.rng.IntN(2) == 0 {
		return f.fallocate(unix.FALLOC_FL_KEEP_SIZE, randomMaxSize, func(int, int) {})
	}
	return f.fallocate(0, randomMaxSize, func(off, n int) { f.grow(off + n) })
}

// clone copies a range of the file to another place in it.
func (f *shadowed) clone() error {
	from, n := f.span(len(f.want))
	if n == 0 {
		return nil
	}
	to := f.rng.IntN(randomMaxSize)
	if f.rng.IntN(2) == 0 {
		to &^= 4095
	}
	n = min(n, randomMaxSize-to)
	if to < from+n && from < to+n || n <= 0 {
		return nil // ranges of one file must not overlap
	}
	f.about(to, n)
	data := bytes.Clone(f.want[from : from+n])
	f.grow(to + n)
	copy(f.want[to:], data)
	src, dst := int64(from), int64(to)
	for n > 0 {
		done, err := unix.CopyFileRange(f.fd, &src, f.fd, &dst, n, 0)
		if err != nil {
			return fmt.Errorf("copy_file_range: %w", err)
		}
		if done == 0 {
			return fmt.Errorf("copy_file_range left %d bytes", n)
		}
		n -= done
	}
	return nil
}

// seek looks for data and holes: a hole must be zeros, and data may be.
func (f *shadowed) seek() error {
	if len(f.want) == 0 {
		return nil
	}
	at := int64(f.rng.IntN(len(f.want)))
	data, err := unix.Seek(f.fd, at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		data = int64(len(f.want)) // nothing but a hole to the end
	} else if err != nil {
		return fmt.Errorf("seek data: %w", err)
	}
	if data < at || data > int64(len(f.want)) {
		return fmt.Errorf("data after %d is at %d of %d", at, data, len(f.want))
	}
	for i, b := range f.want[at:data] {
		if b != 0 {
			return fmt.Errorf("the hole at %d holds %#x at %d", at, b, at+int64(i))
		}
	}
	hole, err := unix.Seek(f.fd, at, unix.SEEK_HOLE)
	if err != nil {
		return fmt.Errorf("seek hole: %w", err)
	}
	if hole < at || hole > int64(len(f.want)) {
		return fmt.Errorf("the hole after %d is at %d of %d", at, hole, len(f.want))
	}
	return nil
}

func (f *shadowed) sync() error { return unix.Fsync(f.fd) }

// forget has the kernel drop what it keeps of the file.
func (f *shadowed) forget() error {
	return errors.Join(unix.Fdatasync(f.fd), unix.Fadvise(f.fd, 0, 0, unix.FADV_DONTNEED))
}

func (f *shadowed) reopen(flags int) error {
	if f.fd >= 0 {
		if err := unix.Close(f.fd); err != nil {
			return err
		}
	}
	var err error
	f.fd, err = unix.Open(f.path, unix.O_RDWR|unix.O_CLOEXEC|flags, 0o600)
	return err
}

// check compares size and content.
func (f *shadowed) check() error {
	var st unix.Stat_t
	if err := unix.Stat(f.path, &st); err != nil {
		return err
	}
	if st.Size != int64(len(f.want)) {
		return fmt.Errorf("the size is %d, want %d", st.Size, len(f.want))
	}
	p := make([]byte, len(f.want)+1)
	n, err := preadAll(f.fd, p, 0)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if n != len(f.want) {
		return fmt.Errorf("read %d bytes of %d", n, len(f.want))
	}
	return f.same("the file", 0, p[:n])
}
