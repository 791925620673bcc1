package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"golang.org/x/sys/unix"
)

var mountAttrTests = []mountTest{
	{"times keep every nanosecond", "build tools compare stamps below the second, and before 1970", (*mountSuite).times},
	{"single times", "touch -a must leave the modification time alone, or make rebuilds everything", (*mountSuite).singleTimes},
	{"what moves which time", "backup tools and digest caches trust the ctime", (*mountSuite).movingTimes},
	{"inode numbers are stable", "digest caches and hard link detection go by the inode number", (*mountSuite).stableInodes},
	{"inode numbers outlive the mount", "a digest cache must still be right after a remount, a fork or a restore", (*mountSuite).lastingInodes},
	{"new files belong to the caller", "git refuses a repository of somebody else", (*mountSuite).owners},
	{"modes are enforced", "a secret that was just locked away must be closed at once", (*mountSuite).modes},
	{"umask and mode bits", "installers set every mode bit and check it", (*mountSuite).modeBits},
	{"set-uid ends with a write", "a program that anyone may overwrite must not keep its rights", (*mountSuite).setUID},
	{"set-gid directories", "shared work trees pass their group on", (*mountSuite).setGID},
	{"sticky directories", "in a shared directory nobody may remove another's files", (*mountSuite).sticky},
	{"chown", "an owner of -1 means leave it", (*mountSuite).chown},
	{"file system figures", "editors and installers look at the free space before they write", (*mountSuite).statfs},
}

func (s *mountSuite) times(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "1")
	for _, want := range []unix.Timespec{
		{Sec: 1704164645, Nsec: 123456789}, {Sec: 0, Nsec: 1}, {Sec: -1, Nsec: 999999999}, {Sec: -86400, Nsec: 0}, {Sec: 4102444800, Nsec: 5},
	} {
		mustDo(t, unix.UtimesNanoAt(unix.AT_FDCWD, f, []unix.Timespec{want, {Sec: want.Sec + 1, Nsec: want.Nsec}}, 0))
		st := lstatOf(t, f)
		equal(t, "access time", st.Atim, want)
		equal(t, "modification time", st.Mtim, unix.Timespec{Sec: want.Sec + 1, Nsec: want.Nsec})
	}
	l := f + "link"
	mustDo(t, os.Symlink("f", l))
	mustDo(t, unix.UtimesNanoAt(unix.AT_FDCWD, l, []unix.Timespec{{Sec: 5}, {Sec: 6}}, unix.AT_SYMLINK_NOFOLLOW))
	equal(t, "time of a link itself", lstatOf(t, l).Mtim.Sec, 6)
	equal(t, "time of its target", lstatOf(t, f).Mtim.Sec, 4102444801)
}

func (s *mountSuite) singleTimes(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "1")
	set := func(atime, mtime unix.Timespec) {
		t.Helper()
		mustDo(t, unix.UtimesNanoAt(unix.AT_FDCWD, f, []unix.Timespec{atime, mtime}, 0))
	}
	omit, now := unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Nsec: unix.UTIME_NOW}
	set(unix.Timespec{Sec: 100, Nsec: 1}, unix.Timespec{Sec: 200, Nsec: 2})
	set(unix.Timespec{Sec: 300, Nsec: 3}, omit)
	st := lstatOf(t, f)
	equal(t, "modification time after setting the other", st.Mtim, unix.Timespec{Sec: 200, Nsec: 2})
	equal(t, "access time", st.Atim, unix.Timespec{Sec: 300, Nsec: 3})
	set(omit, unix.Timespec{Sec: 400, Nsec: 4})
	st = lstatOf(t, f)
	equal(t, "access time after setting the other", st.Atim, unix.Timespec{Sec: 300, Nsec: 3})
	equal(t, "modification time", st.Mtim, unix.Timespec{Sec: 400, Nsec: 4})
	start := time.Now().Add(-time.Second)
	set(omit, now)
	st = lstatOf(t, f)
	if at := time.Unix(st.Mtim.Unix()); at.Before(start) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("now is %v", at)
	}
	equal(t, "access time after setting the other to now", st.Atim, unix.Timespec{Sec: 300, Nsec: 3})
	set(now, omit)
	if at := time.Unix(lstatAtim(t, f)); at.Before(start) {
		t.Errorf("access time now is %v", at)
	}
	set(now, now)
	set(omit, omit)
}

