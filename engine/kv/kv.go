// Package kv is the seam between the engine and a database: an ordered,
// transactional key-value store with a few named tables.
//
// A back end implements Store and the two transaction interfaces, nothing else.
// What only some databases can do (give space back, copy a live store) is a
// one-method interface of its own, found with As. Package conformance proves a
// back end; one that has not passed its suite does not exist.
//
// # Keys and values
//
// Keys compare bytewise. A key has 1 to MaxKey bytes, a value 0 to MaxValue.
// A table declared with IDs set has keys of exactly eight bytes, the big-endian
// form of an id between 1 and MaxID, so that a database may store it as a native
// integer key. The engine hands out ids in increasing order.
//
// # Slices
//
// A slice that a transaction returns, or passes to a callback, belongs to the
// transaction: it must not be modified and is invalid once the callback or the
// transaction ends, whichever comes first. A slice given to Put or Delete stays
// the caller's and may be reused as soon as the call returns.
//
// # Concurrency
//
// A Store may be used by any number of goroutines. A transaction is confined to
// the goroutine that runs its function. Readers never wait for the writer and the
// writer never waits for readers.
package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
)

// Limits that hold on every back end. All sizes are in bytes.
const (
	MaxKey   = 1024    // longest key
	MaxValue = 1 << 20 // longest value
	MaxID    = 1<<63 - 1

	// MaxTxBytes bounds the sum of key and value sizes that one Update may
	// put or delete, MaxTxOps their number. Update returns ErrTxTooLarge
	// past either; a caller with more to write splits it.
	MaxTxBytes = 8 << 20
	MaxTxOps   = 50_000
)

// Table names one ordered key space of a store. A store keeps the declaration
// with the data: opening it with another one for the same name is ErrNoTable.
type Table struct {
	Name string // 1 to 64 lower case letters, digits and underscores, a letter first
	IDs  bool   // keys are eight-byte big-endian ids
	Text bool   // values are UTF-8 text that people may query with the database's own tools
}

// Mode says what an Update promises and what it may use.
type Mode uint8

const (
	// Relaxed survives the death of the process. Power loss may take the
	// newest Relaxed updates, in reverse order and whole, never a mixture.
	Relaxed Mode = 0
	// Durable survives power loss, together with every update before it.
	Durable Mode = 1 << 0
	// Reclaim marks an update that frees space. It may use the reserve that a
	// back end keeps on a nearly full disk, so that deleting still works.
	Reclaim Mode = 1 << 1
)

// Durable reports whether m promises to survive power loss.
func (m Mode) Durable() bool { return m&Durable != 0 }

// Reserve is the free disk space, in bytes, below which an Update without
// Reclaim fails with ErrNoSpace.
const Reserve = 8 << 20

// Scarce is the space left, in bytes as FreeSpacer counts them, at or below which an
// Update without Reclaim first makes room of what was deleted, where the database
// can do that.
const Scarce = 2 * Reserve

// Errors that a back end returns, wrapped with its own detail.
var (
	ErrClosed     = errors.New("store is closed")
	ErrLocked     = errors.New("store is in use by another process")
	ErrNoSpace    = errors.New("no space left on device")
	ErrTxTooLarge = errors.New("transaction too large")
	ErrLimit      = errors.New("key or value outside the limits")
	ErrNoTable    = errors.New("no such table")
	ErrNotStore   = errors.New("not an avfs store")
	ErrCorrupt    = errors.New("store is damaged")
	ErrMutating   = errors.New("put or delete during a scan of the same table")
	ErrReadOnly   = errors.New("put or delete in a read transaction or a read-only store")
	ErrTxDone     = errors.New("transaction has ended")
	ErrVersion    = errors.New("store was written by a newer version")
)

// Stop ends a Scan early without an error when its callback returns it.
var Stop = errors.New("stop")

// Store is an open database. Every method but Close returns ErrClosed after Close.
type Store interface {
	// View runs fn on a snapshot: everything that was committed when View
	// began and nothing later. An error from fn is returned unchanged.
	View(ctx context.Context, fn func(Reader) error) error

	// Update runs fn and commits its changes, all or none. Updates are
	// serialisable and see their own writes. An error or panic from fn rolls
	// back; the error is returned unchanged, the panic continues. fn may run
	// again after a conflict or a lack of room, so it must have no effect
	// outside the transaction. When Update returns nil the promise of mode holds. If ctx
	// is cancelled before the commit begins, nothing is written.
	Update(ctx context.Context, mode Mode, fn func(Writer) error) error

	// Close waits for running transactions and releases the database. A
	// second Close returns nil.
	Close() error
}

