package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var mountAttrTests = []mountTest{
	{"times keep every nanosecond", "build tools compare stamps below the second, and before 1970", (*mountSuite).times},
	{"single times", "touch -a must leave the modification time alone, or make rebuilds everything", (*mountSuite).singleTimes},
	{"what moves which time", "backup tools and digest caches trust the ctime", (*mountSuite).movingTimes},
	{"inode numbers are stable", "digest caches and hard link detection go by the inode number", (*mountSuite).stableInodes},
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
	write(t, f, "1")
	for _, want := range []unix.Timespec{
		{Sec: 1704164645, Nsec: 123456789}, {Sec: 0, Nsec: 1}, {Sec: -1, Nsec: 999999999}, {Sec: -86400, Nsec: 0}, {Sec: 4102444800, Nsec: 5},
	} {
		mustDo(t, unix.UtimesNanoAt(unix.AT_FDCWD, f, []unix.Timespec{want, {Sec: want.Sec + 1, Nsec: want.Nsec}}, 0))
		st := lstat(t, f)
		same(t, "access time", st.Atim, want)
		same(t, "modification time", st.Mtim, unix.Timespec{Sec: want.Sec + 1, Nsec: want.Nsec})
	}
	l := f + "link"
	mustDo(t, os.Symlink("f", l))
	mustDo(t, unix.UtimesNanoAt(unix.AT_FDCWD, l, []unix.Timespec{{Sec: 5}, {Sec: 6}}, unix.AT_SYMLINK_NOFOLLOW))
	same(t, "time of a link itself", lstat(t, l).Mtim.Sec, 6)
	same(t, "time of its target", lstat(t, f).Mtim.Sec, 4102444801)
}

func (s *mountSuite) singleTimes(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	write(t, f, "1")
	set := func(atime, mtime unix.Timespec) {
		t.Helper()
		mustDo(t, unix.UtimesNanoAt(unix.AT_FDCWD, f, []unix.Timespec{atime, mtime}, 0))
	}
	omit, now := unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Nsec: unix.UTIME_NOW}
	set(unix.Timespec{Sec: 100, Nsec: 1}, unix.Timespec{Sec: 200, Nsec: 2})
	set(unix.Timespec{Sec: 300, Nsec: 3}, omit)
	st := lstat(t, f)
	same(t, "modification time after setting the other", st.Mtim, unix.Timespec{Sec: 200, Nsec: 2})
	same(t, "access time", st.Atim, unix.Timespec{Sec: 300, Nsec: 3})
	set(omit, unix.Timespec{Sec: 400, Nsec: 4})
	st = lstat(t, f)
	same(t, "access time after setting the other", st.Atim, unix.Timespec{Sec: 300, Nsec: 3})
	same(t, "modification time", st.Mtim, unix.Timespec{Sec: 400, Nsec: 4})
	start := time.Now().Add(-time.Second)
	set(omit, now)
	st = lstat(t, f)
	if at := time.Unix(st.Mtim.Unix()); at.Before(start) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("now is %v", at)
	}
	same(t, "access time after setting the other to now", st.Atim, unix.Timespec{Sec: 300, Nsec: 3})
	set(now, omit)
	if at := time.Unix(lstatAtim(t, f)); at.Before(start) {
		t.Errorf("access time now is %v", at)
	}
	set(now, now)
	set(omit, omit)
}

func lstatAtim(t *testing.T, path string) (sec, nsec int64) {
	t.Helper()
	st := lstat(t, path)
	return st.Atim.Unix()
}