func lstatAtim(t *testing.T, path string) (sec, nsec int64) {
	t.Helper()
	st := lstatOf(t, path)
	return st.Atim.Unix()
}

func (s *mountSuite) movingTimes(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	putFile(t, f, "1")
	mustDo(t, os.Chtimes(f, time.Unix(1000, 0), time.Unix(1000, 0)))
	step := func(what string, fn func() error, ctime, mtime bool) {
		t.Helper()
		before := lstatOf(t, f)
		time.Sleep(5 * time.Millisecond)
		mustDo(t, fn())
		after := lstatOf(t, f)
		equal(t, what+" moves the ctime", after.Ctim != before.Ctim, ctime)
		equal(t, what+" moves the mtime", after.Mtim != before.Mtim, mtime)
	}
	step("chmod", func() error { return os.Chmod(f, 0o600) }, true, false)
	step("link", func() error { return os.Link(f, f+"2") }, true, false)
	step("unlink of one of two", func() error { return os.Remove(f + "2") }, true, false)
	step("setting an attribute", func() error { return unix.Setxattr(f, "user.k", nil, 0) }, true, false)
	step("reading", func() error { _, err := os.ReadFile(f); return err }, false, false)
	step("stat and list", func() error { _, err := os.ReadDir(dir); return err }, false, false)
	step("writing", func() error { return os.WriteFile(f, []byte("2"), 0) }, true, true)
	step("truncating", func() error { return os.Truncate(f, 0) }, true, true)
	d := lstatOf(t, dir)
	time.Sleep(5 * time.Millisecond)
	putFile(t, f+"3", "")
	if after := lstatOf(t, dir); after.Mtim == d.Mtim || after.Ctim == d.Ctim {
		t.Error("a new name does not move its directory's times")
	}
}

func (s *mountSuite) stableInodes(t *testing.T) {
	dir := s.dir(t)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	putFile(t, a, "1")
	ino := lstatOf(t, a).Ino
	putFile(t, a, "22")
	mustDo(t, os.Chmod(a, 0o600))
	mustDo(t, os.Rename(a, b))
	equal(t, "inode number after write, chmod and rename", lstatOf(t, b).Ino, ino)
	putFile(t, a, "new")
	mustDo(t, os.Rename(a, b))
	if lstatOf(t, b).Ino == ino {
		t.Error("a replaced file keeps its inode number")
	}
	mustDo(t, os.Remove(b))
	putFile(t, b, "")
	if lstatOf(t, b).Ino == ino {
		t.Error("an inode number is used again")
	}
	eng, err := s.vault.Resolve(t.Context(), filepath.Base(dir)+"/b", false)
	mustDo(t, err)
	equal(t, "the engine's number", uint64(eng.Ino), lstatOf(t, b).Ino)
}

