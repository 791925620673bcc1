package memfs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentvfs/avfs/internal/mountpoint"
	"golang.org/x/sys/unix"
)

// serveVar makes the test program serve a mount on the path that it holds.
const serveVar = "MEMFS_TEST_SERVE"

func TestMain(m *testing.M) {
	point := os.Getenv(serveVar)
	if point == "" {
		os.Exit(m.Run())
	}
	if err := Serve(point, func() { fmt.Println("ready") }); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// mount serves a new file system in a process of its own until the test ends.
func mount(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting without a setuid program needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no FUSE here: ", err)
	}
	point := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVar+"="+point)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := mountpoint.Detach(ctx, point, false); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the server said %q, %v", line, err)
	}
	return point
}

// TestPrograms runs programs whose every use of the file system has to hold.
func TestPrograms(t *testing.T) {
	point := mount(t)
	script := `set -eu
mkdir -p a/b; echo one >a/b/f; ln a/b/f a/g; ln -s b/f a/s
[ "$(cat a/s)" = one ]; [ "$(stat -c %h a/g)" = 2 ]
echo two >>a/g; [ "$(cat a/b/f)" = "$(printf 'one\ntwo')" ]
mv a/g a/b/f2; [ ! -e a/g ]; ! rmdir a 2>/dev/null
chmod 640 a/b/f; [ "$(stat -c %a a/b/f2)" = 640 ]
touch -d '2001-02-03 04:05:06.789 UTC' a/b/f; [ "$(stat -c %Y a/b/f)" = 981173106 ]
: >a/b/f; [ ! -s a/b/f2 ]
exec 3<a/b/f2; echo three >a/b/f; rm a/b/f a/b/f2; [ "$(cat <&3)" = three ]
for i in $(seq 500); do echo $i >a/$i; done; rm a/[1-4]*
[ "$(ls a | wc -l)" = 58 ]; rm -rf a; [ -z "$(ls -A)" ]`
	cmd := exec.Command("bash", "-xc", script)
	cmd.Dir = point
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestDatabase checks shared memory mappings and locks, which SQLite's log needs.
func TestDatabase(t *testing.T) {
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("sqlite3", filepath.Join(mount(t), "db"))
	cmd.Stdin = strings.NewReader("pragma journal_mode=wal; create table t(x); insert into t values(1),(2); pragma wal_checkpoint; select sum(x) from t;")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.HasPrefix(out, []byte("wal\n")) || !bytes.HasSuffix(out, []byte("\n3\n")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestContent compares random writes, growth and truncation with a plain slice.
func TestContent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c content
	var want []byte
	for i := range 2000 {
		off, data := rng.IntN(3*blockSize), bytes.Repeat([]byte{byte(i)}, rng.IntN(blockSize))
		switch rng.IntN(4) {
		case 0:
			c.truncate(int64(off))
			want = append(want, make([]byte, max(0, off-len(want)))...)[:off:off]
		case 1:
			c.grow(int64(off))
			want = append(want, make([]byte, max(0, off-len(want)))...)
		default:
			c.write(data, int64(off))
			want = append(want, make([]byte, max(0, off+len(data)-len(want)))...)
			copy(want[off:], data)
		}
		got := bytes.Repeat([]byte{0xff}, len(want)+1)
		if n := c.read(got, 0); n != len(want) || !bytes.Equal(got[:n], want) {
			t.Fatalf("step %d: %d bytes that differ from the %d expected ones", i, n, len(want))
		}
	}
}

// TestListing checks that a reader who goes on where he stopped sees each name that
// stays, whatever is removed meanwhile.
func TestListing(t *testing.T) {
	var l listing
	for i := range 100 {
		l.add(fmt.Sprint(i))
	}
	seen, pos := map[string]bool{}, uint64(0)
	for removed := 0; ; removed += 2 {
		at := l.search(pos + 1)
		if at == len(l.entries) {
			break
		}
		e := l.entries[at]
		pos, seen[e.name] = e.pos, true
		l.remove(fmt.Sprint(removed))
	}
	for i := 1; i < 100; i += 2 {
		if !seen[fmt.Sprint(i)] {
			t.Errorf("%d was not seen", i)
		}
	}
}

// TestRefusals checks the errors of names that are taken, missing or of another kind.
func TestRefusals(t *testing.T) {
	point := mount(t)
	file, dir := filepath.Join(point, "file"), filepath.Join(point, "dir")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want syscall.Errno
		got  error
	}{
		{syscall.EEXIST, os.Mkdir(dir, 0o755)},
		{syscall.EEXIST, os.Link(file, dir)},
		{syscall.ENOENT, os.Remove(filepath.Join(point, "none"))},
		{syscall.ENOTEMPTY, syscall.Rmdir(dir)},
		{syscall.ENOTDIR, os.Mkdir(filepath.Join(file, "x"), 0o755)},
		{syscall.EISDIR, os.WriteFile(dir, nil, 0o644)},
		{syscall.ENOTSUP, unix.Setxattr(file, "user.x", nil, 0)},
		{syscall.EINVAL, unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE)},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}