func (s *mountSuite) movingTimes(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	write(t, f, "1")
	mustDo(t, os.Chtimes(f, time.Unix(1000, 0), time.Unix(1000, 0)))
	step := func(what string, fn func() error, ctime, mtime bool) {
		t.Helper()
		before := lstat(t, f)
		time.Sleep(5 * time.Millisecond)
		mustDo(t, fn())
		after := lstat(t, f)
		same(t, what+" moves the ctime", after.Ctim != before.Ctim, ctime)
		same(t, what+" moves the mtime", after.Mtim != before.Mtim, mtime)
	}
	step("chmod", func() error { return os.Chmod(f, 0o600) }, true, false)
	step("link", func() error { return os.Link(f, f+"2") }, true, false)
	step("unlink of one of two", func() error { return os.Remove(f + "2") }, true, false)
	step("setting an attribute", func() error { return unix.Setxattr(f, "user.k", nil, 0) }, true, false)
	step("reading", func() error { _, err := os.ReadFile(f); return err }, false, false)
	step("stat and list", func() error { _, err := os.ReadDir(dir); return err }, false, false)
	step("writing", func() error { return os.WriteFile(f, []byte("2"), 0) }, true, true)
	step("truncating", func() error { return os.Truncate(f, 0) }, true, true)
	d := lstat(t, dir)
	time.Sleep(5 * time.Millisecond)
	write(t, f+"3", "")
	if after := lstat(t, dir); after.Mtim == d.Mtim || after.Ctim == d.Ctim {
		t.Error("a new name does not move its directory's times")
	}
}

func (s *mountSuite) stableInodes(t *testing.T) {
	dir := s.dir(t)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "1")
	ino := lstat(t, a).Ino
	write(t, a, "22")
	mustDo(t, os.Chmod(a, 0o600))
	mustDo(t, os.Rename(a, b))
	same(t, "inode number after write, chmod and rename", lstat(t, b).Ino, ino)
	write(t, a, "new")
	mustDo(t, os.Rename(a, b))
	if lstat(t, b).Ino == ino {
		t.Error("a replaced file keeps its inode number")
	}
	mustDo(t, os.Remove(b))
	write(t, b, "")
	if lstat(t, b).Ino == ino {
		t.Error("an inode number is used again")
	}
	eng, err := s.vault.Resolve(t.Context(), filepath.Base(dir)+"/b", false)
	mustDo(t, err)
	same(t, "the engine's number", uint64(eng.Ino), lstat(t, b).Ino)
}

func (s *mountSuite) owners(t *testing.T) {
	needsRoot(t)
	dir := s.dir(t)
	shellAs(t, nobody, dir, "umask 022; echo > f; mkdir d; ln -s f l; mkfifo p")
	for _, name := range []string{"f", "d", "l", "p"} {
		st := lstat(t, filepath.Join(dir, name))
		same(t, "owner of "+name, st.Uid, nobody.Uid)
		same(t, "group of "+name, st.Gid, nobody.Gid)
	}
	write(t, filepath.Join(dir, "mine"), "")
	same(t, "owner of root's file", lstat(t, filepath.Join(dir, "mine")).Uid, 0)
}