func (s *mountSuite) lastingInodes(t *testing.T) {
	ctx := t.Context()
	store, v, _ := newMemoryVault(t, nil)
	number := map[string]uint64{}
	same := func(t *testing.T, what, point string) {
		t.Helper()
		for name, ino := range number {
			equal(t, "inode number of "+name+" "+what, lstatOf(t, filepath.Join(point, name)).Ino, ino)
		}
	}
	var cp engine.Checkpoint
	t.Run("first", func(t *testing.T) { // its end unmounts
		point := s.mount(t, v)
		mustDo(t, os.MkdirAll(filepath.Join(point, "d"), 0o755))
		putFile(t, filepath.Join(point, "d", "f"), "1")
		mustDo(t, os.Link(filepath.Join(point, "d", "f"), filepath.Join(point, "twin")))
		mustDo(t, os.Symlink("f", filepath.Join(point, "l")))
		for _, name := range []string{".", "d", "d/f", "twin", "l"} {
			number[name] = lstatOf(t, filepath.Join(point, name)).Ino
		}
		var err error
		cp, err = v.Checkpoint(ctx, engine.CheckpointOptions{})
		mustDo(t, err)
		mustDo(t, os.Remove(filepath.Join(point, "twin")))
		putFile(t, filepath.Join(point, "twin"), "another")
		_, err = v.Restore(ctx, cp.Root, nil)
		mustDo(t, err)
		same(t, "after a restore", point)
	})
	if len(number) == 0 {
		t.Skip("SKIP: nothing was mounted")
	}
	t.Run("second", func(t *testing.T) { same(t, "after a remount", s.mount(t, v)) })
	fork, err := store.Fork(ctx, "work", "fork")
	mustDo(t, err)
	t.Run("fork", func(t *testing.T) {
		point := s.mount(t, fork)
		same(t, "in a fork", point)
		putFile(t, filepath.Join(point, "new"), "")
		putFile(t, filepath.Join(s.mount(t, v), "new"), "")
		a, err := fork.Resolve(ctx, "new", false)
		mustDo(t, err)
		b, err := v.Resolve(ctx, "new", false)
		if mustDo(t, err); a.Ino == b.Ino {
			t.Errorf("a fork and its origin both gave the number %d to a new file", a.Ino)
		}
	})
}

func (s *mountSuite) owners(t *testing.T) {
	needsRoot(t)
	dir := s.dir(t)
	shellInAs(t, nobody, dir, "umask 022; echo > f; mkdir d; ln -s f l; mkfifo p")
	for _, name := range []string{"f", "d", "l", "p"} {
		st := lstatOf(t, filepath.Join(dir, name))
		equal(t, "owner of "+name, st.Uid, nobody.Uid)
		equal(t, "group of "+name, st.Gid, nobody.Gid)
	}
	putFile(t, filepath.Join(dir, "mine"), "")
	equal(t, "owner of root's file", lstatOf(t, filepath.Join(dir, "mine")).Uid, 0)
}

func (s *mountSuite) modes(t *testing.T) {
	needsRoot(t)
	dir := s.dir(t)
	wantOutput(t, shellInAs(t, nobody, dir, `
		echo s > f; chmod 000 f; cat f; mkdir d; echo t > d/x; cat d/x; chmod 000 d; cat d/x; ls d; chmod 755 d; cat d/x
		chmod 400 f; (echo x > f) 2>&1 | grep -o 'Permission denied'; chmod 555 d; rm -f d/x; touch d/y; chmod 600 f; cat f`),
		`cat: f: Permission denied
t
cat: d/x: Permission denied
ls: cannot open directory 'd': Permission denied
t
Permission denied
rm: cannot remove 'd/x': Permission denied
touch: cannot touch 'd/y': Permission denied
s
`)
	putFile(t, filepath.Join(dir, "root"), "root's")
	mustDo(t, os.Chmod(filepath.Join(dir, "root"), 0o600))
	got := shellInAs(t, nobody, dir, "cat root; chmod 777 root; chown nobody root")
	equal(t, "refusals", strings.Count(got, "Permission denied")+strings.Count(got, "not permitted"), 3)
}

func (s *mountSuite) modeBits(t *testing.T) {
	dir := s.dir(t)
	wantOutput(t, shellIn(t, dir, `umask 027; touch f; mkdir d; stat -c %a f d; umask 0; touch g; stat -c %a g
		for m in 0 4755 2755 1777 7777 644; do chmod $m f; stat -c %a f; done; mkdir -m 1777 t; stat -c %a t`),
		"640\n750\n666\n0\n4755\n2755\n1777\n7777\n644\n1777\n")
	f := filepath.Join(dir, "h")
	fd := openFD(t, f, unix.O_CREAT|unix.O_RDWR, 0o600)
	mustDo(t, unix.Fchmod(fd, 0o4711))
	equal(t, "mode", fstatOf(t, fd).Mode, uint32(unix.S_IFREG|0o4711))
}

