package mountpoint

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Over is the mount point of the vault in which path is, or would be; empty if it is
// in none. It looks at the table of mounts only where the file system is one of
// programs in user space.
func Over(path string) (point string, err error) {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(path, &st)
		parent := filepath.Dir(path)
		switch {
		case err == nil && st.Type == unix.FUSE_SUPER_MAGIC:
			return vaultOver(path)
		case !errors.Is(err, fs.ErrNotExist) || parent == path:
			return "", nil // what cannot be looked at is told to whoever uses it
		}
		path = parent
	}
}

// vaultOver is Over for a directory that is there.
func vaultOver(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	entries, err := table()
	if err != nil {
		return "", err
	}
	var inner entry
	for _, e := range entries {
		if (dir == e.point || strings.HasPrefix(dir, strings.TrimSuffix(e.point, "/")+"/")) && len(e.point) >= len(inner.point) {
			inner = e
		}
	}
	if inner.fsType != FSType {
		return "", nil
	}
	return inner.point, nil
}
