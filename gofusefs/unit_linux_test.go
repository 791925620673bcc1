package gofusefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
	"github.com/agentvfs/avfs/internal/view/viewtest"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Seconds before 1970 must survive the kernel's unsigned field.
func TestSplit(t *testing.T) {
	for _, ns := range []int64{1, -2e9 - 1} {
		if got := *nanoseconds(split(ns)); got != ns {
			t.Errorf("%d ns becomes %d", ns, got)
		}
	}
}

func TestOpenMode(t *testing.T) {
	for flags, want := range map[uint32]engine.OpenMode{
		unix.O_RDONLY: engine.OpenRead,
		unix.O_RDONLY | unix.O_TRUNC | unix.O_APPEND: engine.OpenRead,
		unix.O_WRONLY:                              engine.OpenWrite,
		unix.O_RDWR | unix.O_APPEND:                engine.OpenRead | engine.OpenWrite | engine.OpenAppend,
		unix.O_WRONLY | unix.O_TRUNC | unix.O_EXCL: engine.OpenWrite | engine.OpenTruncate,
	} {
		if got := openMode(flags); got != want {
			t.Errorf("flags %#x mean %d, want %d", flags, got, want)
		}
	}
}

func TestWantedTimes(t *testing.T) {
	const now = 7
	in := &fuse.SetAttrIn{}
	in.Atime, in.Atimensec, in.Mtime = 2, 3, 5
	in.Valid = fuse.FATTR_ATIME | fuse.FATTR_MTIME | fuse.FATTR_MTIME_NOW
	set := wanted(in, now)
	if *set.Atime != 2e9+3 || *set.Mtime != now {
		t.Errorf("times %d and %d", *set.Atime, *set.Mtime)
	}
	in.Valid = fuse.FATTR_MTIME
	if set = wanted(in, now); set.Atime != nil || *set.Mtime != 5e9 || set.Size != nil || set.Mode != nil || set.UID != nil {
		t.Errorf("one time asks for %+v", set)
	}
}

func TestNodeTable(t *testing.T) {
	table := newNodeTable()
	table.told(7)
	table.told(7)
	table.forget(7, 1)
	if !table.knows(7) {
		t.Error("forgotten with one to go")
	}
	table.forget(7, 1)
	if table.knows(7) || table.knows(8) || !table.knows(engine.RootIno) {
		t.Error("the table is wrong about what the kernel knows")
	}
}

// Equal hashes must give two entries two positions, in the same order each time.
func TestOrder(t *testing.T) {
	var list []listed
	for i := range 1000 {
		list = append(list, listed{DirEntry: engine.DirEntry{Name: fmt.Sprint(i)}})
	}
	list = append(list, list[0], list[1])
	order(list)
	again := slices.Clone(list)
	slices.Reverse(again)
	order(again)
	for i := range list {
		if i > 0 && list[i].pos <= list[i-1].pos || list[i].pos <= posParent || int64(list[i].pos) < 0 {
			t.Fatalf("entry %d is at %d, after %d", i, list[i].pos, list[max(i, 1)-1].pos)
		}
		if list[i].Name != again[i].Name || list[i].pos != again[i].pos {
			t.Fatalf("entry %d is %v, and then %v", i, list[i], again[i])
		}
	}
}

func TestListings(t *testing.T) {
	l := newListings()
	l.put(1, make([]listed, 10))
	l.put(1, make([]listed, 20))
	l.put(2, make([]listed, 30))
	if l.total != 50 {
		t.Errorf("%d entries are counted", l.total)
	}
	l.drop(1)
	l.drop(1)
	if _, ok := l.get(1); ok || l.total != 30 {
		t.Errorf("%d entries are counted after a drop", l.total)
	}
	l.put(2, make([]listed, 40))
	if l.total != 40 {
		t.Errorf("%d entries are counted after a second listing", l.total)
	}
	l.put(3, make([]listed, maxListed))
	if _, ok := l.get(2); ok || l.total != maxListed {
		t.Errorf("%d entries are kept", l.total)
	}
}

// TestListingEndsBeforeFailure lists an entry that cannot be looked up after one that
// can: what the kernel is told of must reach it, and the failure as well.
func TestListingEndsBeforeFailure(t *testing.T) {
	v := viewtest.NewVault(t)
	b := newVaultFS(v, false)
	defer func() {
		if err := b.shut(); err != nil {
			t.Error(err)
		}
	}()
	a, err := v.Mknod(t.Context(), engine.RootIno, "f", 0o644, 0, engine.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	const first, second = posParent + 1, posParent + 2
	b.lists.put(engine.RootIno, []listed{
		{engine.DirEntry{Name: "f", Ino: a.Ino}, first}, {engine.DirEntry{Name: strings.Repeat("x", 300)}, second},
	})
	read := func(off uint64) (fuse.Status, int) {
		in := &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: uint64(engine.RootIno)}, Offset: off}
		out := fuse.NewDirEntryList(make([]byte, 4096), off)
		return b.ReadDirPlus(nil, in, out), len(out.Bytes())
	}
	if status, n := read(posParent); status != fuse.OK || n == 0 || !b.nodes.knows(a.Ino) {
		t.Errorf("the first request gives %v and %d bytes", status, n)
	}
	if status, _ := read(first); status != fuse.Status(unix.ENAMETOOLONG) {
		t.Errorf("the second request gives %v", status)
	}
}

