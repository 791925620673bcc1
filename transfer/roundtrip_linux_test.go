package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

// manifest describes every entry of a tree by all that a transfer keeps.
func manifest(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	got := map[string]string{}
	firstName := map[uint64]string{}
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		s := fmt.Sprintf("%o %d:%d mtime %d.%09d rdev %x", st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec, st.Rdev)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if firstName[st.Ino] == "" {
				firstName[st.Ino] = rel
			}
			s += fmt.Sprintf(" links %d of %q", st.Nlink, firstName[st.Ino])
		}
		more, err := inner(p, st)
		got[rel] = s + more
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// inner describes content and extended attributes.
func inner(p string, st unix.Stat_t) (string, error) {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target, err := os.Readlink(p)
		return " -> " + target, err
	case unix.S_IFREG:
		b, err := os.ReadFile(p)
		if err != nil {
			return "", err
		}
		attrs, err := xattrsOf(p)
		return fmt.Sprintf(" size %d %x%s", st.Size, sha256.Sum256(b), attrs), err
	case unix.S_IFDIR:
		return xattrsOf(p)
	}
	return "", nil
}

func xattrsOf(p string) (string, error) {
	b := make([]byte, 64<<10)
	n, err := unix.Llistxattr(p, b)
	if err != nil || n == 0 {
		return "", err
	}
	names := strings.Split(strings.TrimSuffix(string(b[:n]), "\x00"), "\x00")
	slices.Sort(names)
	s := ""
	for _, name := range names {
		n, err := unix.Lgetxattr(p, name, b)
		if err != nil {
			return "", err
		}
		s += fmt.Sprintf(" %s=%q", name, b[:n])
	}
	return s, nil
}

