package viewtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
	"github.com/agentvfs/avfs/internal/mountpoint"
	"github.com/agentvfs/avfs/internal/view"
	"golang.org/x/sys/unix"
)

// life mounts and unmounts without any pause, as scripts do, and checks what is
// left behind each time.
func (s *suite) life(t *testing.T) {
	s.needsFUSE(t)
	v, p := NewVault(t), point(t)
	for i := range 10 {
		w, err := s.b.Mount(within(t), v, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			wantFile(t, filepath.Join(p, "f"), fmt.Sprint(i-1))
		}
		writeFile(t, filepath.Join(p, "f"), fmt.Sprint(i))
		if err := w.Unmount(within(t), false); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.Done():
		default:
			t.Error("an unmounted view is not done")
		}
		if err := w.Unmount(within(t), false); err != nil {
			t.Errorf("a second unmount: %v", err)
		}
		if exists(p) {
			t.Error("the mount point that Mount made is still there")
		}
	}
}

// workingDirectory checks that a mount leaves every thread of the process where
// it is: libfuse changes to the root directory in the foreground, too.
func (s *suite) workingDirectory(t *testing.T) {
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	w := s.mountAt(t, NewVault(t), point(t), nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			runtime.LockOSThread() // each gets a thread of its own
			for j := range 20 {
				if err := os.WriteFile(filepath.Join(w.Point(), fmt.Sprint(i)), []byte{byte(j)}, 0o644); err != nil {
					t.Error(err)
				}
			}
			if wd, err := unix.Getwd(); err != nil || wd != before {
				t.Errorf("a thread went from %s to %s, %v", before, wd, err)
			}
		})
	}
	wg.Wait()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		wd, err := os.Readlink("/proc/self/task/" + thread.Name() + "/cwd")
		if err == nil && wd != before {
			t.Errorf("thread %s went from %s to %s", thread.Name(), before, wd)
		}
	}
}