// A panic inside an operation must neither end the process nor vanish.
func TestPanicIsReported(t *testing.T) {
	b := newVaultFS(viewtest.NewVault(t), false)
	func() {
		defer func() {
			if status := b.panicked(recover()); status != fuse.EIO {
				t.Errorf("a panic gives %v", status)
			}
		}()
		b.do(func() error { panic("boom") })
	}()
	if err := b.shut(); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("the end reports %v", err)
	}
	if status := b.Unlink(nil, &fuse.InHeader{NodeId: 1}, "x"); status != ended {
		t.Errorf("an operation after the end gives %v", status)
	}
}

// TestKeeping checks that the kernel may keep what it is told, but not what a change
// from outside may have made old on the way.
func TestKeeping(t *testing.T) {
	v := viewtest.NewVault(t)
	b := newVaultFS(v, false)
	defer func() {
		if err := b.shut(); err != nil {
			t.Error(err)
		}
	}()
	root := &fuse.InHeader{NodeId: 1}
	var none, some fuse.EntryOut
	if status := b.Lookup(nil, root, "f", &none); status != fuse.OK || none.NodeId != 0 || none.EntryTimeout() != keep {
		t.Errorf("a missing name: %v, %+v", status, none)
	}
	if _, err := v.Mknod(t.Context(), engine.RootIno, "f", 0o644, 0, engine.Owner{}); err != nil {
		t.Fatal(err)
	}
	if status := b.Lookup(nil, root, "f", &some); status != fuse.OK || some.EntryTimeout() != keep || some.AttrTimeout() != keep {
		t.Errorf("a name: %v, %+v", status, some)
	}
	seen := b.changes.Load()
	if err := v.Unlink(b.own, engine.RootIno, "f"); err != nil {
		t.Fatal(err)
	}
	if b.keepFor(seen) != keep {
		t.Error("a change of its own counts as one from outside")
	}
	if _, err := v.Mkdir(t.Context(), engine.RootIno, "d", 0o755, engine.Owner{}); err != nil {
		t.Fatal(err)
	}
	if b.keepFor(seen) != 0 {
		t.Error("an answer that may be old may be kept")
	}
}

// TestStale checks that an inode which is gone sends the kernel back to the name.
func TestStale(t *testing.T) {
	b := newVaultFS(viewtest.NewVault(t), false)
	defer func() {
		if err := b.shut(); err != nil {
			t.Error(err)
		}
	}()
	gone := fuse.InHeader{NodeId: 99}
	if status := b.Open(nil, &fuse.OpenIn{InHeader: gone}, &fuse.OpenOut{}); status != fuse.Status(unix.ESTALE) {
		t.Errorf("open gives %v", status)
	}
	if status := b.Unlink(nil, &gone, "x"); status != fuse.ENOENT {
		t.Errorf("unlink gives %v", status)
	}
}

