package storefile

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockOffset is a byte that no file reaches and that SQLite, which locks around
// 1<<30, does not use. flock would conflict with SQLite's range locks on macOS.
const lockOffset = 1 << 62

// ofdSetLock is F_OFD_SETLK of XNU's fcntl.h: a lock that belongs to the open file,
// not to the process.
const ofdSetLock = 90

// Try takes the lock if it is free.
func (l *Lock) Try() (bool, error) {
	switch err := l.set(unix.F_WRLCK); err {
	case nil:
		return true, nil
	case unix.EAGAIN, unix.EACCES:
		return false, nil
	default:
		return false, &os.PathError{Op: "lock", Path: l.file.Name(), Err: err}
	}
}

// Unlock gives the lock up; without holding it, it does nothing.
func (l *Lock) Unlock() error { return l.set(unix.F_UNLCK) }

// set changes the lock on the one byte.
func (l *Lock) set(kind int16) error {
	for {
		err := unix.FcntlFlock(l.file.Fd(), ofdSetLock, &unix.Flock_t{Type: kind, Start: lockOffset, Len: 1})
		if err != unix.EINTR {
			return err
		}
	}
}

// Holder returns 0: the system does not name the holder of such a lock.
func Holder(string) int { return 0 }
