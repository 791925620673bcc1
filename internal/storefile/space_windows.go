package storefile

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// FreeSpace returns the bytes that this user may still write beside path.
func FreeSpace(path string) (int64, error) {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(dir, &free, nil, nil); err != nil {
		return 0, &fs.PathError{Op: "free space", Path: path, Err: err}
	}
	return int64(free), nil
}

// IsNoSpace reports whether err is the system's word for a full disk or quota.
func IsNoSpace(err error) bool {
	return isAny(err, windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
