package memkv

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/agentvfs/avfs/engine/kv"
)

// Store is an open store in memory.
type Store struct {
	disk     *disk
	decls    kv.Tables
	readOnly bool
	gate     *kv.Gate
	writer   chan struct{} // holds one token while an Update runs

	hookMu  sync.Mutex // guards the next two
	hook    func(n int)
	commits int
}

// New returns a new, empty store that holds tables and is gone after Close. It
// panics when the declarations are wrong, which only a faulty test can bring about.
func New(tables ...kv.Table) *Store {
	decls, err := kv.NewTables(tables)
	if err != nil {
		panic(err)
	}
	dk := &disk{durable: &state{}, held: true}
	if err := dk.declare(decls); err != nil {
		panic(err)
	}
	return newStore(dk, decls, false)
}

func newStore(dk *disk, decls kv.Tables, readOnly bool) *Store {
	return &Store{disk: dk, decls: decls, readOnly: readOnly, gate: kv.NewGate(), writer: make(chan struct{}, 1)}
}

// View implements kv.Store.
func (s *Store) View(ctx context.Context, fn func(kv.Reader) error) error {
	if err := s.gate.Enter(ctx); err != nil {
		return err
	}
	defer s.gate.Leave()
	tx := &tx{ctxErr: ctx.Err, guard: s.decls.Reader(), tables: s.disk.newest().tables}
	defer tx.guard.Finish()
	return fn(tx)
}

// Update implements kv.Store. Updates run one after the other.
func (s *Store) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	if err := s.gate.Enter(ctx); err != nil {
		return err
	}
	defer s.gate.Leave()
	if s.readOnly {
		return kv.ErrReadOnly
	}
	if err := s.gate.Acquire(ctx, s.writer); err != nil {
		return err
	}
	defer func() { <-s.writer }()

	base := s.disk.newest()
	tx := &tx{ctxErr: ctx.Err, guard: s.decls.Writer(), tables: make(map[string]*table, len(base.tables))}
	for name, t := range base.tables {
		tx.tables[name] = t
	}
	if err := run(tx, fn); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.disk.publish(&state{decls: base.decls, tables: tx.tables}, mode)
	s.committed()
	return nil
}

// run calls fn and ends the transaction, also when fn panics.
func run(tx *tx, fn func(kv.Writer) error) (err error) {
	defer func() {
		if failed := tx.guard.Finish(); err == nil {
			err = failed
		}
	}()
	return fn(tx)
}

// committed counts a commit and calls the hook.
func (s *Store) committed() {
	s.hookMu.Lock()
	s.commits++
	hook, n := s.hook, s.commits
	s.hookMu.Unlock()
	if hook != nil {
		hook(n)
	}
}

// Close implements kv.Store.
func (s *Store) Close() error {
	if s.gate.Close() {
		s.disk.release()
	}
	return nil
}

// OnCommit makes the store call hook after each commit, before Update returns,
// with the number of commits of this handle so far. The hook may Clone and View
// the store but not Update it: the writer still holds its turn. nil takes it away.
func (s *Store) OnCommit(hook func(n int)) {
	s.hookMu.Lock()
	defer s.hookMu.Unlock()
	s.hook = hook
}

// Verify implements kv.Verifier. Memory has no structure that could be damaged.
func (s *Store) Verify(ctx context.Context) error {
	if err := s.gate.Enter(ctx); err != nil {
		return err
	}
	s.gate.Leave()
	return nil
}

// Size implements kv.Sizer with the sum of all keys and values.
func (s *Store) Size() (int64, error) {
	if err := s.gate.Enter(context.Background()); err != nil {
		return 0, err
	}
	defer s.gate.Leave()
	var n int64
	for _, t := range s.disk.newest().tables {
		t.Scan(func(k string, v []byte) bool {
			n += int64(len(k) + len(v))
			return true
		})
	}
	return n, nil
}

// tx is one transaction. Its tables are published ones until the first change of
// each, which copies it.
type tx struct {
	ctxErr func() error
	guard  *kv.Guard
	tables map[string]*table
	owned  map[string]bool // tables that this transaction has copied
}

// Get implements kv.Reader.
func (t *tx) Get(tb kv.Table, key []byte) ([]byte, bool, error) {
	if err := t.guard.Get(tb, key); err != nil {
		return nil, false, err
	}
	if err := t.ctxErr(); err != nil {
		return nil, false, err
	}
	v, ok := t.tables[tb.Name].Get(string(key))
	return v[:len(v):len(v)], ok, nil
}

// Scan implements kv.Reader.
func (t *tx) Scan(tb kv.Table, prefix, from []byte, fn func(key, value []byte) error) (err error) {
	if err := t.guard.BeginScan(tb); err != nil {
		return err
	}
	defer t.guard.EndScan()
	start := max(string(prefix), string(from))
	t.tables[tb.Name].Ascend(start, func(k string, v []byte) bool {
		if !strings.HasPrefix(k, string(prefix)) {
			return false
		}
		if err = t.ctxErr(); err == nil {
			err = fn([]byte(k), v[:len(v):len(v)])
		}
		return err == nil
	})
	if errors.Is(err, kv.Stop) {
		return nil
	}
	return err
}

// Put implements kv.Writer.
func (t *tx) Put(tb kv.Table, key, value []byte) error {
	if err := t.guard.Put(tb, key, value); err != nil {
		return err
	}
	t.own(tb.Name).Set(string(key), append([]byte{}, value...))
	return nil
}

// Delete implements kv.Writer.
func (t *tx) Delete(tb kv.Table, key []byte) error {
	if err := t.guard.Delete(tb, key); err != nil {
		return err
	}
	t.own(tb.Name).Delete(string(key))
	return nil
}

// own returns the table for changing. Copying a published table marks its nodes
// as shared, which only the one writer does, and readers never look at the mark.
func (t *tx) own(name string) *table {
	if t.owned[name] {
		return t.tables[name]
	}
	if t.owned == nil {
		t.owned = map[string]bool{}
	}
	t.owned[name] = true
	t.tables[name] = t.tables[name].Copy()
	return t.tables[name]
}
