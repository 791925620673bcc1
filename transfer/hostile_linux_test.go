package transfer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/cgofusefs"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

// swapper exchanges two names of a directory until stop is called.
func swapper(tb testing.TB, dir, a, b string) (stop func()) {
	tb.Helper()
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, a), unix.AT_FDCWD, filepath.Join(dir, b), unix.RENAME_EXCHANGE); err != nil {
				tb.Error(err)
				return
			}
		}
	})
	return func() {
		close(quit)
		wg.Wait()
	}
}

// A directory that becomes a symbolic link while it is imported must not lead out
// of the source.
func TestImportStaysInsideWhenDirectoriesBecomeLinks(t *testing.T) {
	v, src, outside := newVault(t), t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret": "secret", "d/secret": "secret"})
	write(t, src, map[string]string{"swap/d/x": "mine", "swap/secret": "mine"})
	must(t, os.Symlink(outside, filepath.Join(src, "link")))
	stop := swapper(t, src, "swap", "link")
	defer stop()
	links := 0
	for begin := time.Now(); time.Since(begin) < 2*time.Second; {
		must(t, v.RemoveAll(t.Context(), "/d"))
		_, err := transfer.Import(t.Context(), v, src, "/d", nil)
		if err != nil {
			links++ // the link was met where a directory had been
		}
		for name, data := range contents(t, v, "/d") {
			if data == "secret" {
				t.Fatalf("%s came from outside", name)
			}
		}
	}
	t.Logf("%d imports met a directory that had become a link", links)
}

// The same on the way out: the export must not write outside its destination.
func TestExportStaysInsideWhenDirectoriesBecomeLinks(t *testing.T) {
	v, src, out, outside := newVault(t), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"swap/a/x": "x", "swap/a/y": "y", "swap/z": "z"})
	must(t, os.Link(filepath.Join(src, "swap", "z"), filepath.Join(src, "swap", "a", "z2")))
	mustImport(t, v, src, "/", nil)
	must(t, os.MkdirAll(filepath.Join(outside, "a"), 0o755), os.Mkdir(filepath.Join(out, "swap"), 0o755),
		os.Symlink(outside, filepath.Join(out, "link")))
	stop := swapper(t, out, "swap", "link")
	defer stop()
	for begin := time.Now(); time.Since(begin) < 2*time.Second; {
		// Failures are what the swaps provoke; what counts is where nothing appears.
		rep, err := transfer.Export(t.Context(), v, "/", out, &transfer.ExportOptions{Overwrite: true})
		if err == nil && rep.Files != 4 {
			t.Fatalf("report %+v", rep)
		}
		if got := hostContents(t, outside); len(got) != 0 {
			t.Fatalf("written outside: %v", got)
		}
	}
}

// Files that come and go while they are imported are reported at most.
func TestImportWhileFilesVanish(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"kept": "kept", "d/kept": "kept"})
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			default:
			}
			p := filepath.Join(src, "d", strings.Repeat("v", i%200+1))
			if err := os.WriteFile(p, []byte("v"), 0o600); err != nil {
				t.Error(err)
				return
			}
			if err := os.Remove(p); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 100 {
		rep, err := transfer.Import(t.Context(), v, src, "/d", nil)
		if err != nil {
			wantPartial(t, err, rep.SkippedTotal, engine.NotFound)
		}
	}
	close(quit)
	wg.Wait()
	got := contents(t, v, "/d")
	if got["d/kept"] != "kept" || got["d/d/kept"] != "kept" {
		t.Errorf("contents %v", got)
	}
}

// An import of a mounted vault into itself ends, and leaves out its own target.
func TestImportOfAMountIntoItsVault(t *testing.T) {
	if err := cgofusefs.Available(); err != nil {
		t.Skip("no mounts here: ", err)
	}
	v, src, point := newVault(t), t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"a": "1", "d/b": strings.Repeat("2", 3<<20)})
	mustImport(t, v, src, "/", nil)
	view, err := cgofusefs.Mount(t.Context(), v, point, nil)
	must(t, err)
	t.Cleanup(func() { must(t, view.Unmount(testContext(t), false)) })
	rep, err := transfer.Import(t.Context(), v, point, "/d/copy", nil)
	wantPartial(t, err, 1, engine.Loop)
	wantSkip(t, rep, "d/copy", engine.Loop, false)
	want := map[string]string{"a": "1", "d/b": strings.Repeat("2", 3<<20)}
	want["d/copy/a"], want["d/copy/d/b"] = want["a"], want["d/b"]
	same(t, contents(t, v, "/"), want)
	_, err = transfer.Import(t.Context(), v, point, "/", nil)
	if engine.KindOf(err) != engine.Loop {
		t.Errorf("onto itself: %v", err)
	}
	same(t, contents(t, v, "/"), want)
	back := mustExport(t, v, "/d/copy", filepath.Join(point, "out"), nil)
	if back.Files != 2 {
		t.Errorf("report %+v", back)
	}
	want["out/a"], want["out/d/b"] = want["a"], want["d/b"]
	same(t, contents(t, v, "/"), want)
}