// must fails the test on the first error.
func must(tb testing.TB, errs ...error) {
	tb.Helper()
	for _, err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// oddTree fills dir with everything that is hard to copy. It returns how many
// sockets are in it, which no transfer keeps.
func oddTree(tb testing.TB, dir string) (sockets int) {
	tb.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(tb, dir, map[string]string{
		"empty": "", "one": "1", "modes/suid": "x", "modes/sgid": "x", "modes/none": "x", "modes/ro": "x", "modes/all": "x",
		strings.Repeat("n", 255): "255 bytes", "\xff\xfe\x80 not UTF-8": "bytes", "new\nline": "n", "-dash": "d", " blank ": "b",
		"*?[x]": "glob", "\u00e9 and e\u0301": "both forms", "names/CON": "device on Windows", "names/a:b": "stream",
	})
	oddSizes(tb, dir)
	must(tb, os.Chmod(at("modes/suid"), 0o755|fs.ModeSetuid), os.Chmod(at("modes/sgid"), 0o755|fs.ModeSetgid),
		os.Chmod(at("modes/none"), 0), os.Chmod(at("modes/ro"), 0o444), os.Chmod(at("modes/all"), 0o777|fs.ModeSticky))
	oddLinks(tb, dir)
	oddXattrs(tb, dir)
	oddHoles(tb, dir)
	must(tb, unix.Mkfifo(at("fifo"), 0o666), os.Chmod(at("fifo"), 0o622), os.Link(at("fifo"), at("fifo2")))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(tb, err, unix.Bind(fd, &unix.SockaddrUnix{Name: at("s")}), unix.Close(fd))
	if os.Geteuid() == 0 {
		must(tb, os.Chown(at("one"), 12345, 54321), os.Lchown(at("dangling"), 4_000_000_000, 7))
		if unix.Mknod(at("null"), unix.S_IFCHR|0o640, int(unix.Mkdev(1, 3))) == nil {
			must(tb, unix.Mknod(at("disk"), unix.S_IFBLK|0o600, int(unix.Mkdev(259, 70000))))
		}
	}
	deep := dir
	for range 1000 {
		deep = filepath.Join(deep, "d")
	}
	must(tb, os.MkdirAll(deep, 0o755))
	write(tb, deep, map[string]string{"bottom": "b"})
	oddDirsAndTimes(tb, dir)
	return 1
}

// oddSizes writes files around every boundary of the import.
func oddSizes(tb testing.TB, dir string) {
	for _, base := range []int{engine.ChunkSize, 2 * engine.ChunkSize, 1 << 20, 2 << 20, 3 << 20} {
		for _, delta := range []int{-1, 0, 1} {
			b := bytes.Repeat([]byte(fmt.Sprint(base)), (base+delta)/len(fmt.Sprint(base))+1)[:base+delta]
			write(tb, dir, map[string]string{fmt.Sprintf("sizes/%d%+d", base, delta): string(b)})
		}
	}
}

func oddLinks(tb testing.TB, dir string) {
	at := func(name string) string { return filepath.Join(dir, name) }
	must(tb, os.Symlink("/nowhere/at/all", at("dangling")), os.Symlink("..//./modes/../modes", at("relative")),
		os.Symlink(strings.Repeat("t/", 2000), at("long")), os.Symlink("\xff\n\xfe", at("bytes")), os.Symlink("self", at("self")),
		os.Link(at("dangling"), at("dangling2")),
		os.MkdirAll(at("z/links"), 0o755), os.MkdirAll(at("a/links"), 0o755))
	write(tb, dir, map[string]string{"m": "many names", "big": strings.Repeat("big with two names", 200_000)})
	for i := range 50 {
		must(tb, os.Link(at("m"), at(fmt.Sprintf("%c/links/%d", "az"[i%2], i))))
	}
	must(tb, os.Link(at("big"), at("a/big")))
}

func oddXattrs(tb testing.TB, dir string) {
	write(tb, dir, map[string]string{"x/file": "f"})
	for _, p := range []string{"x", "x/file", "sizes", "big"} {
		p = filepath.Join(dir, p)
		err := unix.Lsetxattr(p, "user.plain", []byte("value"), 0)
		if err == unix.ENOTSUP {
			tb.Log("no user attributes on this file system")
			return
		}
		must(tb, err, unix.Lsetxattr(p, "user.empty", nil, 0), unix.Lsetxattr(p, "user.\xff", []byte("\x00\xff"), 0),
			unix.Lsetxattr(p, "user.long", bytes.Repeat([]byte("v"), 1500), 0))
	}
}

// oddHoles writes files whose holes lie in every position.
func oddHoles(tb testing.TB, dir string) {
	must(tb, os.MkdirAll(filepath.Join(dir, "holes"), 0o755))
	for name, f := range map[string]struct {
		size int64
		data []int64 // offsets of a few bytes of data
	}{
		"all": {1 << 20, nil}, "first": {1 << 20, []int64{1<<20 - 100}}, "last": {1 << 20, []int64{0}},
		"middle": {1 << 20, []int64{0, 1<<20 - 100}}, "in a chunk": {200_000, []int64{10_000, 100_000, 140_000}},
		"odd end": {1<<20 + 777, []int64{300_001}}, "huge": {1 << 40, []int64{5, 1 << 30, 1<<40 - 50}}, "huge hole": {1 << 42, nil},
		"large": {64 << 20, []int64{4095, 4096, 33 << 20}},
	} {
		h, err := os.Create(filepath.Join(dir, "holes", name))
		must(tb, err, h.Truncate(f.size))
		for _, off := range f.data {
			_, err := h.WriteAt([]byte("some data"), off)
			must(tb, err)
		}
		must(tb, h.Close())
	}
}

// oddDirsAndTimes comes last: modes forbid and later changes move times.
func oddDirsAndTimes(tb testing.TB, dir string) {
	for name, mode := range map[string]fs.FileMode{
		"dirs/none": 0, "dirs/ro": 0o555, "dirs/sticky": 0o777 | fs.ModeSticky, "dirs/sgid": 0o775 | fs.ModeSetgid, "dirs/wx": 0o300,
	} {
		p := filepath.Join(dir, name)
		write(tb, p, map[string]string{"f": name, "sub/g": name})
		must(tb, os.Chmod(p, mode))
	}
	times := []int64{0, 1, -1_500_000_000, 1_234_567_890_123_456_789, 4_000_000_000_999_999_999}
	var names []string
	must(tb, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		names = append(names, p)
		return err
	}))
	for i := range names {
		p := names[len(names)-1-i] // entries before their directory
		t := times[i%len(times)] + int64(i)
		ts := []unix.Timespec{unix.NsecToTimespec(t + 1e9), unix.NsecToTimespec(t)}
		must(tb, unix.UtimesNanoAt(unix.AT_FDCWD, p, ts, unix.AT_SYMLINK_NOFOLLOW))
	}
}

// withoutHuge is the manifest, for which no file of terabytes can be read whole.
func withoutHuge(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	for _, name := range []string{"huge", "huge hole"} {
		must(tb, os.Remove(filepath.Join(dir, "holes", name)))
	}
	ts := []unix.Timespec{{}, {}}
	must(tb, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, "holes"), ts, 0))
	return manifest(tb, dir)
}

func TestRoundTripOfAllOddities(t *testing.T) {
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprintf("live=%v", live), func(t *testing.T) { roundTripOdd(t, live) })
	}
}

func roundTripOdd(t *testing.T, live bool) {
	work := t.TempDir()
	src, out := filepath.Join(work, "src"), filepath.Join(work, "out")
	sockets := oddTree(t, src)
	v := vaultIn(t, openStore(t, filepath.Join(work, "s.avfs")))
	rep := mustImport(t, v, src, "/odd", nil)
	wantSkip(t, rep, "s", engine.Unsupported, true)
	if rep.SkippedTotal != int64(sockets) {
		t.Errorf("report %+v", rep)
	}
	var r transfer.Reader = v
	if !live {
		snap, err := v.Snapshot(t.Context())
		must(t, err)
		defer v.Unpin(snap.Root())
		r = snap
	}
	back := mustExport(t, r, "/odd", out, nil)
	if back.Files != rep.Files || back.Dirs != rep.Dirs || back.Symlinks != rep.Symlinks || back.Others != rep.Others ||
		back.HardLinks != rep.HardLinks || back.Bytes != rep.Bytes || back.SkippedTotal != 0 {
		t.Errorf("the import reports %+v, the export %+v", rep, back)
	}
	must(t, os.Remove(filepath.Join(src, "s")))
	sameHoles(t, src, out)
	compareByTools(t, src, out)
	ts := []unix.Timespec{{Sec: 1}, {Sec: 1}} // removing the socket moved the time
	must(t, unix.UtimesNanoAt(unix.AT_FDCWD, src, ts, 0), unix.UtimesNanoAt(unix.AT_FDCWD, out, ts, 0))
	same(t, withoutHuge(t, out), withoutHuge(t, src))
}

