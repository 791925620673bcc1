package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

var mountRenameTests = []mountTest{
	{"rename, then open by the new name", "git replaces HEAD by a rename and reads it back at once", (*mountSuite).renameOpen},
	{"rename matrix", "a full directory must never be replaced, and tools test the exact error", (*mountSuite).renameMatrix},
	{"rename flags", "atomic exchange and no-replace are how package managers switch versions", (*mountSuite).renameFlags},
	{"an open file outlives its replacement", "a reader must see one version, the old one, to its end", (*mountSuite).renameOverOpen},
	{"a program may use the library's hidden names", "copying the leavings of another mount must not lose them", (*mountSuite).hiddenNames},
	{"rename keeps open directories", "a shell whose directory was moved goes on working in it", (*mountSuite).renameOpenDir},
}

func (s *mountSuite) renameOpen(t *testing.T) {
	dir := s.dir(t)
	d, e := filepath.Join(dir, "d"), filepath.Join(dir, "e")
	mustDo(t, os.MkdirAll(filepath.Join(d, "sub"), 0o755))
	putFile(t, filepath.Join(d, "sub", "t.tmp"), "atomic")
	fd := openFD(t, filepath.Join(d, "sub", "t.tmp"), unix.O_RDWR, 0)
	mustDo(t, os.Rename(filepath.Join(d, "sub", "t.tmp"), filepath.Join(d, "sub", "final")))
	wantFile(t, filepath.Join(d, "sub", "final"), "atomic")
	mustDo(t, os.Rename(d, e))
	wantFile(t, filepath.Join(e, "sub", "final"), "atomic")
	_, err := os.Lstat(d)
	wantErrno(t, "the old name", err, unix.ENOENT)
	_, err = unix.Pwrite(fd, []byte("A"), 0)
	mustDo(t, err)
	wantFile(t, filepath.Join(e, "sub", "final"), "Atomic")
}

func (s *mountSuite) renameMatrix(t *testing.T) {
	dir := s.dir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"a", "b", "c"} {
		mustDo(t, os.Mkdir(at(d), 0o755))
	}
	putFile(t, at("c/f"), "1")
	putFile(t, at("g"), "2")
	mustDo(t, unix.Rename(at("a"), at("b")))
	wantErrno(t, "directory over a full one", unix.Rename(at("b"), at("c")), unix.ENOTEMPTY)
	wantErrno(t, "file over a directory", unix.Rename(at("c/f"), at("b")), unix.EISDIR)
	wantErrno(t, "directory over a file", unix.Rename(at("b"), at("c/f")), unix.ENOTDIR)
	wantErrno(t, "directory into itself", unix.Rename(at("c"), at("c/x")), unix.EINVAL)
	wantErrno(t, "nothing", unix.Rename(at("no"), at("x")), unix.ENOENT)
	mustDo(t, unix.Rename(at("g"), at("c/f")))
	wantFile(t, at("c/f"), "2")
	mustDo(t, os.Link(at("c/f"), at("twin")))
	mustDo(t, unix.Rename(at("twin"), at("c/f")))
	equal(t, "links after a rename onto the same file", lstatOf(t, at("twin")).Nlink, 2)
	wantListed(t, dir, "b", "c", "twin")
}

func (s *mountSuite) renameFlags(t *testing.T) {
	dir := s.dir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	rename := func(from, to string, flags uint) error {
		return unix.Renameat2(unix.AT_FDCWD, at(from), unix.AT_FDCWD, at(to), flags)
	}
	putFile(t, at("a"), "A")
	putFile(t, at("b"), "B")
	err := rename("a", "c", unix.RENAME_NOREPLACE)
	if s.lacks(t, RenameFlags, err, unix.EINVAL) {
		t.Skip("SKIP: see above")
	}
	mustDo(t, err)
	wantErrno(t, "no-replace over a file", rename("c", "b", unix.RENAME_NOREPLACE), unix.EEXIST)
	mustDo(t, rename("c", "b", unix.RENAME_EXCHANGE))
	wantFile(t, at("c"), "B")
	wantFile(t, at("b"), "A")
	mustDo(t, os.MkdirAll(at("d/e"), 0o755))
	mustDo(t, rename("d", "b", unix.RENAME_EXCHANGE))
	wantFile(t, at("d"), "A")
	wantListed(t, at("b"), "e")
	wantErrno(t, "exchange with nothing", rename("b", "no", unix.RENAME_EXCHANGE), unix.ENOENT)
	wantErrno(t, "whiteout", rename("c", "x", unix.RENAME_WHITEOUT), unix.EINVAL)
	wantListed(t, dir, "b", "c", "d")
}

func (s *mountSuite) renameOverOpen(t *testing.T) {
	dir := s.dir(t)
	f, g := filepath.Join(dir, "f"), filepath.Join(dir, "g")
	putFile(t, f, "OLD")
	fd := openFD(t, f, unix.O_RDWR, 0)
	putFile(t, g, "NEW!")
	mustDo(t, os.Rename(g, f))
	equal(t, "by the old descriptor", preadFD(t, fd, 10, 0), "OLD")
	wantFile(t, f, "NEW!")
	_, err := unix.Pwrite(fd, []byte("ZZZZZZ"), 0)
	mustDo(t, err)
	wantFile(t, f, "NEW!")
	equal(t, "links of the replaced file", fstatOf(t, fd).Nlink, 0)
	wantListed(t, dir, "f")
}

func (s *mountSuite) hiddenNames(t *testing.T) {
	dir := s.dir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	const hidden = ".fuse_hidden00001a2b00007777"
	putFile(t, at("f"), "mine")
	fd := openFD(t, at("f"), unix.O_RDONLY, 0)
	mustDo(t, os.Rename(at("f"), at(hidden)))
	wantListed(t, dir, hidden)
	wantFile(t, at(hidden), "mine")
	mustDo(t, unix.Close(fd))
	putFile(t, at("closed"), "too")
	mustDo(t, os.Rename(at("closed"), at(hidden)))
	wantFile(t, at(hidden), "too")
	wantListed(t, dir, hidden)
}

func (s *mountSuite) renameOpenDir(t *testing.T) {
	dir := s.dir(t)
	d := filepath.Join(dir, "d")
	mustDo(t, os.Mkdir(d, 0o755))
	fd := openFD(t, d, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	mustDo(t, os.Rename(d, filepath.Join(dir, "moved")))
	f, err := unix.Openat(fd, "f", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	mustDo(t, err)
	mustDo(t, unix.Close(f))
	wantListed(t, filepath.Join(dir, "moved"), "f")
	equal(t, "inode of the moved directory", fstatOf(t, fd).Ino, lstatOf(t, filepath.Join(dir, "moved")).Ino)
}