// existingPoint checks which directories are taken, and that one that was there
// before is there afterwards.
func (s *suite) existingPoint(t *testing.T) {
	s.needsFUSE(t)
	v, p := NewVault(t), point(t)
	if err := os.Mkdir(p, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Run("empty", func(t *testing.T) { s.mountAt(t, v, p, nil) })
	if !exists(p) {
		t.Fatal("the directory is gone after the unmount")
	}
	writeFile(t, filepath.Join(p, "below"), "1")
	_, err := s.b.Mount(within(t), v, p, nil)
	wantIs(t, "mount over a full directory", err, mountpoint.ErrNotEmpty)
	t.Run("full, allowed", func(t *testing.T) {
		s.mountAt(t, v, p, &view.Options{AllowNonEmpty: true})
		if exists(filepath.Join(p, "below")) {
			t.Error("what is below shows through")
		}
	})
	wantFile(t, filepath.Join(p, "below"), "1")
	_, err = s.b.Mount(within(t), v, filepath.Join(p, "below"), nil)
	wantIs(t, "mount on a file", err, mountpoint.ErrNotDirectory)
	_, err = s.b.Mount(within(t), v, filepath.Join(p, "no", "such"), nil)
	wantIs(t, "mount below nothing", err, os.ErrNotExist)
	link := p + "-link"
	if err := os.Remove(filepath.Join(p, "below")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p, link); err != nil {
		t.Fatal(err)
	}
	if w := s.mountAt(t, v, link, nil); w.Point() != p {
		t.Errorf("the mount through a link is on %s, want %s", w.Point(), p)
	}
}

// mountTwice checks that a living mount is not covered by another.
func (s *suite) mountTwice(t *testing.T) {
	v := NewVault(t)
	w := s.mountAt(t, v, point(t), nil)
	writeFile(t, filepath.Join(w.Point(), "f"), "1")
	_, err := s.b.Mount(within(t), v, w.Point(), nil)
	wantIs(t, "a second mount", err, mountpoint.ErrMounted)
	wantIs(t, "recovery of a living mount", mountpoint.Recover(w.Point()), mountpoint.ErrMounted)
	wantFile(t, filepath.Join(w.Point(), "f"), "1")
	if err := mountpoint.Recover(t.TempDir()); err != nil {
		t.Errorf("recovery where nothing is mounted: %v", err)
	}
}

// twoMountsOfOneVault checks that both show one state, without delay.
func (s *suite) twoMountsOfOneVault(t *testing.T) {
	v := NewVault(t)
	a, b := s.mountAt(t, v, point(t), nil), s.mountAt(t, v, point(t), nil)
	for i := range 20 {
		writeFile(t, filepath.Join(a.Point(), "f"), fmt.Sprint(i))
		wantFile(t, filepath.Join(b.Point(), "f"), fmt.Sprint(i))
		if err := os.Remove(filepath.Join(b.Point(), "f")); err != nil {
			t.Fatal(err)
		}
		if exists(filepath.Join(a.Point(), "f")) {
			t.Fatal("a removed file is still there in the other mount")
		}
	}
}

// holder starts a program that keeps a mount busy until the end of t.
func holder(t *testing.T, script, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script+"; echo ready; exec sleep 60", "sh", dir)
	cmd.Dir = "/"
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// end kills a holder; twice is harmless.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// busy checks that an unmount names whoever is in the way, leaves the mount
// usable, and works once they are gone.
func (s *suite) busy(t *testing.T) {
	for what, script := range map[string]string{
		"working directory": `cd "$1"`,
		"open file":         `exec 3< "$1/f"`,
	} {
		t.Run(what, func(t *testing.T) {
			w := s.mountAt(t, NewVault(t), point(t), nil)
			writeFile(t, filepath.Join(w.Point(), "f"), "1")
			cmd := holder(t, script, w.Point())
			var busy *view.BusyError
			if err := w.Unmount(within(t), false); !errors.As(err, &busy) {
				t.Fatalf("unmount of a busy mount: %v", err)
			}
			if !slices.Contains(busy.PIDs, cmd.Process.Pid) || len(busy.Names) != len(busy.PIDs) {
				t.Errorf("holders %v %v, want %d", busy.PIDs, busy.Names, cmd.Process.Pid)
			}
			if !strings.Contains(busy.Error(), fmt.Sprintf("sleep (%d)", cmd.Process.Pid)) {
				t.Errorf("the message is %q", busy)
			}
			writeFile(t, filepath.Join(w.Point(), "f"), "still works")
			end(cmd)
			if err := w.Unmount(within(t), false); err != nil {
				t.Errorf("unmount after the holder ended: %v", err)
			}
		})
	}
}

// busyMountBelow checks that a mount on top of ours is named.
func (s *suite) busyMountBelow(t *testing.T) {
	v := NewVault(t)
	w := s.mountAt(t, v, point(t), nil)
	below := filepath.Join(w.Point(), "below")
	inner := s.mountAt(t, NewVault(t), below, nil)
	var busy *view.BusyError
	if err := w.Unmount(within(t), false); !errors.As(err, &busy) || !slices.Equal(busy.Mounts, []string{below}) {
		t.Errorf("unmount below a mount: %v", err)
	}
	if err := inner.Unmount(within(t), false); err != nil {
		t.Error(err)
	}
}

// force checks that a forced unmount keeps everything that was written, ends
// the service for whoever stays, and leaves the vault free.
func (s *suite) force(t *testing.T) {
	s.needsFUSE(t)
	v, p := NewVault(t), point(t)
	w, err := s.b.Mount(within(t), v, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(p, "f"), "kept")
	fd, err := unix.Open(filepath.Join(p, "f"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := w.Unmount(within(t), true); err != nil {
		t.Fatal(err)
	}
	if exists(p) {
		t.Error("the mount point is still there")
	}
	if _, err := unix.Pwrite(fd, []byte("late"), 0); err == nil {
		t.Error("a write after the forced unmount went through")
	}
	clean, err := engine.Open(t.Context(), kvOf(v).Clone(memkv.PowerLoss, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := clean.Vault(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if a, err := kept.Lookup(t.Context(), engine.RootIno, "f"); err != nil || a.Size != 4 {
		t.Errorf("after power loss: %+v, %v", a, err)
	}
	if err := clean.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-w.Done():
	case <-time.After(patience):
		t.Error("the service goes on")
	}
	again := s.mountAt(t, v, p, nil)
	wantFile(t, filepath.Join(again.Point(), "f"), "kept")
}

// kvOf is the store in memory below a vault of newVault.
func kvOf(v *engine.Vault) *memkv.Store { return v.Store().Unwrap().(*memkv.Store) }

// outsideUnmount checks that a view whose mount was taken off by somebody else
// ends by itself, with everything saved.
func (s *suite) outsideUnmount(t *testing.T) {
	v, p := NewVault(t), point(t)
	w := s.mountAt(t, v, p, nil)
	writeFile(t, filepath.Join(p, "f"), "saved")
	if err := mountpoint.Detach(t.Context(), p, false); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.Done():
	case <-time.After(patience):
		t.Fatal("the view does not end")
	}
	if err := w.Err(); err != nil {
		t.Error(err)
	}
	if exists(p) {
		t.Error("the mount point is still there")
	}
	if kvOf(v).Tail() != 0 {
		t.Error("something is not durable after the end")
	}
}

// failedSaveAtUnmount checks that an unmount that could not save keeps the
// mount, and that force reports what was lost.
func (s *suite) failedSaveAtUnmount(t *testing.T) {
	s.needsFUSE(t)
	faults := faultkv.Wrap(memkv.New(engine.Tables()...), faultkv.Config{})
	store, err := engine.Create(t.Context(), faults, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() // fails as the disk does
	v, err := store.CreateVault(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.b.Mount(within(t), v, point(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := filepath.Join(w.Point(), "f")
	writeFile(t, f, "unsaved")
	faults.Arm(faultkv.Rule{Op: faultkv.Commit, Sticky: true, Err: kv.ErrNoSpace})
	err = w.Unmount(within(t), false)
	if engine.KindOf(err) != engine.NoSpace {
		t.Errorf("unmount on a full disk: %v", err)
	}
	wantFile(t, f, "unsaved")
	err = w.Unmount(within(t), true)
	if engine.KindOf(err) != engine.NoSpace {
		t.Errorf("forced unmount on a full disk: %v", err)
	}
	if exists(f) {
		t.Error("the mount is still there")
	}
	faults.Arm()
}

// readOnly checks that every way to write is refused.
func (s *suite) readOnly(t *testing.T) {
	v := NewVault(t)
	rw := s.mountAt(t, v, point(t), nil)
	writeFile(t, filepath.Join(rw.Point(), "f"), "1")
	w := s.mountAt(t, v, point(t), &view.Options{ReadOnly: true})
	f := filepath.Join(w.Point(), "f")
	wantFile(t, f, "1")
	_, err := os.OpenFile(f, os.O_WRONLY, 0)
	wantIs(t, "open for writing", err, syscall.EROFS)
	wantIs(t, "create", os.WriteFile(f+"2", nil, 0o644), syscall.EROFS)
	wantIs(t, "remove", os.Remove(f), syscall.EROFS)
	wantIs(t, "chmod", os.Chmod(f, 0o600), syscall.EROFS)
	wantIs(t, "mkdir", os.Mkdir(f+"3", 0o755), syscall.EROFS)
	wantIs(t, "rename", os.Rename(f, f+"4"), syscall.EROFS)
	wantIs(t, "attribute", unix.Setxattr(f, "user.k", nil, 0), syscall.EROFS)
	writeFile(t, filepath.Join(rw.Point(), "f"), "seen")
	wantFile(t, f, "seen")
}

// deadlines checks that a wait that is over leaves no mount behind.
func (s *suite) deadlines(t *testing.T) {
	s.needsFUSE(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := point(t)
	w, err := s.b.Mount(ctx, NewVault(t), p, nil)
	if err == nil { // it was faster than the look at ctx
		if err := w.Unmount(within(t), false); err != nil {
			t.Fatal(err)
		}
		return
	}
	wantIs(t, "mount without time", err, context.Canceled)
	deadline := time.Now().Add(patience)
	for exists(p) && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if exists(p) {
		t.Error("the mount point is still there")
	}
}

// refused checks that the library's refusal is an error and leaves nothing.
func (s *suite) refused(t *testing.T) {
	s.needsFUSE(t)
	p := point(t)
	_, err := s.b.Mount(within(t), NewVault(t), p, &view.Options{ExtraOptions: s.b.UnknownOption})
	wantIs(t, "an unknown option", err, view.ErrRefused)
	if exists(p) {
		t.Error("the mount point is still there")
	}
}

// source checks that odd names reach the table of mounts unharmed.
func (s *suite) source(t *testing.T) {
	const name = `a b,c\d`
	w := s.mountAt(t, NewVault(t), point(t), &view.Options{FSName: name})
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(" %s %s ", mountpoint.FSType, `a\040b,c\134d`)
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, " "+w.Point()+" ") {
			if !strings.Contains(line, want) {
				t.Errorf("the mount is %q, want %q", line, want)
			}
			return
		}
	}
	t.Error("the mount is not in the table")
}

// noDescriptorsLeft checks that mounting gives back what it takes.
func (s *suite) noDescriptorsLeft(t *testing.T) {
	s.needsFUSE(t)
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	v, p := NewVault(t), point(t)
	before := 0
	for i := range 6 {
		w, err := s.b.Mount(within(t), v, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(p, "f"), "1")
		if err := w.Unmount(within(t), false); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			before = count()
		}
	}
	if after := count(); after > before {
		t.Errorf("descriptors went from %d to %d", before, after)
	}
}
