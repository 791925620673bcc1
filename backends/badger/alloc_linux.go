package badger

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// preallocate takes the disk space of size bytes at offset in the file at path, which
// is that long already. Where the file system cannot do that, a disk that others fill
// within an update still ends the process.
func preallocate(path string, offset, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for {
		err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, size)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = nil
	}
	if err != nil {
		err = &fs.PathError{Op: "fallocate", Path: path, Err: err}
	}
	return errors.Join(err, f.Close())
}
