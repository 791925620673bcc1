package engine

import (
	"sync/atomic"
	"testing"
)

// TestParallelPanic checks that a panic in one of many calls is the caller's, who may
// recover, and that the other calls have ended by then.
func TestParallelPanic(t *testing.T) {
	var calls atomic.Int64
	defer func() {
		if r := recover(); r != "seven" || calls.Load() == 0 {
			t.Errorf("recovered %v after %d calls", r, calls.Load())
		}
	}()
	parallel(100, func(i int) {
		if i == 7 {
			panic("seven")
		}
		calls.Add(1)
	})
}
