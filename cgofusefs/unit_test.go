//go:build cgo && linux

package cgofusefs

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/agentvfs/avfs/internal/view/viewtest"
	"github.com/winfsp/cgofuse/fuse"
)

func TestEveryCodeHasANumber(t *testing.T) {
	for _, c := range posix.Codes() {
		if numbers[c] != int(c.Errno()) {
			t.Errorf("%s is %d for the library and %d for the system", c, numbers[c], c.Errno())
		}
	}
}

func TestTimeOf(t *testing.T) {
	for _, ns := range []int64{1, -2e9 - 1} {
		if got := timeOf(timespec(ns), 7); *got != ns {
			t.Errorf("%d ns becomes %d", ns, *got)
		}
	}
	if timeOf(fuse.Timespec{Nsec: fuse.UTIME_OMIT}, 7) != nil || *timeOf(fuse.Timespec{Nsec: fuse.UTIME_NOW}, 7) != 7 {
		t.Error("the markers are not understood")
	}
}

func TestOpenMode(t *testing.T) {
	for flags, want := range map[int]engine.OpenMode{
		fuse.O_RDONLY: engine.OpenRead,
		fuse.O_RDONLY | fuse.O_TRUNC | fuse.O_APPEND: engine.OpenRead,
		fuse.O_WRONLY:                              engine.OpenWrite,
		fuse.O_RDWR | fuse.O_APPEND:                engine.OpenRead | engine.OpenWrite | engine.OpenAppend,
		fuse.O_WRONLY | fuse.O_TRUNC | fuse.O_EXCL: engine.OpenWrite | engine.OpenTruncate,
	} {
		if got := openMode(flags); got != want {
			t.Errorf("flags %#x mean %d, want %d", flags, got, want)
		}
	}
}

func TestHiddenNames(t *testing.T) {
	table := newOrphanTable()
	for name, want := range map[string]bool{
		".fuse_hidden0000000300000001":  true,
		".fuse_hidden0000000300000040":  true,
		".fuse_hidden0000000300000041":  false, // too far ahead
		".fuse_hidden000000030000000A":  false, // libfuse writes lower case
		".fuse_hidden00000003":          false,
		".fuse_hidden00000003000000010": false,
		".fuse_hiddenzzzzzzzz00000001":  false,
		"fuse_hidden0000000300000001":   false,
	} {
		if got := table.expects(name); got != want {
			t.Errorf("%s expected: %v, want %v", name, got, want)
		}
	}
	table.add(7, ".fuse_hidden0000000300000030", 42)
	if !table.expects(".fuse_hidden0000000300000041") {
		t.Error("the counter does not move on")
	}
	if ino, ok := table.find(7, ".fuse_hidden0000000300000030"); !ok || ino != 42 {
		t.Errorf("found %d, %v", ino, ok)
	}
	if _, ok := table.find(8, ".fuse_hidden0000000300000030"); ok {
		t.Error("found in another directory")
	}
	table.closed(42)
	if table.remove(7, ".fuse_hidden0000000300000030") {
		t.Error("still known after the last close")
	}
}

func TestKeptTable(t *testing.T) {
	table := newKeptTable()
	a := engine.Attr{Ino: 5, Nlink: 1, Ctime: 100}
	steps := []struct {
		what string
		do   func() bool
		want bool
	}{
		{"the first open", func() bool { return table.opened(a, engine.OpenRead) }, false},
		{"the second", func() bool { return table.opened(a, engine.OpenRead) }, true},
		{"after a change", func() bool { a.Ctime = 101; return table.opened(a, engine.OpenRead) }, false},
		{"after that", func() bool { return table.opened(a, engine.OpenRead) }, true},
		{"for writing", func() bool { return table.opened(a, engine.OpenWrite) }, false},
		{"after an open for writing", func() bool { return table.opened(a, engine.OpenRead) }, false},
		{"after a write", func() bool { table.forget(5); return table.opened(a, engine.OpenRead) }, false},
		{"with two names", func() bool { a.Nlink = 2; return table.opened(a, engine.OpenRead) }, false},
		{"with one again", func() bool { a.Nlink = 1; return table.opened(a, engine.OpenRead) }, false},
	}
	for _, s := range steps {
		if got := s.do(); got != s.want {
			t.Errorf("%s: pages stay %v, want %v", s.what, got, s.want)
		}
	}
	for i := range maxKept + 10 {
		table.opened(engine.Attr{Ino: engine.Ino(100 + i), Nlink: 1}, engine.OpenRead)
	}
	if len(table.ctimes) > maxKept {
		t.Errorf("the table holds %d inodes", len(table.ctimes))
	}
}

// A panic inside an operation must neither end the process nor vanish.
func TestPanicIsReported(t *testing.T) {
	b := newVaultFS(viewtest.NewVault(t), false)
	if errc := b.do("test", func(ctx context.Context) error { panic("boom") }); errc != -fuse.EIO {
		t.Errorf("a panic gives %d", errc)
	}
	if err := b.shut(); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("the end reports %v", err)
	}
	if errc := b.Unlink("/x"); errc != -fuse.ENOTCONN {
		t.Errorf("an operation after the end gives %d", errc)
	}
}

// TestUnavailable runs this binary where the library cannot be loaded: cgofuse alone
// would end the process.
func TestUnavailable(t *testing.T) {
	if os.Getenv("AVFS_TEST_PROBE") != "" {
		err := probeLibrary()
		if err == nil {
			t.Skip("SKIP: the library was found all the same")
		}
		if !strings.Contains(err.Error(), "install") || !strings.Contains(err.Error(), fusePackage) {
			t.Errorf("the message helps nobody: %v", err)
		}
		return
	}
	cmd := exec.Command("unshare", "--mount", "/bin/sh", "-c",
		`for f in $(ldconfig -p | sed -n 's/.*`+libraryFile+`.* => //p'); do mount --bind /dev/null "$f" || exit 9; done; exec "$0" -test.run='^TestUnavailable$' -test.v`, os.Args[0])
	cmd.Env = append(os.Environ(), "AVFS_TEST_PROBE=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 9 || os.Geteuid() != 0 {
		t.Skipf("SKIP: hiding the library needs root and unshare: %s", out)
	}
	if err != nil || strings.Contains(string(out), "SKIP:") {
		t.Errorf("%v: %s", err, out)
	}
}
