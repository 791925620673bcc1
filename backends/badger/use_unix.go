//go:build unix

package badger

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// canReadOnly says that Badger can open a store without writing to it.
const canReadOnly = true

// diskUse returns the disk space of the file at path. Log files are mostly holes.
func diskUse(path string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return int64(st.Blocks) * 512, nil
}