// TestOpenWhileReplaced opens a file again and again while it is replaced: it is
// there at every moment.
func TestOpenWhileReplaced(t *testing.T) {
	w := viewtest.MountAt(t, binding, viewtest.NewVault(t), nil)
	f, next := filepath.Join(w.Point(), "f"), filepath.Join(w.Point(), "next")
	if err := os.WriteFile(f, []byte("0"), 0o644); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(stop)
		for i := range 500 {
			err := os.WriteFile(next, fmt.Append(nil, i), 0o644)
			if err == nil {
				err = os.Rename(next, f)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for open := true; open; {
		select {
		case <-stop:
			open = false
		default:
		}
		if got, err := os.ReadFile(f); err != nil || len(got) == 0 {
			t.Errorf("read %q, %v", got, err)
		}
	}
	wg.Wait()
}

// TestMountsInEachOthersWay changes one directory through two mounts and from
// outside at the same time: each has to tell the others, and none may wait for ever.
func TestMountsInEachOthersWay(t *testing.T) {
	v := viewtest.NewVault(t)
	a, b := viewtest.MountAt(t, binding, v, nil), viewtest.MountAt(t, binding, v, nil)
	const rounds = 150
	var wg sync.WaitGroup
	work := func(dir, name string) {
		for i := range rounds {
			f := filepath.Join(dir, fmt.Sprint(name, i%7))
			err := os.WriteFile(f, fmt.Append(nil, i), 0o644)
			if err == nil {
				_, err = os.Stat(filepath.Join(dir, fmt.Sprint("shared", i%3)))
			}
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				err = os.WriteFile(filepath.Join(dir, fmt.Sprint("shared", i%3)), []byte(name), 0o644)
			}
			if err == nil {
				err = os.Remove(f)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	for _, name := range []string{"x", "y"} {
		wg.Go(func() { work(a.Point(), "a"+name) })
		wg.Go(func() { work(b.Point(), "b"+name) })
	}
	wg.Go(func() {
		for i := range rounds {
			name := fmt.Sprint("outside", i)
			if _, err := v.Mknod(t.Context(), engine.RootIno, name, 0o644, 0, engine.Owner{}); err != nil {
				t.Error(err)
			}
			for _, w := range []string{a.Point(), b.Point()} {
				if _, err := os.Stat(filepath.Join(w, name)); err != nil {
					t.Errorf("not seen at once: %v", err)
				}
			}
		}
	})
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }() // ends with the workers
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the mounts are stuck")
	}
	for i := range 3 {
		name := fmt.Sprint("shared", i)
		x, xerr := os.ReadFile(filepath.Join(a.Point(), name))
		y, yerr := os.ReadFile(filepath.Join(b.Point(), name))
		if xerr != nil || yerr != nil || string(x) != string(y) {
			t.Errorf("%s holds %q here, %v, and %q there, %v", name, x, xerr, y, yerr)
		}
	}
}

// TestBirth checks that the time of birth reaches programs.
func TestBirth(t *testing.T) {
	w := viewtest.MountAt(t, binding, viewtest.NewVault(t), nil)
	f := filepath.Join(w.Point(), "f")
	before := time.Now().Add(-time.Second)
	if err := os.WriteFile(f, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(f, time.Unix(5, 0), time.Unix(6, 0)); err != nil {
		t.Fatal(err)
	}
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, f, 0, unix.STATX_BTIME|unix.STATX_BASIC_STATS, &st); err != nil {
		t.Fatal(err)
	}
	if born := time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)); st.Mask&unix.STATX_BTIME == 0 || born.Before(before) || st.Mtime.Sec != 6 {
		t.Errorf("born at %v, changed at %d, mask %#x", born, st.Mtime.Sec, st.Mask)
	}
}

// TestCloseAsks checks that the kernel is to ask at the close of a file that was opened
// for writing in trouble, gets the reason then, and is not to ask otherwise.
func TestCloseAsks(t *testing.T) {
	db := faultkv.Wrap(memkv.New(engine.Tables()...), faultkv.Config{})
	st, err := engine.Create(t.Context(), db, &engine.Options{CommitInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	v, err := st.CreateVault(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	b := newVaultFS(v, false)
	var made fuse.CreateOut
	if status := b.Create(nil, &fuse.CreateIn{InHeader: fuse.InHeader{NodeId: fuse.FUSE_ROOT_ID}, Flags: unix.O_RDWR, Mode: 0o644}, "file", &made); !status.Ok() {
		t.Fatal(status)
	}
	opened := func(flags uint32) (fh uint64, asks bool) {
		t.Helper()
		var out fuse.OpenOut
		if status := b.Open(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: made.NodeId}, Flags: flags}, &out); !status.Ok() {
			t.Fatal(status)
		}
		return out.Fh, out.OpenFlags&fuse.FOPEN_NOFLUSH == 0
	}
	if _, asks := opened(unix.O_WRONLY); asks || made.OpenFlags&fuse.FOPEN_NOFLUSH == 0 {
		t.Error("a close is asked for without need")
	}
	db.Arm(faultkv.Rule{Op: faultkv.Update, Err: errors.New("a disk on fire")})
	if _, err := v.Commit(t.Context(), false); err == nil {
		t.Fatal("the commit did not fail")
	}
	write := &fuse.WriteIn{InHeader: fuse.InHeader{NodeId: made.NodeId}, Fh: made.Fh}
	if n, status := b.Write(nil, write, []byte("a")); n != 0 || status != fuse.EIO {
		t.Errorf("the write after the failure: %d bytes, %v", n, status)
	}
	if n, status := b.Write(nil, write, []byte("a")); n != 1 || !status.Ok() {
		t.Errorf("the write after that: %d bytes, %v", n, status)
	}
	if _, asks := opened(unix.O_RDONLY); asks {
		t.Error("a reader's close is asked for")
	}
	fh, asks := opened(unix.O_RDWR)
	if status := b.Flush(nil, &fuse.FlushIn{InHeader: fuse.InHeader{NodeId: made.NodeId}, Fh: fh}); !asks || status != fuse.EIO {
		t.Errorf("a close is asked for: %v; it ends with %v", asks, status)
	}
	if err := b.shut(); err != nil && !strings.Contains(err.Error(), "fire") {
		t.Error(err)
	}
}
