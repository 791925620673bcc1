package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// scratchPrefix begins the names of directories in which something is made that
// is moved to its place when it is whole.
const scratchPrefix = ".avfs-part-"

// Scratch makes a directory for what is not to outlive this process, also one that is
// killed: then the next Scratch removes it. The returned function removes it.
func (w *Workspace) Scratch() (path string, remove func() error, err error) {
	dir := filepath.Join(w.Home(), "tmp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	return scratch(dir)
}

// scratch makes such a directory in dir, and first removes those that processes
// left which died. The returned function removes it.
func scratch(dir string) (path string, remove func() error, err error) {
	sweep(dir)
	for {
		path, err := os.MkdirTemp(dir, scratchPrefix+"*")
		if err != nil {
			return "", nil, err
		}
		held, err := hold(path)
		if errors.Is(err, errHeld) {
			continue // somebody sweeps it away just now
		}
		if err != nil {
			return "", nil, errors.Join(err, os.Remove(path))
		}
		return path, func() error { return errors.Join(os.RemoveAll(path), held.Close()) }, nil
	}
}

// sweep removes the scratch directories in dir that nobody works in any more. What
// cannot be removed stays: it takes space and does no harm.
func sweep(dir string) {
	if !canHold {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // who needs the directory says what is wrong with it
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), scratchPrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		held, err := hold(path)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(path)
		_ = held.Close() // only releases it
	}
}

// errHeld says that a directory is held by another process, or is gone.
var errHeld = errors.New("held by another process")

// hold marks a directory as worked in for as long as the file is open and this
// process lives.
func hold(path string) (f *os.File, err error) {
	if f, err = os.Open(path); errors.Is(err, os.ErrNotExist) {
		return nil, errHeld
	} else if err != nil {
		return nil, err
	}
	if err = lockDir(f); err == nil {
		err = stillAt(f, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// stillAt fails with errHeld if another process removed the directory before it
// was locked.
func stillAt(f *os.File, path string) error {
	was, err := f.Stat()
	if err != nil {
		return err
	}
	if is, err := os.Lstat(path); err != nil || !os.SameFile(was, is) {
		return errHeld
	}
	return nil
}
