package sqlite

import (
	"context"
	"errors"
	"os"

	"github.com/agentvfs/avfs/engine/kv"
)

// fileLock keeps other processes, and other handles in this one, out of a store.
// It is a lock on a descriptor of its own, in a name space that SQLite's locks on
// the same file do not touch; see the file of each system.
type fileLock struct{ file *os.File }

// openLock opens path for locking, without taking the lock.
func openLock(path string, readOnly bool) (*fileLock, error) {
	flag := os.O_RDWR
	if readOnly {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	return &fileLock{f}, nil
}

// lockPath takes the lock on the store at path within the rules of kv.Driver.Open.
func lockPath(ctx context.Context, path string, readOnly bool) (*fileLock, error) {
	var held *fileLock
	ok, err := kv.AwaitLock(ctx, func() (ok bool, err error) {
		held, ok, err = tryPath(path, readOnly)
		return ok, err
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &kv.LockedError{Path: path, PID: holder(path)}
	}
	return held, nil
}

// tryPath tries once to take the lock on the file that is at path now.
func tryPath(path string, readOnly bool) (*fileLock, bool, error) {
	l, err := openLock(path, readOnly)
	if err != nil {
		return nil, false, err
	}
	ok, err := l.try()
	if ok {
		// Whoever held the lock may have removed or replaced the file.
		ok, err = l.still(path)
	}
	if !ok || err != nil {
		return nil, false, errors.Join(err, l.release())
	}
	return l, true, nil
}

// still reports whether the locked file is the one at path.
func (l *fileLock) still(path string) (bool, error) {
	mine, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return os.SameFile(mine, there), nil
}

// release gives the lock up. Unlocking first matters where a child process that is
// about to start still shares the descriptor.
func (l *fileLock) release() error { return errors.Join(l.unlock(), l.file.Close()) }
