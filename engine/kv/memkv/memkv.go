// Package memkv is the reference implementation of engine/kv: a store in memory.
//
// It keeps the whole contract and none of the compromises, so a test that passes
// on memkv and fails on a back end has found a fault of the back end. What it adds
// for tests is a memory of which updates were durable: Clone returns the store as
// it would come back after the death of the process or a power cut.
package memkv

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/tidwall/btree"
)

// maxTail bounds the states that are kept for power-loss clones; older ones count
// as durable, as they would on a real disk after a while.
const maxTail = 4096

// table is one key space. A published table is never changed again.
type table = btree.Map[string, []byte]

// state is one committed moment: immutable once published.
type state struct {
	decls  kv.Tables // every table that the store holds
	tables map[string]*table
}

// with returns a state that also holds the tables in decls, or ErrNoTable when
// one of them is held under another declaration.
func (st *state) with(decls kv.Tables) (*state, error) {
	next := &state{decls: kv.Tables{}, tables: map[string]*table{}}
	for name, t := range st.decls {
		next.decls[name], next.tables[name] = t, st.tables[name]
	}
	for name, t := range decls {
		held, ok := next.decls[name]
		if ok && held != t {
			return nil, fmt.Errorf("table %q is declared as %+v: %w", name, held, kv.ErrNoTable)
		}
		if !ok {
			next.decls[name], next.tables[name] = t, &table{}
		}
	}
	return next, nil
}

// disk is what outlives a handle: the committed states of one store that a crash
// may still bring back.
type disk struct {
	mu      sync.Mutex // guards the rest
	durable *state     // the newest state that power loss cannot take
	tail    []*state   // relaxed states after it, oldest first
	held    bool       // a handle is open
}

// newest returns the newest committed state.
func (d *disk) newest() *state {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.tail); n > 0 {
		return d.tail[n-1]
	}
	return d.durable
}

// publish commits st.
func (d *disk) publish(st *state, mode kv.Mode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if mode.Durable() {
		d.durable, d.tail = st, nil
		return
	}
	d.tail = append(d.tail, st)
	if len(d.tail) > maxTail {
		d.durable, d.tail = d.tail[0], d.tail[1:]
	}
}

// Disks is where a Driver keeps its stores, by path, so that a store can be
// opened again after Close.
type Disks struct {
	mu     sync.Mutex // guards byPath
	byPath map[string]*disk
}

// NewDisks returns an empty place for stores.
func NewDisks() *Disks { return &Disks{byPath: map[string]*disk{}} }

// Install puts a copy of what s holds at path, closed, so that a test can open a
// crash clone through a Driver. It replaces what was there.
func (ds *Disks) Install(path string, s *Store) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.byPath[path] = &disk{durable: s.disk.newest()}
}

// Driver opens stores in memory. Disks must be set.
type Driver struct{ Disks *Disks }

// NewDriver returns a driver with a place of its own.
func NewDriver() Driver { return Driver{Disks: NewDisks()} }

// Name returns "memory".
func (Driver) Name() string { return "memory" }

// Recognise reports whether there is a store at path.
func (d Driver) Recognise(path string) bool {
	d.Disks.mu.Lock()
	defer d.Disks.mu.Unlock()
	return d.Disks.byPath[path] != nil
}

// Open implements kv.Driver. Something on the real file system at path is no
// store of this kind.
func (d Driver) Open(ctx context.Context, path string, opts kv.Options) (kv.Store, error) {
	decls, err := kv.NewTables(opts.Tables)
	if err != nil {
		return nil, err
	}
	dk, err := d.Disks.find(path, opts.Create)
	if err != nil {
		return nil, err
	}
	ok, err := kv.AwaitLock(ctx, dk.tryHold)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &kv.LockedError{Path: path, PID: os.Getpid()}
	}
	if err := dk.declare(decls); err != nil {
		dk.release()
		return nil, err
	}
	return newStore(dk, decls, opts.ReadOnly), nil
}

// find returns the disk at path, or makes it.
func (ds *Disks) find(path string, create bool) (*disk, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	dk := ds.byPath[path]
	_, statErr := os.Lstat(path)
	switch {
	case create && (dk != nil || statErr == nil):
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	case create:
		dk = &disk{durable: &state{}}
		ds.byPath[path] = dk
	case dk == nil && statErr == nil:
		return nil, fmt.Errorf("%s: %w", path, kv.ErrNotStore)
	case dk == nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return dk, nil
}

// tryHold takes the disk for one handle.
func (d *disk) tryHold() (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held {
		return false, nil
	}
	d.held = true
	return true, nil
}

// release gives the disk back.
func (d *disk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = false
}

// declare adds missing tables to every state that may come back.
func (d *disk) declare(decls kv.Tables) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, st := range append([]*state{d.durable}, d.tail...) {
		next, err := st.with(decls)
		if err != nil {
			return err
		}
		if i == 0 {
			d.durable = next
		} else {
			d.tail[i-1] = next
		}
	}
	return nil
}
