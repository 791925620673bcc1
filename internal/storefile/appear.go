package storefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// MustNotExist fails with fs.ErrExist when there is something at one of paths.
func MustNotExist(paths ...string) error {
	for _, p := range paths {
		if _, err := os.Lstat(p); err == nil {
			return &fs.PathError{Op: "create", Path: p, Err: fs.ErrExist}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// tempPattern names what is not finished yet.
func tempPattern(path string) string { return "." + filepath.Base(path) + ".*.tmp" }

// TempFile makes an empty file in the folder of path, readable by this user alone,
// and returns its name.
func TempFile(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), tempPattern(path))
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// TempDir makes an empty folder in the folder of path, open to this user alone, and
// returns its name.
func TempDir(path string) (string, error) {
	return os.MkdirTemp(filepath.Dir(path), tempPattern(path))
}

// Publish gives the finished file tmp the name path and makes the name durable. It
// fails with fs.ErrExist when the name is taken. tmp may remain; the caller removes it.
func Publish(tmp, path string) error {
	err := os.Link(tmp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without hard links. Another creator could take the
		// name between the look and the rename, which nothing can rule out.
		if err = MustNotExist(path); err == nil {
			err = os.Rename(tmp, path)
		}
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in dir durable.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
