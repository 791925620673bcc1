package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"golang.org/x/sys/unix"
)

var mountOrphanTests = []mountTest{
	{"a removed open file goes on", "scratch files are removed while open, then sized, written and stated", (*mountSuite).orphanUse},
	{"a removed open file is nowhere", "it must be in no listing, no count and no checkpoint, and not keep its directory", (*mountSuite).orphanHidden},
	{"a removed open file with another name", "removing one of two names must not touch the file", (*mountSuite).orphanTwin},
	{"a removed open file opens again", "programs reopen a removed file through /proc/self/fd", (*mountSuite).orphanReopen},
	{"the space of a removed open file comes back", "a log that was rotated away must not hold space after its last close", (*mountSuite).orphanSpace},
	{"many removed open files", "a test runner removes its whole work area with everything still open", (*mountSuite).orphanMany},
	{"files without a name", "a file that is made with O_TMPFILE appears whole or not at all", (*mountSuite).tmpfile},
	{"a removed directory", "tools remove the directory that a shell is in", (*mountSuite).orphanDir},
}

func (s *mountSuite) orphanUse(t *testing.T) {
	f := filepath.Join(s.dir(t), "t")
	fd := openFD(t, f, unix.O_RDWR|unix.O_CREAT|unix.O_SYNC, 0o600)
	_, err := unix.Write(fd, []byte("test data"))
	mustDo(t, err)
	mustDo(t, unix.Unlink(f))
	mustDo(t, unix.Ftruncate(fd, 16384))
	mustDo(t, unix.Fchmod(fd, 0o640))
	mustDo(t, unix.Futimes(fd, []unix.Timeval{{Sec: 1}, {Sec: 2}}))
	_, err = unix.Pwrite(fd, []byte("Z"), 0)
	mustDo(t, err)
	st := fstatOf(t, fd)
	equal(t, "size", st.Size, 16384)
	equal(t, "mode", st.Mode, uint32(unix.S_IFREG|0o640))
	equal(t, "access time", st.Atim.Sec, 1)
	equal(t, "links", st.Nlink, 0)
	if st.Mtim.Sec <= 2 {
		t.Errorf("the write did not move the mtime from %d", st.Mtim.Sec)
	}
	equal(t, "content", preadFD(t, fd, 3, 0), "Zes")
	mustDo(t, unix.Fsetxattr(fd, "user.k", []byte("v"), 0))
	p := make([]byte, 9)
	n, err := unix.Fgetxattr(fd, "user.k", p)
	mustDo(t, err)
	equal(t, "attribute", string(p[:n]), "v")
	mustDo(t, unix.Fsync(fd))
}

func (s *mountSuite) orphanHidden(t *testing.T) {
	dir := s.dir(t)
	d := filepath.Join(dir, "d")
	mustDo(t, os.Mkdir(d, 0o755))
	files := s.vault.Info().Files
	fd := openFD(t, filepath.Join(d, "f"), unix.O_RDWR|unix.O_CREAT, 0o600)
	_, err := unix.Write(fd, []byte("secret"))
	mustDo(t, err)
	before, err := s.vault.Commit(t.Context(), false)
	mustDo(t, err)
	mustDo(t, os.Remove(filepath.Join(d, "f")))
	wantListed(t, d)
	equal(t, "files in the vault", s.vault.Info().Files, files)
	after, err := s.vault.Commit(t.Context(), false)
	mustDo(t, err)
	changes, _, err := s.vault.Store().Diff(t.Context(), before, after, nil)
	mustDo(t, err)
	if len(changes) != 1 || changes[0].Kind != "deleted" {
		t.Errorf("the removal is the change %+v, want one deletion", changes)
	}
	mustDo(t, os.Remove(d))
	equal(t, "content without a directory", preadFD(t, fd, 10, 0), "secret")
	_, err = unix.Pwrite(fd, []byte("S"), 0)
	mustDo(t, err)
	equal(t, "content after a write", preadFD(t, fd, 10, 0), "Secret")
	wantListed(t, dir)
}

func (s *mountSuite) orphanTwin(t *testing.T) {
	dir := s.dir(t)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	putFile(t, a, "shared")
	mustDo(t, os.Link(a, b))
	fd := openFD(t, a, unix.O_RDWR, 0)
	mustDo(t, os.Remove(a))
	equal(t, "links", fstatOf(t, fd).Nlink, 1)
	_, err := unix.Pwrite(fd, []byte("S"), 0)
	mustDo(t, err)
	wantFile(t, b, "Shared")
	mustDo(t, unix.Close(fd))
	soon(t, "the content after the last close", func() bool {
		got, err := os.ReadFile(b)
		return err == nil && string(got) == "Shared"
	})
	equal(t, "links at the end", lstatOf(t, b).Nlink, 1)
	wantListed(t, dir, "b")
}

func (s *mountSuite) orphanReopen(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "again")
	fd := openFD(t, f, unix.O_RDWR, 0)
	mustDo(t, os.Remove(f))
	again := openFD(t, fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR, 0)
	mustDo(t, unix.Close(fd))
	equal(t, "content", preadFD(t, again, 10, 0), "again")
	_, err := unix.Pwrite(again, []byte("A"), 0)
	mustDo(t, err)
	equal(t, "content after a write", preadFD(t, again, 10, 0), "Again")
	equal(t, "size", fstatOf(t, again).Size, 5)
}

