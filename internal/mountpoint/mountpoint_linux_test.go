package mountpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseEntry(t *testing.T) {
	for line, want := range map[string]entry{
		`36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`: {"98:0", "/mnt2", "ext3", "/dev/root"},
		`42 27 0:39 / /tmp/a\040b\134c rw - fuse.avfs avfs:v\054w rw`:                    {"0:39", `/tmp/a b\c`, "fuse.avfs", "avfs:v,w"},
	} {
		if got, ok := parseEntry(line); !ok || got != want {
			t.Errorf("%s: %+v, %v, want %+v", line, got, ok, want)
		}
	}
	for _, line := range []string{"", "1 2 3", "36 35 98:0 / /m rw ext3 /dev/root rw"} {
		if got, ok := parseEntry(line); ok {
			t.Errorf("%q is taken for %+v", line, got)
		}
	}
}

func TestRecoverLeavesOthersAlone(t *testing.T) {
	for _, path := range []string{"/proc", "/"} {
		if err := Recover(path); !errors.Is(err, ErrMounted) {
			t.Errorf("Recover(%s): %v, want ErrMounted", path, err)
		}
	}
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if err := Recover(path); err != nil {
			t.Errorf("Recover(%s): %v", path, err)
		}
	}
}

func TestHolders(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	isSelf := func(h Holder) bool { return h.PID == os.Getpid() && h.Name != "" }
	if !slices.ContainsFunc(Holders(filepath.Dir(f.Name())), isSelf) {
		t.Error("a process with an open file is not found")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(Holders(filepath.Dir(f.Name())), isSelf) {
		t.Error("found after the file was closed")
	}
}

// OnOwnThread must leave the rest of the process, and its main thread, where they are.
func TestOnOwnThread(t *testing.T) {
	before, err := os.Readlink("/proc/self/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		OnOwnThread(unix.CLONE_FS, func(err error) {
			if err == nil {
				err = unix.Chdir("/")
			}
			if err != nil {
				t.Error(err)
			}
			if unix.Gettid() == os.Getpid() {
				t.Error("it is the main thread")
			}
		})
		if after, err := os.Readlink("/proc/self/cwd"); err != nil || after != before {
			t.Fatalf("the process went to %s, %v", after, err)
		}
		if wd, err := unix.Getwd(); err != nil || wd != before {
			t.Fatalf("this thread went to %s, %v", wd, err)
		}
	}
}
