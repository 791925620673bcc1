package storefile

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockOffsetHigh is the upper half of the offset of a byte that no file reaches:
// locks are mandatory on Windows, so it must not cover data or SQLite's own locks
// around 1<<30.
const lockOffsetHigh = 1 << 30

// Try takes the lock if it is free.
func (l *Lock) Try() (bool, error) {
	err := windows.LockFileEx(windows.Handle(l.file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: lockOffsetHigh})
	switch err {
	case nil:
		return true, nil
	case windows.ERROR_LOCK_VIOLATION, windows.ERROR_IO_PENDING:
		return false, nil
	}
	return false, &os.PathError{Op: "lock", Path: l.file.Name(), Err: err}
}

// Unlock gives the lock up; without holding it, it does nothing.
func (l *Lock) Unlock() error {
	err := windows.UnlockFileEx(windows.Handle(l.file.Fd()), 0, 1, 0,
		&windows.Overlapped{OffsetHigh: lockOffsetHigh})
	if err == windows.ERROR_NOT_LOCKED {
		return nil
	}
	return err
}

// Holder returns 0: the system does not name the holder of such a lock.
func Holder(string) int { return 0 }
