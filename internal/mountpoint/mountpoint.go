// Package mountpoint looks after the directory that a view is mounted on: it
// finds out what is there, clears away what a dead process left, detaches, and
// names whoever is in the way. It knows mounts, not file systems, so every mount
// binding shares it.
package mountpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FSType is the name under which a mounted vault appears in the kernel's table
// of mounts. Recover detaches nothing else.
const FSType = "fuse.avfs"

// Why a path cannot become a mount point.
var (
	ErrNotDirectory = errors.New("not a directory")
	ErrNotEmpty     = errors.New("directory is not empty")
	ErrMounted      = errors.New("already a mount point")
)

// Holder is a process that uses a mount.
type Holder struct {
	PID  int
	Name string // the program's short name
}

// BusyError says that a mount cannot be detached because it is in use. The mount
// stays as usable as before.
type BusyError struct {
	Point  string
	PIDs   []int    // who holds it, in rising order; others may be hidden from this user
	Names  []string // the programs' short names, in the order of PIDs
	Mounts []string // mount points below this one
}

// Error names the holders.
func (e *BusyError) Error() string {
	var parts []string
	for i, pid := range e.PIDs {
		parts = append(parts, fmt.Sprintf("%s (%d)", e.Names[i], pid))
	}
	for _, m := range e.Mounts {
		parts = append(parts, "the mount on "+m)
	}
	if len(parts) == 0 {
		parts = []string{"a process that this user may not see"}
	}
	return e.Point + " is in use by " + strings.Join(parts, ", ")
}

// Prepare makes sure that path can be mounted on and returns it in absolute form
// without symbolic links. A missing directory is made, with created set; its
// parent must exist. A directory with something in it is refused with ErrNotEmpty
// unless allowNonEmpty is set, because a mount hides it.
func Prepare(path string, allowNonEmpty bool) (point string, created bool, err error) {
	if point, err = Resolve(path); err != nil {
		return "", false, err
	}
	switch err := os.Mkdir(point, 0o700); {
	case err == nil:
		return point, true, nil
	case !errors.Is(err, fs.ErrExist):
		return "", false, fmt.Errorf("make mount point: %w", err)
	}
	return point, false, check(point, allowNonEmpty)
}

// check refuses what exists but is no fit mount point.
func check(point string, allowNonEmpty bool) error {
	info, err := os.Stat(point)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: %w", point, ErrNotDirectory)
	}
	if allowNonEmpty {
		return nil
	}
	dir, err := os.Open(point)
	if err != nil {
		return err
	}
	defer dir.Close()
	switch _, err := dir.Readdirnames(1); {
	case err == nil:
		return fmt.Errorf("%s: %w; a mount would hide its content", point, ErrNotEmpty)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// Resolve returns path in absolute form without symbolic links. The last element
// may be missing, or be a mount whose server is dead.
func Resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("mount point: empty path")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if full, err := filepath.EvalSymlinks(abs); err == nil {
		return full, nil
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("mount point: %w", err)
	}
	return filepath.Join(parent, filepath.Base(abs)), nil
}
