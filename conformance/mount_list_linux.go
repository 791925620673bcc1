package conformance

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var mountListTests = []mountTest{
	{"listing while deleting", "rm -r reads and removes in turns; what it skips keeps the directory", (*mountSuite).listDeleting},
	{"entries carry number and type", "find and git trust the listing and skip a stat for each name", (*mountSuite).listEntries},
	{"listing from the start again", "rewinddir must show what has come meanwhile", (*mountSuite).listRewind},
	{"a huge directory that changes", "what stays must be listed once, whatever comes and goes in between", (*mountSuite).listHuge},
	{"a large directory", "caches hold tens of thousands of files in one directory", (*mountSuite).listLarge},
}

func (s *mountSuite) listDeleting(t *testing.T) {
	dir := s.dir(t)
	const n = 3000
	for i := range n {
		mustDo(t, unix.Mknod(filepath.Join(dir, fmt.Sprintf("some-longer-name-%06d", i)), unix.S_IFREG|0o600, 0))
	}
	f, err := os.Open(dir)
	mustDo(t, err)
	defer f.Close()
	removed := 0
	for {
		list, err := f.Readdirnames(7)
		if err == io.EOF {
			break
		}
		mustDo(t, err)
		for _, name := range list {
			mustDo(t, os.Remove(filepath.Join(dir, name)))
			removed++
		}
	}
	equal(t, "removed", removed, n)
	wantListed(t, dir)
	mustDo(t, os.Remove(dir))
}

// rawEntry is one record of getdents64(2).
type rawEntry struct {
	ino  uint64
	typ  byte
	name string
}

// rawEntries reads a directory with "." and "..", which package os leaves out.
func rawEntries(t *testing.T, fd int) []rawEntry {
	t.Helper()
	var list []rawEntry
	p := make([]byte, 8192)
	for {
		n, err := unix.Getdents(fd, p)
		mustDo(t, err)
		if n == 0 {
			return list
		}
		for at := 0; at < n; {
			e := p[at:]
			size := int(e[16]) | int(e[17])<<8
			name := e[19:size]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			var ino uint64
			for i := range 8 {
				ino |= uint64(e[i]) << (8 * i)
			}
			list = append(list, rawEntry{ino, e[18], string(name)})
			at += size
		}
	}
}

func (s *mountSuite) listEntries(t *testing.T) {
	dir := s.dir(t)
	putFile(t, filepath.Join(dir, "file"), "")
	mustDo(t, os.Link(filepath.Join(dir, "file"), filepath.Join(dir, "twin")))
	mustDo(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	mustDo(t, os.Symlink("file", filepath.Join(dir, "link")))
	mustDo(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	types := map[uint32]byte{
		unix.S_IFREG: unix.DT_REG, unix.S_IFDIR: unix.DT_DIR, unix.S_IFLNK: unix.DT_LNK, unix.S_IFIFO: unix.DT_FIFO,
	}
	list := rawEntries(t, openFD(t, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0))
	for _, e := range list {
		st := lstatOf(t, dir+"/"+e.name)
		equal(t, "inode number of "+e.name, e.ino, st.Ino)
		equal(t, "type of "+e.name, e.typ, types[st.Mode&unix.S_IFMT])
	}
	equal(t, "entries with dot and dot-dot", len(list), 7)
	for _, e := range rawEntries(t, openFD(t, s.point, unix.O_RDONLY|unix.O_DIRECTORY, 0)) {
		if e.name == "." {
			equal(t, "inode number of the top", e.ino, lstatOf(t, s.point).Ino)
		}
	}
}

func (s *mountSuite) listRewind(t *testing.T) {
	dir := s.dir(t)
	putFile(t, filepath.Join(dir, "a"), "")
	fd := openFD(t, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	equal(t, "entries", len(rawEntries(t, fd)), 3)
	putFile(t, filepath.Join(dir, "b"), "")
	mustDo(t, os.Remove(filepath.Join(dir, "a")))
	putFile(t, filepath.Join(dir, "c"), "")
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	mustDo(t, err)
	var got []string
	for _, e := range rawEntries(t, fd) {
		got = append(got, e.name)
	}
	sort.Strings(got) // the order is the file system's business
	equal(t, "entries after a rewind", strings.Join(got, " "), ". .. b c")
}

func (s *mountSuite) listLarge(t *testing.T) {
	dir := s.dir(t)
	const n = 20_000
	for i := range n {
		mustDo(t, unix.Mknod(filepath.Join(dir, fmt.Sprintf("%05d", i)), unix.S_IFREG|0o600, 0))
	}
	list := listNames(t, dir)
	equal(t, "entries", len(list), n)
	for i, name := range list {
		if name != fmt.Sprintf("%05d", i) {
			t.Fatalf("entry %d is %q", i, name)
		}
	}
}

// listHuge lists a directory of 200,000 entries while others come and go.
func (s *mountSuite) listHuge(t *testing.T) {
	n := 200_000
	if testing.Short() {
		n = 5_000
	}
	dir := s.dir(t)
	for i := range n {
		mustDo(t, unix.Mknod(filepath.Join(dir, fmt.Sprintf("stay-%06d", i)), unix.S_IFREG|0o600, 0))
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- comeAndGo(dir, stop) }() // ends when stop is closed
	for range 2 {
		f, err := os.Open(dir)
		mustDo(t, err)
		seen := make(map[string]int, n)
		for {
			list, err := f.Readdirnames(500)
			if err == io.EOF {
				break
			}
			mustDo(t, err)
			for _, name := range list {
				seen[name]++
			}
		}
		mustDo(t, f.Close())
		stayed := 0
		for name, times := range seen {
			if times != 1 {
				t.Errorf("%s is listed %d times", name, times)
			}
			if strings.HasPrefix(name, "stay-") {
				stayed++
			}
		}
		equal(t, "entries that stayed", stayed, n)
	}
	close(stop)
	mustDo(t, <-stopped)
}

// comeAndGo makes and removes files until it is stopped.
func comeAndGo(dir string, stop <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		name := filepath.Join(dir, fmt.Sprintf("go-%d", i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			return err
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
}
