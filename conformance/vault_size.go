package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// sizeOf is what the store takes on disk, in bytes.
func sizeOf(t *testing.T, st *engine.Store) int64 {
	t.Helper()
	sizer, ok := kv.As[kv.Sizer](st.Unwrap())
	if !ok {
		t.Skip("SKIP: this back end cannot say how large it is")
	}
	n, err := sizer.Size()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// newVault makes a store on disk with one vault.
func (s *vaultSuite) newVault(t *testing.T, path string) (*engine.Store, *engine.Vault) {
	t.Helper()
	st := s.open(t, path, true, nil)
	t.Cleanup(func() { _ = st.Close() }) // in a failed run
	v, err := st.CreateVault(context.Background(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return st, v
}

// randomReader gives n random bytes.
type randomReader struct {
	rng  *rand.ChaCha8
	left int64
	sum  hash.Hash
}

func newRandomReader(n int64) *randomReader {
	return &randomReader{rng: rand.NewChaCha8([32]byte{1}), left: n, sum: sha256.New()}
}

// Read implements io.Reader.
func (r *randomReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.rng.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.sum.Write(p[:n])
	return n, err
}

// testAppends appends lines to a large file: each must cost the end of the file, not
// the file.
func (s *vaultSuite) testAppends(t *testing.T) {
	s.needsDisk(t)
	size, limit := int64(500<<20), int64(50<<20)
	if testing.Short() {
		size = 30 << 20
	}
	ctx := context.Background()
	st, v := s.newVault(t, s.newPath(t))
	src := newRandomReader(size)
	h, a, err := v.Create(ctx, engine.RootIno, "log", 0o644, engine.Owner{}, engine.OpenWrite, true)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	for off := int64(0); off < size; off += int64(len(buf)) {
		if _, err := src.Read(buf); err != nil {
			t.Fatal(err)
		}
		if _, err := h.WriteAt(ctx, buf, off); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := v.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	for _, committing := range []bool{false, true} {
		before := sizeOf(t, st)
		for i := range 1000 {
			h, err := v.Open(ctx, a.Ino, engine.OpenWrite|engine.OpenAppend)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.WriteAt(ctx, fmt.Appendf(nil, "%d: something happened\n", i), 0); err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			if committing {
				if _, err := v.Commit(ctx, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := v.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		grown := sizeOf(t, st) - before
		t.Logf("1000 appends to %d MiB, commits in between %v: the store grew by %.1f MiB", size>>20, committing, float64(grown)/(1<<20))
		if grown > limit { // a database may need its time to merge what was replaced
			compact(t, st)
			grown = sizeOf(t, st) - before
			t.Logf("after compaction it is %.1f MiB", float64(grown)/(1<<20))
		}
		if grown > limit {
			t.Errorf("1000 appends made the store %d bytes larger", grown)
		}
	}
	mustCheck(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// testImport makes the same files twice: the second time stores almost nothing.
func (s *vaultSuite) testImport(t *testing.T) {
	s.needsDisk(t)
	files := 12_000
	if testing.Short() {
		files = 1_000
	}
	ctx := context.Background()
	st, v := s.newVault(t, s.newPath(t))
	var sizes []int64
	for _, top := range []string{"first", "second"} {
		rng := rand.New(rand.NewPCG(1, 1))
		began := time.Now()
		for i := range files {
			if i%50 == 0 {
				if _, err := v.MkdirAll(ctx, fmt.Sprintf("%s/%d", top, i/50), 0o755, engine.Owner{}); err != nil {
					t.Fatal(err)
				}
			}
			name := fmt.Sprintf("%s/%d/file%d.go", top, i/50, i)
			if _, err := v.WriteFile(ctx, name, bytes.NewReader(sourceText(rng)), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		took, raw := time.Since(began), sizeOf(t, st)
		if _, err := st.GC(ctx); err != nil { // logs and free pages do not count
			t.Fatal(err)
		}
		sizes = append(sizes, sizeOf(t, st))
		t.Logf("%s: %d files in %v, %.1f MiB before gc", top, files, took.Round(time.Millisecond), float64(raw)/(1<<20))
	}
	added := float64(sizes[1]-sizes[0]) / float64(sizes[0])
	t.Logf("the store has %.1f MiB, then %.1f: %.1f %% more", float64(sizes[0])/(1<<20), float64(sizes[1])/(1<<20), 100*added)
	if added > 0.05 {
		t.Errorf("the second copy added %.1f %%", 100*added)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// sourceText is a made-up source file of some kilobytes.
func sourceText(rng *rand.Rand) []byte {
	words := []string{"func", "return", "err", "if", "nil", "for", "range", "string", "int", "ctx", "{", "}", "(", ")", ":=", "\n\t"}
	var b bytes.Buffer
	for range 300 + rng.IntN(3000) {
		if rng.IntN(4) == 0 {
			b.WriteString(strconv.FormatUint(rng.Uint64N(1<<24), 36))
		} else {
			b.WriteString(words[rng.IntN(len(words))])
		}
		b.WriteByte(' ')
	}
	return b.Bytes()
}

func (s *vaultSuite) needsDisk(t *testing.T) {
	t.Helper()
	if s.opts.InMemory {
		t.Skipf("SKIP: a %s store is no file", s.driver.Name())
	}
}

const (
	roleVaultLarge = "vault-large"
	envLarge       = "AVFS_LARGE_BYTES"
)

// testLarge writes and reads a file of 4.5 GB in a process of its own, whose memory
// must stay small.
func (s *vaultSuite) testLarge(t *testing.T) {
	s.needsDisk(t)
	size, bound := int64(4_500_000_000), usualMemory
	switch {
	case raceDetector: // which takes memory of its own: the content alone is compared
		size = 32 << 20
	case testing.Short():
		size = 200 << 20
	}
	if s.opts.Memory != nil {
		bound = *s.opts.Memory
		t.Logf("the bound on memory is %d MiB: %s", bound.Bytes>>20, bound.Reason)
	}
	t.Setenv(envLarge, strconv.FormatInt(size, 10))
	began := time.Now()
	c := (&storeSuite{driver: s.driver, self: s.self}).startChild(t, roleVaultLarge, s.newPath(t))
	peaks := map[string]int64{}
	for line := c.line(); line != ""; line = c.line() {
		t.Log(line)
		var name string
		var n int64
		if got, err := fmt.Sscanf(line, "peak %s %d", &name, &n); got == 2 && err == nil {
			peaks[name] = n
		}
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("the child ends with %v", err)
	}
	kind := peakResident
	if bound.Mapped {
		kind = peakOwn
	}
	peak, told := peaks[kind]
	switch {
	case !told:
		t.Skip("SKIP: this system does not tell the peak of a process's memory")
	case raceDetector:
		t.Skipf("SKIP: the race detector takes memory of its own (peak %d MiB for %d MB)", peak>>20, size/1_000_000)
	case peak > bound.Bytes:
		t.Errorf("the peak was %d MiB", peak>>20)
	}
	t.Logf("%d MB written and read in %v", size/1_000_000, time.Since(began).Round(time.Millisecond))
}

// writeLarge is what the child of testLarge does.
func (s *vaultSuite) writeLarge(ctx context.Context, path string) error {
	size, err := strconv.ParseInt(os.Getenv(envLarge), 10, 64)
	if err != nil {
		return err
	}
	st, err := s.tryOpen(path, true, nil)
	if err != nil {
		return err
	}
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		return err
	}
	memory := watchMemory()
	src := newRandomReader(size)
	h, _, err := v.Create(ctx, engine.RootIno, "large", 0o644, engine.Owner{}, engine.OpenRead|engine.OpenWrite, true)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	began := time.Now()
	for off := int64(0); off < size; {
		n, err := src.Read(buf)
		if err != nil {
			return err
		}
		if _, err := h.WriteAt(ctx, buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	if err := h.Sync(ctx); err != nil {
		return err
	}
	fmt.Printf("written at %.0f MB/s\n", float64(size)/1e6/time.Since(began).Seconds())
	began = time.Now()
	sum := sha256.New()
	for off := int64(0); off < size; {
		n, err := h.ReadAt(ctx, buf, off)
		if err != nil {
			return err
		}
		sum.Write(buf[:n])
		off += int64(n)
	}
	fmt.Printf("read at %.0f MB/s\n", float64(size)/1e6/time.Since(began).Seconds())
	if !bytes.Equal(sum.Sum(nil), src.sum.Sum(nil)) {
		return fmt.Errorf("what was read is not what was written")
	}
	memory.report()
	return st.Close()
}

// The kinds of memory that a process reports the peak of.
const (
	peakResident = "resident" // all that is in memory, as the system counts it
	peakOwn      = "own"      // the same without pages of files, by samples
)

// memoryWatch samples the memory of this process until it reports.
type memoryWatch struct {
	stop chan struct{}
	own  chan int64 // the peak, once stopped; -1 where the system does not tell
}

func watchMemory() *memoryWatch {
	w := &memoryWatch{stop: make(chan struct{}), own: make(chan int64)}
	go func() {
		peak := int64(-1)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, memoryNow("RssAnon"))
			select {
			case <-tick.C:
			case <-w.stop:
				w.own <- peak
				return
			}
		}
	}()
	return w
}

// report ends the watch and prints what the system tells.
func (w *memoryWatch) report() {
	close(w.stop)
	if n := <-w.own; n >= 0 {
		fmt.Println("peak", peakOwn, n)
	}
	if n := memoryNow("VmHWM"); n >= 0 {
		fmt.Println("peak", peakResident, n)
	}
}

// memoryNow is the figure of that name that the system keeps of this process, in
// bytes, -1 where it does not tell.
func memoryNow(name string) int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return -1
	}
	defer func() { _ = f.Close() }() // it was only read
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var kib int64
		if n, err := fmt.Sscanf(sc.Text(), name+": %d kB", &kib); n == 1 && err == nil {
			return kib << 10
		}
	}
	return -1
}
