package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

func TestTimesOfAccessAreKept(t *testing.T) {
	v, src, out := newVault(t), t.TempDir(), filepath.Join(t.TempDir(), "out")
	write(t, src, map[string]string{"f": "f"})
	must(t, os.Symlink("f", filepath.Join(src, "l")), os.Mkdir(filepath.Join(src, "d"), 0o755))
	names := []string{"f", "l", "d"}
	for i, name := range names {
		ts := []unix.Timespec{{Sec: int64(i + 7), Nsec: 5}, {Sec: 3, Nsec: 999_999_999}}
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(src, name), ts, unix.AT_SYMLINK_NOFOLLOW))
	}
	mustImport(t, v, src, "/", nil)
	mustExport(t, v, "/", out, nil)
	for i, name := range names {
		want := int64(i+7)*1e9 + 5
		a, err := v.Resolve(t.Context(), name, false)
		if err != nil || a.Atime != want || a.Mtime != 3_999_999_999 {
			t.Errorf("%s in the vault: %+v, %v", name, a, err)
		}
		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Join(out, name), &st))
		if st.Atim.Nano() != want || st.Mtim.Nano() != 3_999_999_999 {
			t.Errorf("%s on the host: %v %v", name, st.Atim, st.Mtim)
		}
	}
}

func TestReportsAreBounded(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	for i := range transfer.MaxSkips + 5 {
		must(t, unix.Mknod(filepath.Join(src, fmt.Sprintf("\xff%04d", i)), unix.S_IFSOCK|0o600, 0))
	}
	rep := mustImport(t, v, src, "/", nil)
	if len(rep.Skipped) != transfer.MaxSkips || rep.SkippedTotal != transfer.MaxSkips+5 {
		t.Fatalf("%d listed, %d counted", len(rep.Skipped), rep.SkippedTotal)
	}
	for i, s := range rep.Skipped {
		if i > 0 && s.Path < rep.Skipped[i-1].Path {
			t.Fatalf("%q after %q", s.Path, rep.Skipped[i-1].Path)
		}
	}
	if s := rep.Skipped[0]; !strings.HasPrefix(s.Path, "\uFFFD0") || !strings.HasPrefix(s.PathB64, "/z") || !s.Note {
		t.Errorf("the first: %+v", s)
	}
}

func TestOtherAttributesAreCounted(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"f": "f", "g": "g"})
	for _, name := range []string{"f", "g"} {
		if err := unix.Setxattr(filepath.Join(src, name), "trusted.x", []byte("v"), 0); err != nil {
			t.Skip("may not set a trusted attribute: ", err)
		}
	}
	rep := mustImport(t, v, src, "/", nil)
	if rep.DroppedXattrs["trusted.x"] != 2 || rep.SkippedTotal != 0 {
		t.Errorf("report %+v", rep)
	}
}

// A disk that is full ends the export; what was begun there is removed.
func TestExportToAFullDiskEnds(t *testing.T) {
	v, src, point := newVault(t), t.TempDir(), t.TempDir()
	if err := unix.Mount("tmpfs", point, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("may not mount: ", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(point, 0)) })
	for i := range 40 {
		write(t, src, map[string]string{fmt.Sprint(i): strings.Repeat("x", 100_000)})
	}
	mustImport(t, v, src, "/", nil)
	_, err := transfer.Export(t.Context(), v, "/", filepath.Join(point, "out"), nil)
	var p *transfer.PartialError
	if engine.KindOf(err) != engine.NoSpace || errors.As(err, &p) {
		t.Fatalf("error %v", err)
	}
	for name, data := range hostContents(t, point) {
		if len(data) != 100_000 {
			t.Errorf("%s has %d bytes", name, len(data))
		}
	}
}

// Files of /proc say that they are empty and are not.
func TestImportReadsToTheEnd(t *testing.T) {
	v := newVault(t)
	want, err := os.ReadFile("/proc/version")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	mustImport(t, v, "/proc/version", "/version", nil)
	same(t, contents(t, v, "/"), map[string]string{"version": string(want)})
	if want, err = os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil {
		t.Skip("no /sys: ", err)
	}
	mustImport(t, v, "/sys/kernel/mm/transparent_hugepage/enabled", "/version", nil)
	same(t, contents(t, v, "/"), map[string]string{"version": string(want)})
}

func TestTransfersAtOnce(t *testing.T) {
	v, src, work := newVault(t), t.TempDir(), t.TempDir()
	want := map[string]string{"big": strings.Repeat("0123456789", 500_000)}
	for i := range 200 {
		want[fmt.Sprintf("%d/%d", i%10, i)] = fmt.Sprint(i)
	}
	write(t, src, want)
	must(t, os.Link(filepath.Join(src, "big"), filepath.Join(src, "big2")))
	want["big2"] = want["big"]
	mustImport(t, v, src, "/same", nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if _, err := transfer.Import(t.Context(), v, src, "/same", nil); err != nil && engine.KindOf(err) != engine.NotFound {
				t.Error(err) // one import may replace what the other is about to link to
			}
		})
		wg.Go(func() {
			if _, err := transfer.Import(t.Context(), v, src, fmt.Sprintf("/own%d", i), nil); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := transfer.Export(t.Context(), v, "/same", filepath.Join(work, fmt.Sprint(i)), nil); err != nil && engine.KindOf(err) != engine.NotFound {
				t.Error(err) // files are replaced meanwhile
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		got := map[string]string{}
		for name, data := range contents(t, v, fmt.Sprintf("/own%d", i)) {
			got[strings.TrimPrefix(name, fmt.Sprintf("own%d/", i))] = data
		}
		same(t, got, want)
	}
	for name, data := range contents(t, v, "/same") {
		if want[strings.TrimPrefix(name, "same/")] != data {
			t.Errorf("%s has %d bytes", name, len(data))
		}
	}
}

func TestExportOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give files away")
	}
	v, src, out := newVault(t), t.TempDir(), filepath.Join(t.TempDir(), "out")
	write(t, src, map[string]string{"d/f": "f"})
	must(t, os.Chmod(filepath.Join(src, "d", "f"), 0o755|os.ModeSetuid|os.ModeSetgid))
	mustImport(t, v, src, "/", nil)
	mustExport(t, v, "/", out, &transfer.ExportOptions{Owner: &engine.Owner{UID: 7, GID: 8}})
	for _, p := range []string{"", "d", "d/f"} {
		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Join(out, p), &st))
		if st.Uid != 7 || st.Gid != 8 || st.Mode&0o6000 != 0 {
			t.Errorf("%q: %d:%d %o", p, st.Uid, st.Gid, st.Mode)
		}
	}
}

// A large file with holes is copied by its data alone, and zeros that were written
// stay out of the result.
func TestExportOfZeros(t *testing.T) {
	v, src, out := newVault(t), t.TempDir(), t.TempDir()
	data := append(bytes.Repeat([]byte{0}, 40<<10), "end"...)
	h, err := os.Create(filepath.Join(src, "f"))
	must(t, err)
	_, err = h.WriteAt(data, 256<<10)
	must(t, err, h.Close())
	mustImport(t, v, filepath.Join(src, "f"), "/f", nil)
	mustExport(t, v, "/f", out, nil)
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(out, "f"), &st))
	got, err := os.ReadFile(filepath.Join(out, "f"))
	if err != nil || st.Blocks > 16 || !bytes.Equal(got, append(make([]byte, 256<<10), data...)) {
		t.Errorf("%d blocks, %d bytes, %v", st.Blocks, len(got), err)
	}
}
