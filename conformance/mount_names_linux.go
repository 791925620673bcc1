package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

var mountNameTests = []mountTest{
	{"absent and present", "programs tell a missing file from a failure by the error number", (*mountSuite).absent},
	{"hard links are one file", "a package store counts on one inode, one size and one count under every name", (*mountSuite).hardLinks},
	{"links in parallel keep the count", "a package manager links one file a thousand times at once", (*mountSuite).parallelLinks},
	{"links stay in the vault", "package managers fall back to copying on EXDEV, and only on EXDEV", (*mountSuite).crossLinks},
	{"symbolic links are kept byte for byte", "a link that is followed or normalised makes rm -r delete what it points to", (*mountSuite).symlinks},
	{"long names", "the limit of 255 bytes is part of every unpacking tool", (*mountSuite).longNames},
	{"names are bytes", "archives hold names in other encodings, and both forms of an accent", (*mountSuite).byteNames},
	{"deep trees", "node_modules grow paths past PATH_MAX, reached step by step", (*mountSuite).deepTree},
	{"wrong types", "scripts rely on the exact error for a file in place of a directory", (*mountSuite).wrongTypes},
	{"directories", "rmdir of a full directory must never lose files", (*mountSuite).directories},
	{"fifos, sockets and devices", "build tools and databases put their sockets into the work tree", (*mountSuite).specialFiles},
}