func (s *mountSuite) setUID(t *testing.T) {
	needsRoot(t)
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	putFile(t, f, "program")
	for what, script := range map[string]string{
		"a write":      "echo x >> f",
		"a truncation": ": > f",
	} {
		mustDo(t, unix.Chmod(f, 0o6777))
		if out := shellInAs(t, nobody, dir, script); out != "" {
			t.Errorf("%s: %s", what, out)
		}
		equal(t, "mode after "+what+" by another user", lstatOf(t, f).Mode&0o7777, 0o777)
	}
	mustDo(t, unix.Chmod(f, 0o6755))
	mustDo(t, unix.Chown(f, int(nobody.Uid), int(nobody.Gid)))
	equal(t, "mode after chown", lstatOf(t, f).Mode&0o7777, 0o755)
	fifo, sub := filepath.Join(dir, "fifo"), filepath.Join(dir, "sub")
	mustDo(t, unix.Mkfifo(fifo, 0o600))
	mustDo(t, unix.Mkdir(sub, 0o700))
	for path, want := range map[string]uint32{fifo: 0o755, sub: 0o6755} {
		mustDo(t, unix.Chmod(path, 0o6755))
		mustDo(t, unix.Chown(path, int(nobody.Uid), int(nobody.Gid)))
		equal(t, "mode of "+filepath.Base(path)+" after chown", lstatOf(t, path).Mode&0o7777, want)
	}
}

func (s *mountSuite) setGID(t *testing.T) {
	needsRoot(t)
	dir := s.dir(t)
	d := filepath.Join(dir, "d")
	mustDo(t, os.Mkdir(d, 0o777))
	mustDo(t, os.Chown(d, 0, 1234))
	mustDo(t, unix.Chmod(d, 0o2777))
	shellInAs(t, nobody, d, "umask 0; echo > f; mkdir sub; ln -s f l")
	for _, name := range []string{"f", "sub", "l"} {
		st := lstatOf(t, filepath.Join(d, name))
		equal(t, "owner of "+name, st.Uid, nobody.Uid)
		equal(t, "group of "+name, st.Gid, 1234)
	}
	equal(t, "mode of a subdirectory", lstatOf(t, filepath.Join(d, "sub")).Mode&0o7777, 0o2777)
}

func (s *mountSuite) sticky(t *testing.T) {
	needsRoot(t)
	d := filepath.Join(s.dir(t), "d")
	mustDo(t, os.Mkdir(d, 0o777))
	mustDo(t, unix.Chmod(d, 0o1777))
	putFile(t, filepath.Join(d, "root"), "")
	got := shellInAs(t, nobody, d, "echo > own; mv own own2; mv root x; rm -f root; mv own2 root; rm own2")
	equal(t, "refusals", strings.Count(got, "not permitted"), 3)
	wantListed(t, d, "root")
}

func (s *mountSuite) chown(t *testing.T) {
	needsRoot(t)
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "")
	mustDo(t, unix.Chown(f, 1001, 1002))
	mustDo(t, unix.Chown(f, -1, 1003))
	mustDo(t, unix.Chown(f, 1004, -1))
	mustDo(t, unix.Chown(f, -1, -1))
	st := lstatOf(t, f)
	equal(t, "owner", st.Uid, 1004)
	equal(t, "group", st.Gid, 1003)
	mustDo(t, os.Symlink("f", f+"l"))
	mustDo(t, unix.Lchown(f+"l", 7, 8))
	equal(t, "owner of a link", lstatOf(t, f+"l").Uid, 7)
	equal(t, "owner of its target", lstatOf(t, f).Uid, 1004)
}

func (s *mountSuite) statfs(t *testing.T) {
	var st unix.Statfs_t
	mustDo(t, unix.Statfs(s.point, &st))
	if st.Bavail == 0 || st.Blocks < st.Bfree || st.Bsize <= 0 || st.Files == 0 || st.Ffree == 0 {
		t.Errorf("figures that no program believes: %+v", st)
	}
	equal(t, "name length", st.Namelen, 255)
	used := func() int64 {
		mustDo(t, unix.Statfs(s.point, &st))
		return int64(st.Blocks-st.Bfree) * st.Bsize
	}
	before := used()
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, strings.Repeat("x", 1<<20))
	if got := used() - before; got < 1<<20 {
		t.Errorf("a file of 1 MiB uses %d bytes", got)
	}
}
