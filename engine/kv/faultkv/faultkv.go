// Package faultkv is a decorator for tests that makes a store fail on purpose and
// shows mistakes with slices that belong to a transaction.
//
// A test wraps a store, arms it with rules such as "the third Put fails with
// ErrNoSpace", runs the code under test, and checks that the code reports the error
// and leaves a state that existed. With Scribble set, every slice that a transaction
// handed out is overwritten when it becomes invalid, so code that kept one sees
// garbage at once instead of now and then.
package faultkv

import (
	"context"
	"sync"

	"github.com/agentvfs/avfs/engine/kv"
)

// Op is a kind of call that can fail.
type Op uint8

// The calls that can fail.
const (
	View        Op = iota // View, before its function runs
	Update                // Update, before its function runs
	Get                   // Get in either kind of transaction
	Scan                  // Scan, before its first key
	Put                   // Put, which then changes nothing
	Delete                // Delete, which then changes nothing
	Commit                // Update after its function succeeded: all is rolled back
	AfterCommit           // Update after its commit: the changes are there, the caller gets the error
	Close                 // Close, after the store has closed
)

// Rule makes one call fail, or all from one on.
type Rule struct {
	Op     Op
	Table  string // only calls on this table; empty: on any. Transactions have none
	N      int    // the Nth matching call since Arm, from 1; 0 counts as 1
	Sticky bool   // every later matching call fails too, as on a full disk
	Err    error  // what the call returns
}

// matches reports whether r is about a call of op on table.
func (r *Rule) matches(op Op, table string) bool {
	return r.Op == op && (r.Table == "" || r.Table == table)
}

// Config says what a wrapped store does.
type Config struct {
	Rules    []Rule
	Scribble bool // overwrite every slice handed out when it becomes invalid
}

// Store is a store that fails on purpose. It is as safe for concurrent use as the
// store that it wraps.
type Store struct {
	inner    kv.Store
	scribble bool

	mu    sync.Mutex // guards the rest
	rules []Rule
	seen  []int // for each rule, the matching calls so far
	calls [Close + 1]int
}

// Wrap returns s with the faults of cfg.
func Wrap(s kv.Store, cfg Config) *Store {
	w := &Store{inner: s, scribble: cfg.Scribble}
	w.Arm(cfg.Rules...)
	return w
}

// Arm replaces the rules and starts counting again. Without rules nothing fails.
func (s *Store) Arm(rules ...Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append([]Rule(nil), rules...)
	s.seen = make([]int, len(rules))
	s.calls = [Close + 1]int{}
}

// Calls returns how many calls of op there were since Arm, failed ones included, so
// that a test can first count and then fail each in turn.
func (s *Store) Calls(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

// check counts a call and returns the error that a rule has for it.
func (s *Store) check(op Op, table string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[op]++
	var err error
	for i := range s.rules {
		r := &s.rules[i]
		if !r.matches(op, table) {
			continue
		}
		s.seen[i]++
		n := max(r.N, 1)
		if err == nil && (s.seen[i] == n || r.Sticky && s.seen[i] > n) {
			err = r.Err
		}
	}
	return err
}

// Unwrap implements kv.Unwrapper.
func (s *Store) Unwrap() kv.Store { return s.inner }

// View implements kv.Store.
func (s *Store) View(ctx context.Context, fn func(kv.Reader) error) error {
	if err := s.check(View, ""); err != nil {
		return err
	}
	return s.inner.View(ctx, func(r kv.Reader) error {
		tx := &tx{store: s, r: r}
		defer tx.end()
		return fn(tx)
	})
}

// Update implements kv.Store.
func (s *Store) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	if err := s.check(Update, ""); err != nil {
		return err
	}
	err := s.inner.Update(ctx, mode, func(w kv.Writer) error {
		tx := &tx{store: s, r: w, w: w}
		defer tx.end()
		if err := fn(tx); err != nil {
			return err
		}
		return s.check(Commit, "")
	})
	if err != nil {
		return err
	}
	return s.check(AfterCommit, "")
}

// Close implements kv.Store. The wrapped store closes even when a rule makes the
// call fail, so that a test leaves nothing open.
func (s *Store) Close() error {
	if err := s.inner.Close(); err != nil {
		return err
	}
	return s.check(Close, "")
}