func (s *mountSuite) modes(t *testing.T) {
	needsRoot(t)
	dir := s.dir(t)
	wantShell(t, shellAs(t, nobody, dir, `
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
	write(t, filepath.Join(dir, "root"), "root's")
	mustDo(t, os.Chmod(filepath.Join(dir, "root"), 0o600))
	got := shellAs(t, nobody, dir, "cat root; chmod 777 root; chown nobody root")
	same(t, "refusals", strings.Count(got, "Permission denied")+strings.Count(got, "not permitted"), 3)
}

func (s *mountSuite) modeBits(t *testing.T) {
	dir := s.dir(t)
	wantShell(t, shell(t, dir, `umask 027; touch f; mkdir d; stat -c %a f d; umask 0; touch g; stat -c %a g
		for m in 0 4755 2755 1777 7777 644; do chmod $m f; stat -c %a f; done; mkdir -m 1777 t; stat -c %a t`),
		"640\n750\n666\n0\n4755\n2755\n1777\n7777\n644\n1777\n")
	f := filepath.Join(dir, "h")
	fd := open(t, f, unix.O_CREAT|unix.O_RDWR, 0o600)
	mustDo(t, unix.Fchmod(fd, 0o4711))
	same(t, "mode", fstat(t, fd).Mode, uint32(unix.S_IFREG|0o4711))
}

func (s *mountSuite) setUID(t *testing.T) {
	needsRoot(t)
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	write(t, f, "program")
	for what, script := range map[string]string{
		"a write":      "echo x >> f",
		"a truncation": ": > f",
	} {
		mustDo(t, unix.Chmod(f, 0o6777))
		if out := shellAs(t, nobody, dir, script); out != "" {
			t.Errorf("%s: %s", what, out)
		}
		same(t, "mode after "+what+" by another user", lstat(t, f).Mode&0o7777, 0o777)
	}
	mustDo(t, unix.Chmod(f, 0o6755))
	mustDo(t, unix.Chown(f, int(nobody.Uid), int(nobody.Gid)))
	same(t, "mode after chown", lstat(t, f).Mode&0o7777, 0o755)
}

func (s *mountSuite) setGID(t *testing.T) {
	needsRoot(t)
	dir := s.dir(t)
	d := filepath.Join(dir, "d")
	mustDo(t, os.Mkdir(d, 0o777))
	mustDo(t, os.Chown(d, 0, 1234))
	mustDo(t, unix.Chmod(d, 0o2777))
	shellAs(t, nobody, d, "umask 0; echo > f; mkdir sub; ln -s f l")
	for _, name := range []string{"f", "sub", "l"} {
		st := lstat(t, filepath.Join(d, name))
		same(t, "owner of "+name, st.Uid, nobody.Uid)
		same(t, "group of "+name, st.Gid, 1234)
	}
	same(t, "mode of a subdirectory", lstat(t, filepath.Join(d, "sub")).Mode&0o7777, 0o2777)
}

func (s *mountSuite) sticky(t *testing.T) {
	needsRoot(t)
	d := filepath.Join(s.dir(t), "d")
	mustDo(t, os.Mkdir(d, 0o777))
	mustDo(t, unix.Chmod(d, 0o1777))
	write(t, filepath.Join(d, "root"), "")
	got := shellAs(t, nobody, d, "echo > own; mv own own2; mv root x; rm -f root; mv own2 root; rm own2")
	same(t, "refusals", strings.Count(got, "not permitted"), 3)
	wantNames(t, d, "root")
}

func (s *mountSuite) chown(t *testing.T) {
	needsRoot(t)
	f := filepath.Join(s.dir(t), "f")
	write(t, f, "")
	mustDo(t, unix.Chown(f, 1001, 1002))
	mustDo(t, unix.Chown(f, -1, 1003))
	mustDo(t, unix.Chown(f, 1004, -1))
	mustDo(t, unix.Chown(f, -1, -1))
	st := lstat(t, f)
	same(t, "owner", st.Uid, 1004)
	same(t, "group", st.Gid, 1003)
	mustDo(t, os.Symlink("f", f+"l"))
	mustDo(t, unix.Lchown(f+"l", 7, 8))
	same(t, "owner of a link", lstat(t, f+"l").Uid, 7)
	same(t, "owner of its target", lstat(t, f).Uid, 1004)
}

func (s *mountSuite) statfs(t *testing.T) {
	var st unix.Statfs_t
	mustDo(t, unix.Statfs(s.point, &st))
	if st.Bavail == 0 || st.Blocks < st.Bfree || st.Bsize <= 0 || st.Files == 0 || st.Ffree == 0 {
		t.Errorf("figures that no program believes: %+v", st)
	}
	same(t, "name length", st.Namelen, 255)
	used := func() int64 {
		mustDo(t, unix.Statfs(s.point, &st))
		return int64(st.Blocks-st.Bfree) * st.Bsize
	}
	before := used()
	f := filepath.Join(s.dir(t), "f")
	write(t, f, strings.Repeat("x", 1<<20))
	if got := used() - before; got < 1<<20 {
		t.Errorf("a file of 1 MiB uses %d bytes", got)
	}
}