func TestImportOneFileSystem(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"a": "1", "mnt/hidden": "h"})
	point := filepath.Join(src, "mnt")
	if err := unix.Mount("tmpfs", point, "tmpfs", 0, "size=1m,mode=0711"); err != nil {
		t.Skip("may not mount: ", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(point, 0)) })
	write(t, point, map[string]string{"below": "b"})
	mustImport(t, v, src, "/one", &transfer.ImportOptions{OneFileSystem: true})
	mustImport(t, v, src, "/all", nil)
	same(t, contents(t, v, "/"), map[string]string{"one/a": "1", "all/a": "1", "all/mnt/below": "b"})
	a, err := v.Resolve(t.Context(), "/one/mnt", false)
	if err != nil || a.Mode != engine.TypeDir|0o711 {
		t.Errorf("the mount point is %o, %v", a.Mode, err)
	}
}

// asNobody runs the named test again as a user without rights and reports whether
// this process is that one.
func asNobody(t *testing.T, env string) (inside bool) {
	t.Helper()
	if os.Getenv("TRANSFER_TEST_DIR") != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	exe, err := os.Executable()
	must(t, err)
	copied := filepath.Join(env, "test.exe")
	b, err := os.ReadFile(exe)
	must(t, err, os.WriteFile(copied, b, 0o755))
	for p := env; p != "/" && p != os.TempDir(); p = filepath.Dir(p) {
		must(t, os.Chmod(p, 0o777))
	}
	cmd := exec.Command(copied, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "TRANSFER_TEST_DIR="+env, "TMPDIR="+env, "HOME="+env)
	cmd.Dir = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	t.Logf("as nobody:\n%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("as nobody: %v", err)
	}
	return false
}

func TestImportWithoutRights(t *testing.T) {
	dir := os.Getenv("TRANSFER_TEST_DIR")
	if dir == "" {
		dir = t.TempDir()
		src := filepath.Join(dir, "src")
		write(t, src, map[string]string{"secret": "s", "closed/x": "x", "open/y": "y", "suid": "s"})
		must(t, os.Chmod(filepath.Join(src, "secret"), 0o600), os.Chmod(filepath.Join(src, "closed"), 0o700),
			os.Chmod(filepath.Join(src, "suid"), 0o755|os.ModeSetuid))
		if err := unix.Mknod(filepath.Join(src, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Skip("no device nodes here: ", err)
		}
	}
	if !asNobody(t, dir) {
		return
	}
	v := newVault(t)
	rep, err := transfer.Import(t.Context(), v, filepath.Join(dir, "src"), "/d", nil)
	wantPartial(t, err, 3, engine.Permission)
	for _, name := range []string{"secret", "closed", "null"} {
		wantSkip(t, rep, name, engine.Permission, false)
	}
	same(t, contents(t, v, "/d"), map[string]string{"d/open/y": "y", "d/suid": "s"})
	a, err := v.Resolve(t.Context(), "/d/suid", false)
	if err != nil || a.UID != 65534 || a.GID != 65534 || a.Mode != engine.TypeRegular|0o4755 {
		t.Errorf("attributes %+v, %v", a, err)
	}
	root := uint32(0)
	if _, err := v.SetAttr(t.Context(), a.Ino, engine.SetAttr{UID: &root}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	mustExport(t, v, "/d", out, nil)
	info, err := os.Stat(filepath.Join(out, "suid"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("root's set-uid file became %v, %v", info.Mode(), err)
	}
}

func TestImportOwner(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"d/x": "x"})
	mustImport(t, v, src, "/new/dst", &transfer.ImportOptions{Owner: &engine.Owner{UID: 7, GID: 8}})
	for _, p := range []string{"new", "new/dst", "new/dst/d", "new/dst/d/x"} {
		a, err := v.Resolve(t.Context(), p, false)
		if err != nil || a.UID != 7 || a.GID != 8 {
			t.Errorf("%s belongs to %d:%d, %v", p, a.UID, a.GID, err)
		}
	}
}