// Reader reads one snapshot.
type Reader interface {
	// Get returns the value of key, and whether it exists.
	Get(t Table, key []byte) (value []byte, ok bool, err error)

	// Scan calls fn in key order for each key that has prefix and is not
	// below from (nil: no bound; neither need be a possible key). It ends at
	// the first error from fn, which it returns, Stop as nil. fn may Get from any table and Scan any
	// table; Put or Delete on the table being scanned fails with
	// ErrMutating, on other tables it works.
	Scan(t Table, prefix, from []byte, fn func(key, value []byte) error) error
}

// Writer reads and changes the store within one Update.
type Writer interface {
	Reader
	// Put sets key to value.
	Put(t Table, key, value []byte) error
	// Delete removes key. A key that does not exist is no error.
	Delete(t Table, key []byte) error
}

// Options says how to open a store.
type Options struct {
	// Tables lists every table. Missing ones are created; others that the
	// database holds are left alone.
	Tables []Table
	// Create makes a new store where there is none, and fails with
	// fs.ErrExist where there is. Without it, opening fails with
	// fs.ErrNotExist where there is none.
	Create bool
	// ReadOnly opens without changing a byte of the store where the database
	// can do that.
	ReadOnly bool
}

// Driver opens stores of one kind. It keeps no state.
type Driver interface {
	// Name is the stable name of the back end, such as "sqlite".
	Name() string
	// Open opens the store at path. While another process, or another
	// handle in this one, has it open, Open waits until the deadline of ctx
	// (a cancelled or expired ctx: not at all; none: OpenWait) and then fails
	// with a *LockedError. What is no store of this kind is ErrNotStore; one
	// that a newer version wrote is ErrVersion.
	Open(ctx context.Context, path string, opts Options) (Store, error)
	// Recognise reports whether path looks like a store of this kind,
	// reading only its first bytes.
	Recognise(path string) bool
}

// Optional abilities. A back end, or a decorator around one, has an ability
// when As finds its interface.
type (
	// Compacter gives unused space back to the file system and reports how
	// many bytes the store shrank by.
	Compacter interface {
		Compact(ctx context.Context) (reclaimed int64, err error)
	}
	// Sizer reports the disk space that the store uses, in bytes, sidecars
	// included.
	Sizer interface {
		Size() (int64, error)
	}
	// FreeSpacer reports how far the store is from full, in bytes: about as much
	// less Reserve can be put before an Update without Reclaim fails with
	// ErrNoSpace. It counts free space on the disk and inside the store, without
	// what the database has yet to take for updates that are done. It does not
	// wait for the writer.
	FreeSpacer interface {
		FreeSpace() (int64, error)
	}
	// Backuper writes a consistent copy of the store to path, which must
	// not exist, while the store is in use.
	Backuper interface {
		Backup(ctx context.Context, path string) error
	}
	// Verifier checks the database's own structure. A finding wraps ErrCorrupt.
	Verifier interface {
		Verify(ctx context.Context) error
	}
	// Durabler reports the durability settings in force for a mode, read
	// back from the database, and whether they keep its promise.
	Durabler interface {
		Durability(ctx context.Context, mode Mode) (setting string, holds bool, err error)
	}
	// Unwrapper is implemented by a decorator so that As can look inside.
	Unwrapper interface {
		Unwrap() Store
	}
)

// As finds the ability T in s or in a store that s wraps.
func As[T any](s Store) (T, bool) {
	for s != nil {
		if t, ok := s.(T); ok {
			return t, true
		}
		u, ok := s.(Unwrapper)
		if !ok {
			break
		}
		s = u.Unwrap()
	}
	var zero T
	return zero, false
}

// LockedError says who holds a store that could not be opened.
type LockedError struct {
	Path string
	PID  int // 0: not known
}

// Error names the store and, where known, the holder.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return e.Path + ": " + ErrLocked.Error()
	}
	return e.Path + ": " + ErrLocked.Error() + " (pid " + strconv.Itoa(e.PID) + ")"
}

// Unwrap makes errors.Is(err, ErrLocked) hold.
func (e *LockedError) Unwrap() error { return ErrLocked }

// SpaceError says how little space is left for an update that was refused.
type SpaceError struct {
	Path       string // of the store; empty: not known
	Free, Need int64  // bytes
}

// Error names the store, what is left and what is needed.
func (e *SpaceError) Error() string {
	s := strconv.FormatInt(e.Free, 10) + " bytes free, " + strconv.FormatInt(e.Need, 10) + " needed: " + ErrNoSpace.Error()
	if e.Path == "" {
		return s
	}
	return e.Path + ": " + s
}

// Unwrap makes errors.Is(err, ErrNoSpace) hold.
func (e *SpaceError) Unwrap() error { return ErrNoSpace }

// ID returns the key of id in a table with IDs set.
func ID(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

// ParseID returns the id of an eight-byte key.
func ParseID(key []byte) uint64 { return binary.BigEndian.Uint64(key) }
