// Package storefile holds what back ends share about the files of a store: the lock
// that keeps others out, the free space around it, and making it appear whole.
package storefile

import (
	"context"
	"errors"
	"os"

	"github.com/agentvfs/avfs/engine/kv"
)

// Lock keeps other processes, and other handles in this one, out of a store.
// It is a lock on a descriptor, in a name space that SQLite's locks on the same file
// do not touch; see the file of each system.
type Lock struct{ file *os.File }

// File returns the locked file. Closing it gives the lock up, so a database that
// takes the file over takes the lock with it.
func (l *Lock) File() *os.File { return l.file }

// OpenLock opens path for locking, without taking the lock.
func OpenLock(path string, readOnly bool) (*Lock, error) {
	flag := os.O_RDWR
	if readOnly {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	return &Lock{f}, nil
}

// LockPath takes the lock on the store at path within the rules of kv.Driver.Open.
func LockPath(ctx context.Context, path string, readOnly bool) (*Lock, error) {
	var held *Lock
	ok, err := kv.AwaitLock(ctx, func() (ok bool, err error) {
		held, ok, err = tryPath(path, readOnly)
		return ok, err
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &kv.LockedError{Path: path, PID: Holder(path)}
	}
	return held, nil
}

// tryPath tries once to take the lock on the file that is at path now.
func tryPath(path string, readOnly bool) (*Lock, bool, error) {
	l, err := OpenLock(path, readOnly)
	if err != nil {
		return nil, false, err
	}
	ok, err := l.Try()
	if ok {
		// Whoever held the lock may have removed or replaced the file.
		ok, err = l.still(path)
	}
	if !ok || err != nil {
		return nil, false, errors.Join(err, l.Release())
	}
	return l, true, nil
}

// still reports whether the locked file is the one at path.
func (l *Lock) still(path string) (bool, error) {
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

// Release gives the lock up. Unlocking first matters where a child process that is
// about to start still shares the descriptor.
func (l *Lock) Release() error { return errors.Join(l.Unlock(), l.file.Close()) }