// sameHoles checks that files with holes have about as many of them in out, and
// that their data is where it was.
func sameHoles(t *testing.T, src, out string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(src, "holes"))
	must(t, err)
	for _, f := range files {
		var a, b unix.Stat_t
		p, q := filepath.Join(src, "holes", f.Name()), filepath.Join(out, "holes", f.Name())
		must(t, unix.Stat(p, &a), unix.Stat(q, &b))
		if b.Size != a.Size || b.Blocks > a.Blocks {
			t.Errorf("%s: size %d and %d blocks, was %d and %d", f.Name(), b.Size, b.Blocks, a.Size, a.Blocks)
		}
		if f.Name() != "huge" {
			continue
		}
		h, err := os.Open(q)
		must(t, err)
		for _, off := range []int64{5, 1 << 30, 1<<40 - 50} {
			got := make([]byte, 9)
			if _, err := h.ReadAt(got, off); err != nil || string(got) != "some data" {
				t.Errorf("huge at %d: %q, %v", off, got, err)
			}
		}
		must(t, h.Close())
	}
}

// compareByTools has other programs compare two trees, as far as they are here.
func compareByTools(t *testing.T, src, out string) {
	t.Helper()
	list := func(dir string) string {
		cmd := exec.Command("find", ".", "-printf", `%p %m %s %T@ %n %l %U %G %y\n`)
		cmd.Dir = dir
		b, err := cmd.Output()
		if err != nil {
			t.Logf("no find -printf: %v", err)
			return ""
		}
		lines := strings.Split(string(b), "\n")
		slices.Sort(lines)
		var kept []string
		for _, l := range lines {
			if strings.HasSuffix(l, " d") { // sizes and link counts of directories are the file system's business
				f := strings.Fields(l)
				l = strings.Join(append([]string{f[0], f[1]}, f[3:]...), " ")
			}
			if !strings.HasPrefix(l, ". ") { // its time moved with the socket
				kept = append(kept, l)
			}
		}
		return strings.Join(kept, "\n")
	}
	if a, b := list(src), list(out); a != b {
		t.Errorf("find lists\n%.2000s\nand before\n%.2000s", b, a)
	}
	if _, err := exec.LookPath("rsync"); err != nil {
		t.Log("no rsync here")
		return
	}
	args := []string{"-aHXnic", "--devices", "--specials", "--delete", "--exclude=/holes/huge*", src + "/", out + "/"}
	b, err := exec.Command("rsync", args...).CombinedOutput()
	for line := range strings.Lines(string(b)) {
		if !strings.HasSuffix(line, " ./\n") {
			t.Errorf("rsync says %s", line)
		}
	}
	must(t, err)
}

func TestRoundTripOfTheGoTree(t *testing.T) {
	src, work := goTree(t), t.TempDir()
	out := filepath.Join(work, "out")
	v := vaultIn(t, openStore(t, filepath.Join(work, "s.avfs")))
	rep := importDurably(t, v, src, "/go")
	begin := time.Now()
	back := mustExport(t, v, "/go", out, nil)
	t.Logf("export %v", time.Since(begin))
	if back.Files != rep.Files || back.Bytes != rep.Bytes || back.Dirs != rep.Dirs {
		t.Errorf("the import reports %+v, the export %+v", rep, back)
	}
	same(t, manifest(t, out), manifest(t, src))
	compareByTools(t, src, out)
	if b, err := exec.Command("diff", "-r", "--no-dereference", src, out).CombinedOutput(); err != nil {
		t.Errorf("diff: %v\n%.2000s", err, b)
	}
}

// Importing a tree that the store knows costs the space of its entries, not of its
// content.
func TestImportOfTheGoTreeAgain(t *testing.T) {
	src, path := goTree(t), filepath.Join(t.TempDir(), "s.avfs")
	var took [2]time.Duration
	var size [2]int64
	for i := range took {
		s := openStore(t, path)
		if i == 0 {
			_, err := s.CreateVault(t.Context(), "main")
			must(t, err)
		}
		v, err := s.Vault(t.Context(), "main")
		must(t, err)
		begin := time.Now()
		importDurably(t, v, src, fmt.Sprintf("/go%d", i))
		took[i] = time.Since(begin)
		checkAndClose(t, s)
		info, err := os.Stat(path)
		must(t, err)
		size[i] = info.Size()
	}
	t.Logf("first %v, %d bytes stored; again %v, %d bytes more", took[0], size[0], took[1], size[1]-size[0])
	if float64(size[1]) > 1.05*float64(size[0]) {
		t.Errorf("importing it again made the store grow from %d to %d bytes", size[0], size[1])
	}
}
