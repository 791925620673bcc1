package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var mountXattrTests = []mountTest{
	{"attributes are kept", "metadata lives in attributes, of files and of directories", (*mountSuite).xattrs},
	{"attribute errors", "cp -a goes on after ENOTSUP and stops after anything else", (*mountSuite).xattrErrors},
	{"attribute sizes", "programs ask for the size first, with an empty buffer", (*mountSuite).xattrSizes},
	{"access control lists are refused", "a list that is stored without effect makes cp -p and sed -i lose modes", (*mountSuite).acls},
}

func getXattr(path, name string) (string, error) {
	p := make([]byte, 1<<16)
	n, err := unix.Lgetxattr(path, name, p)
	if err != nil {
		return "", err
	}
	return string(p[:n]), nil
}

func listXattrs(t *testing.T, path string) []string {
	t.Helper()
	p := make([]byte, 1<<16)
	n, err := unix.Llistxattr(path, p)
	mustDo(t, err)
	list := strings.Split(strings.TrimSuffix(string(p[:n]), "\x00"), "\x00")
	slices.Sort(list)
	return list
}

func (s *mountSuite) xattrs(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	putFile(t, f, "")
	for _, path := range []string{f, dir} {
		mustDo(t, unix.Lsetxattr(path, "user.k", []byte("v\x00\xff"), 0))
		mustDo(t, unix.Lsetxattr(path, "user.empty", nil, 0))
		got, err := getXattr(path, "user.k")
		mustDo(t, err)
		equal(t, "value", got, "v\x00\xff")
		got, err = getXattr(path, "user.empty")
		mustDo(t, err)
		equal(t, "empty value", got, "")
		if list := listXattrs(t, path); !slices.Equal(list, []string{"user.empty", "user.k"}) {
			t.Errorf("names %q", list)
		}
		mustDo(t, unix.Lremovexattr(path, "user.empty"))
		mustDo(t, unix.Lsetxattr(path, "user.k", []byte("second"), unix.XATTR_REPLACE))
		if list := listXattrs(t, path); !slices.Equal(list, []string{"user.k"}) {
			t.Errorf("names after a removal %q", list)
		}
	}
	mustDo(t, os.Rename(f, f+"2"))
	got, err := getXattr(f+"2", "user.k")
	mustDo(t, err)
	equal(t, "value after a rename", got, "second")
	if os.Geteuid() == 0 {
		l := filepath.Join(dir, "l")
		mustDo(t, os.Symlink("f2", l))
		mustDo(t, unix.Lsetxattr(l, "trusted.k", []byte("of the link"), 0))
		_, err = getXattr(f+"2", "trusted.k")
		wantErrno(t, "a link's attribute on its target", err, unix.ENODATA)
	}
}

func (s *mountSuite) xattrErrors(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "")
	_, err := getXattr(f, "user.none")
	wantErrno(t, "get of nothing", err, unix.ENODATA)
	wantErrno(t, "remove of nothing", unix.Lremovexattr(f, "user.none"), unix.ENODATA)
	wantErrno(t, "replace of nothing", unix.Lsetxattr(f, "user.none", nil, unix.XATTR_REPLACE), unix.ENODATA)
	mustDo(t, unix.Lsetxattr(f, "user.k", nil, unix.XATTR_CREATE))
	wantErrno(t, "create of what exists", unix.Lsetxattr(f, "user.k", nil, unix.XATTR_CREATE), unix.EEXIST)
	for _, name := range []string{"nospace", "other.k", "system.other"} {
		wantErrno(t, "set "+name, unix.Lsetxattr(f, name, nil, 0), unix.EOPNOTSUPP)
		_, err := getXattr(f, name)
		wantErrno(t, "get "+name, err, unix.EOPNOTSUPP)
	}
}

func (s *mountSuite) xattrSizes(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "")
	big := bytes.Repeat([]byte("v"), 64<<10)
	mustDo(t, unix.Lsetxattr(f, "user.big", big, 0))
	got, err := getXattr(f, "user.big")
	mustDo(t, err)
	equal(t, "a value of the greatest size", got, string(big))
	n, err := unix.Lgetxattr(f, "user.big", nil)
	mustDo(t, err)
	equal(t, "size asked for", n, len(big))
	_, err = unix.Lgetxattr(f, "user.big", make([]byte, 10))
	wantErrno(t, "a buffer too small", err, unix.ERANGE)
	n, err = unix.Llistxattr(f, nil)
	mustDo(t, err)
	equal(t, "size of the list", n, len("user.big")+1)
	_, err = unix.Llistxattr(f, make([]byte, 3))
	wantErrno(t, "a list buffer too small", err, unix.ERANGE)
	name := "user." + strings.Repeat("n", 250)
	mustDo(t, unix.Lsetxattr(f, name, []byte("long"), 0))
	got, err = getXattr(f, name)
	mustDo(t, err)
	equal(t, "value under a long name", got, "long")
}

func (s *mountSuite) acls(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	putFile(t, f, "a\n")
	acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 4, 0, 4, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255}
	for _, name := range []string{"system.posix_acl_access", "system.posix_acl_default"} {
		wantErrno(t, "set "+name, unix.Setxattr(dir, name, acl, 0), unix.EOPNOTSUPP)
		_, err := getXattr(dir, name)
		wantErrno(t, "get "+name, err, unix.EOPNOTSUPP)
	}
	wantOutput(t, shellIn(t, dir, "chmod 751 f; cp -p f g; sed -i s/a/b/ f; install -m 4711 f h; stat -c %a f g h; cat f"), "751\n751\n4711\nb\n")
}