func (s *mountSuite) absent(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	_, err := os.Lstat(f)
	wantErrno(t, "lstat of nothing", err, unix.ENOENT)
	wantErrno(t, "unlink of nothing", unix.Unlink(f), unix.ENOENT)
	putFile(t, f, "1")
	_, err = unix.Open(f, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
	wantErrno(t, "create what exists", err, unix.EEXIST)
	wantErrno(t, "mkdir over a file", unix.Mkdir(f, 0o700), unix.EEXIST)
	wantErrno(t, "symlink over a file", unix.Symlink("x", f), unix.EEXIST)
	wantErrno(t, "mknod over a file", unix.Mknod(f, unix.S_IFREG|0o600, 0), unix.EEXIST)
	wantErrno(t, "link over a file", unix.Link(f, f), unix.EEXIST)
	wantFile(t, f, "1")
	mustDo(t, unix.Mknod(f+"2", unix.S_IFREG|0o640, 0))
	equal(t, "mode after mknod", lstatOf(t, f+"2").Mode, uint32(unix.S_IFREG|0o640))
}

func (s *mountSuite) hardLinks(t *testing.T) {
	dir := s.dir(t)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	putFile(t, a, "first\n")
	mustDo(t, os.Link(a, b))
	fd := openFD(t, b, unix.O_WRONLY|unix.O_APPEND, 0)
	_, err := unix.Write(fd, []byte("more\n"))
	mustDo(t, err)
	sa, sb := lstatOf(t, a), lstatOf(t, b)
	equal(t, "inode numbers", sa.Ino, sb.Ino)
	equal(t, "size by the other name", sa.Size, 11)
	equal(t, "links", sa.Nlink, 2)
	wantFile(t, a, "first\nmore\n")
	mustDo(t, os.Chmod(a, 0o600))
	equal(t, "mode by the other name", lstatOf(t, b).Mode, uint32(unix.S_IFREG|0o600))
	mustDo(t, os.Remove(a))
	equal(t, "links after a removal", lstatOf(t, b).Nlink, 1)
	wantFile(t, b, "first\nmore\n")
}

func (s *mountSuite) parallelLinks(t *testing.T) {
	dir := s.dir(t)
	o := filepath.Join(dir, "o")
	putFile(t, o, "h")
	const workers, each = 8, 125
	all := func(fn func(name string) error) {
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					if err := fn(filepath.Join(dir, fmt.Sprintf("l%d-%d", w, i))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	all(func(name string) error { return os.Link(o, name) })
	equal(t, "links", lstatOf(t, o).Nlink, 1+workers*each)
	all(os.Remove)
	equal(t, "links at the end", lstatOf(t, o).Nlink, 1)
	mustDo(t, os.Link(o, filepath.Join(dir, "p")))
	mustDo(t, os.Remove(o))
	wantFile(t, filepath.Join(dir, "p"), "h")
}

func (s *mountSuite) crossLinks(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "1")
	outside := filepath.Join(t.TempDir(), "g")
	wantErrno(t, "link out of the mount", unix.Link(f, outside), unix.EXDEV)
	wantErrno(t, "rename out of the mount", unix.Rename(f, outside), unix.EXDEV)
	wantErrno(t, "link of a directory", unix.Link(filepath.Dir(f), f+"2"), unix.EPERM)
}

func (s *mountSuite) symlinks(t *testing.T) {
	dir := s.dir(t)
	targets := []string{"nowhere", "../real//./x/", "/etc/hostname", "\xff\xfe not utf-8", strings.Repeat("t", 4095)}
	for i, target := range targets {
		l := filepath.Join(dir, fmt.Sprint(i))
		mustDo(t, unix.Symlink(target, l))
		got, err := os.Readlink(l)
		mustDo(t, err)
		equal(t, "target", got, target)
		st := lstatOf(t, l)
		equal(t, "type", st.Mode&unix.S_IFMT, uint32(unix.S_IFLNK))
		equal(t, "size", st.Size, int64(len(target)))
	}
	keep := filepath.Join(dir, "keep")
	mustDo(t, os.Mkdir(keep, 0o755))
	putFile(t, filepath.Join(keep, "f"), "k")
	nm := filepath.Join(dir, "nm")
	mustDo(t, os.Mkdir(nm, 0o755))
	mustDo(t, os.Symlink("../keep", filepath.Join(nm, "link")))
	wantFile(t, filepath.Join(nm, "link", "f"), "k")
	mustDo(t, os.RemoveAll(nm))
	wantFile(t, filepath.Join(keep, "f"), "k")
	_, err := unix.Open(filepath.Join(dir, "0"), unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	wantErrno(t, "open a link without following", err, unix.ELOOP)
	mustDo(t, unix.Symlink("loop", filepath.Join(dir, "loop")))
	_, err = os.Stat(filepath.Join(dir, "loop"))
	wantErrno(t, "a link to itself", err, unix.ELOOP)
}

func (s *mountSuite) longNames(t *testing.T) {
	dir := s.dir(t)
	fits, over := strings.Repeat("a", 255), strings.Repeat("a", 256)
	putFile(t, filepath.Join(dir, fits), "1")
	japanese := strings.Repeat("\u3042", 85)
	putFile(t, filepath.Join(dir, japanese), "2")
	at := filepath.Join(dir, over)
	wantErrno(t, "mkdir", unix.Mkdir(at, 0o700), unix.ENAMETOOLONG)
	_, err := unix.Open(at, unix.O_CREAT|unix.O_WRONLY, 0o600)
	wantErrno(t, "create", err, unix.ENAMETOOLONG)
	_, err = os.Lstat(at)
	wantErrno(t, "lstat", err, unix.ENAMETOOLONG)
	wantErrno(t, "link", unix.Link(filepath.Join(dir, fits), at), unix.ENAMETOOLONG)
	wantErrno(t, "rename", unix.Rename(filepath.Join(dir, fits), at), unix.ENAMETOOLONG)
	wantErrno(t, "symlink", unix.Symlink("x", at), unix.ENAMETOOLONG)
	wantListed(t, dir, fits, japanese)
}

func (s *mountSuite) byteNames(t *testing.T) {
	dir := s.dir(t)
	list := []string{"\x01\x7f", " lead", "a\nb", "caf\u00e9", "cafe\u0301", "latin\xe9", "CON", "\xff"}
	for _, n := range list {
		putFile(t, filepath.Join(dir, n), n)
	}
	for _, n := range list {
		wantFile(t, filepath.Join(dir, n), n)
	}
	equal(t, "entries", len(listNames(t, dir)), len(list))
	for _, n := range listNames(t, dir) {
		wantFile(t, filepath.Join(dir, n), n)
		mustDo(t, os.Remove(filepath.Join(dir, n)))
	}
	wantListed(t, dir)
}

func (s *mountSuite) deepTree(t *testing.T) {
	const depth = 30
	name := strings.Repeat("d", 200)
	fd := openFD(t, s.dir(t), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range depth {
		mustDo(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		mustDo(t, err)
		t.Cleanup(func() { _ = unix.Close(next) })
		fd = next
	}
	f, err := unix.Openat(fd, "f", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	mustDo(t, err)
	defer unix.Close(f)
	_, err = unix.Write(f, []byte("deep"))
	mustDo(t, err)
	var st unix.Stat_t
	mustDo(t, unix.Fstatat(fd, "f", &st, unix.AT_SYMLINK_NOFOLLOW))
	equal(t, "size at the bottom", st.Size, 4)
}

func (s *mountSuite) wrongTypes(t *testing.T) {
	dir := s.dir(t)
	f, d := filepath.Join(dir, "f"), filepath.Join(dir, "d")
	putFile(t, f, "1")
	mustDo(t, os.Mkdir(d, 0o755))
	_, err := os.Lstat(filepath.Join(f, "x"))
	wantErrno(t, "a name below a file", err, unix.ENOTDIR)
	wantErrno(t, "rmdir of a file", unix.Rmdir(f), unix.ENOTDIR)
	wantErrno(t, "unlink of a directory", unix.Unlink(d), unix.EISDIR)
	_, err = unix.Open(d, unix.O_WRONLY, 0)
	wantErrno(t, "open a directory for writing", err, unix.EISDIR)
	_, err = unix.Open(f, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	wantErrno(t, "open a file as a directory", err, unix.ENOTDIR)
	wantErrno(t, "truncate a directory", unix.Truncate(d, 0), unix.EISDIR)
	_, err = unix.Readlink(f, make([]byte, 10))
	wantErrno(t, "readlink of a file", err, unix.EINVAL)
}

func (s *mountSuite) directories(t *testing.T) {
	dir := s.dir(t)
	d := filepath.Join(dir, "d")
	mustDo(t, os.Mkdir(d, 0o750))
	equal(t, "mode", lstatOf(t, d).Mode, uint32(unix.S_IFDIR|0o750))
	before := lstatOf(t, dir).Nlink
	mustDo(t, os.Mkdir(filepath.Join(d, "sub"), 0o755))
	equal(t, "links of a directory with a subdirectory", lstatOf(t, d).Nlink, 3)
	equal(t, "links further up", lstatOf(t, dir).Nlink, before)
	wantErrno(t, "rmdir of a full directory", unix.Rmdir(d), unix.ENOTEMPTY)
	wantErrno(t, "rmdir of dot", unix.Rmdir(d+"/."), unix.EINVAL)
	wantErrno(t, "rmdir of dot-dot", unix.Rmdir(filepath.Join(d, "sub")+"/.."), unix.ENOTEMPTY)
	wantErrno(t, "rmdir of the mount point", unix.Rmdir(s.point), unix.EBUSY)
	mustDo(t, os.Remove(filepath.Join(d, "sub")))
	mustDo(t, os.Remove(d))
	wantListed(t, dir)
}

func (s *mountSuite) specialFiles(t *testing.T) {
	dir := s.dir(t)
	fifo := filepath.Join(dir, "fifo")
	mustDo(t, unix.Mkfifo(fifo, 0o640))
	equal(t, "mode of a fifo", lstatOf(t, fifo).Mode, uint32(unix.S_IFIFO|0o640))
	fd := openFD(t, fifo, unix.O_RDWR|unix.O_NONBLOCK, 0)
	_, err := unix.Write(fd, []byte("through"))
	mustDo(t, err)
	p := make([]byte, 20)
	n, err := unix.Read(fd, p)
	mustDo(t, err)
	equal(t, "read from a fifo", string(p[:n]), "through")

	sock := filepath.Join(dir, "sock")
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	mustDo(t, err)
	defer unix.Close(l)
	mustDo(t, unix.Bind(l, &unix.SockaddrUnix{Name: sock}))
	mustDo(t, unix.Listen(l, 1))
	equal(t, "type of a socket", lstatOf(t, sock).Mode&unix.S_IFMT, uint32(unix.S_IFSOCK))
	c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	mustDo(t, err)
	defer unix.Close(c)
	mustDo(t, unix.Connect(c, &unix.SockaddrUnix{Name: sock}))

	if os.Geteuid() == 0 {
		dev := filepath.Join(dir, "null")
		mustDo(t, unix.Mknod(dev, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		equal(t, "device number", lstatOf(t, dev).Rdev, unix.Mkdev(1, 3))
	}
}