func (s *mountSuite) orphanSpace(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	s.noneUnlinked(t)
	before := s.vault.Info().Bytes
	fd := openFD(t, f, unix.O_RDWR|unix.O_CREAT, 0o600)
	_, err := unix.Write(fd, make([]byte, 1<<20))
	mustDo(t, err)
	mustDo(t, os.Remove(f))
	if got := s.vault.Info().Bytes; got < before+1<<20 {
		t.Errorf("an open file without a name counts as %d bytes", got-before)
	}
	mustDo(t, unix.Close(fd))
	soon(t, "the space", func() bool { return s.vault.Info().Bytes == before })
}

func (s *mountSuite) orphanMany(t *testing.T) {
	dir := filepath.Join(s.dir(t), "work")
	mustDo(t, os.Mkdir(dir, 0o755))
	const n = 200
	fds := make([]int, n)
	for i := range fds {
		fds[i] = openFD(t, filepath.Join(dir, fmt.Sprint(i)), unix.O_RDWR|unix.O_CREAT, 0o600)
		_, err := unix.Write(fds[i], []byte(fmt.Sprint(i)))
		mustDo(t, err)
	}
	mustDo(t, os.RemoveAll(dir))
	for i, fd := range fds {
		equal(t, "content", preadFD(t, fd, 10, 0), fmt.Sprint(i))
	}
}

func (s *mountSuite) tmpfile(t *testing.T) {
	dir := s.dir(t)
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o640)
	if s.lacks(t, NamelessFiles, err, unix.EOPNOTSUPP) {
		t.Skip("SKIP: see above")
	}
	mustDo(t, err)
	proc := fmt.Sprintf("/proc/self/fd/%d", fd)
	link := func(name string) error {
		return unix.Linkat(unix.AT_FDCWD, proc, unix.AT_FDCWD, filepath.Join(dir, name), unix.AT_SYMLINK_FOLLOW)
	}
	_, err = unix.Write(fd, make([]byte, 300_000))
	mustDo(t, err)
	_, err = unix.Pwrite(fd, []byte("whole"), 0)
	mustDo(t, err)
	st := fstatOf(t, fd)
	equal(t, "links", st.Nlink, 0)
	equal(t, "mode", st.Mode, uint32(unix.S_IFREG|0o640))
	wantListed(t, dir)
	cp, err := s.vault.Checkpoint(t.Context(), engine.CheckpointOptions{})
	mustDo(t, err)
	mustDo(t, link("f"))
	equal(t, "links", fstatOf(t, fd).Nlink, 1)
	equal(t, "inode number", lstatOf(t, filepath.Join(dir, "f")).Ino, st.Ino)
	equal(t, "size", lstatOf(t, filepath.Join(dir, "f")).Size, 300_000)
	mustDo(t, link("g"))
	mustDo(t, unix.Fsync(fd))
	mustDo(t, unix.Close(fd))
	wantListed(t, dir, "f", "g")
	equal(t, "links", lstatOf(t, filepath.Join(dir, "g")).Nlink, 2)
	fd = openFD(t, filepath.Join(dir, "g"), unix.O_RDONLY, 0)
	equal(t, "content", preadFD(t, fd, 5, 0), "whole")
	changes, _, err := s.vault.Store().Diff(t.Context(), cp.Root, mustCommit(t, s.vault), nil)
	mustDo(t, err)
	for _, c := range changes {
		if c.Kind != engine.Added && c.Path != filepath.Base(dir) {
			t.Errorf("the checkpoint before the name had %+v", c)
		}
	}
	excl, err := unix.Open(dir, unix.O_TMPFILE|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	mustDo(t, err)
	proc = fmt.Sprintf("/proc/self/fd/%d", excl)
	wantErrno(t, "a name for a file that wants none", link("h"), unix.ENOENT)
	mustDo(t, unix.Close(excl))
	s.noneUnlinked(t)
}

// noneUnlinked waits until files without a name that were closed are gone.
func (s *mountSuite) noneUnlinked(t *testing.T) {
	t.Helper()
	soon(t, "the end of files without a name", func() bool { return s.vault.Usage().UnlinkedFiles == 0 })
}

func mustCommit(t *testing.T, v *engine.Vault) engine.Root {
	t.Helper()
	root, err := v.Commit(t.Context(), false)
	mustDo(t, err)
	return root
}

func (s *mountSuite) orphanDir(t *testing.T) {
	dir := s.dir(t)
	d := filepath.Join(dir, "d")
	mustDo(t, os.Mkdir(d, 0o755))
	fd := openFD(t, d, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	mustDo(t, os.Remove(d))
	// libfuse says ESTALE where the kernel asks it before it looks itself.
	if _, err := unix.Openat(fd, "f", unix.O_CREAT|unix.O_WRONLY, 0o600); err != unix.ENOENT && err != unix.ESTALE {
		t.Errorf("create in a removed directory: %v, want ENOENT", err)
	}
	mustDo(t, os.Mkdir(d, 0o755))
	wantListed(t, d)
	if a, err := s.vault.Resolve(t.Context(), filepath.Base(dir)+"/d", false); err != nil || a.Ino == engine.RootIno {
		t.Errorf("the new directory is %+v, %v", a, err)
	}
}
