package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

var errDisk = errors.New("input/output error")

// TestFaults makes every call of the database fail in turn. An operation that
// reports the error has happened whole or not at all; it works when it is repeated;
// nothing is lost, and the store stays whole. Slices of the database are overwritten
// when they become invalid, so whoever kept one reads garbage.
func TestFaults(t *testing.T) {
	steps, samples := 60, 200 // more calls of a kind are sampled
	if testing.Short() {
		steps, samples = 40, 12
	}
	for _, op := range []struct {
		name string
		op   faultkv.Op
	}{
		{"view", faultkv.View}, {"update", faultkv.Update}, {"get", faultkv.Get}, {"scan", faultkv.Scan},
		{"put", faultkv.Put}, {"delete", faultkv.Delete}, {"commit", faultkv.Commit}, {"after commit", faultkv.AfterCommit},
	} {
		t.Run(op.name, func(t *testing.T) {
			total := faultRun(t, steps, faultkv.Rule{Op: op.op, N: 1 << 30})
			step := max(1, total/samples)
			for n := 1; n <= total; n += step {
				err := kv.ErrNoSpace
				if n%2 == 0 {
					err = errDisk
				}
				faultRun(t, steps, faultkv.Rule{Op: op.op, N: n, Err: err})
				if t.Failed() {
					t.Fatalf("with failure %d of %d", n, total)
				}
			}
			t.Logf("%d calls, every %dth failed", total, step)
		})
	}
}

// faultRun plays the script with one fault and returns how many calls there were of
// its kind.
func faultRun(t *testing.T, steps int, rule faultkv.Rule) int {
	t.Helper()
	ctx := context.Background()
	mem := memkv.New(engine.Tables()...)
	db := faultkv.Wrap(mem, faultkv.Config{Scribble: true})
	s, err := createScript(ctx, db, 5)
	if err != nil {
		t.Fatal(err)
	}
	db.Arm(rule)
	for n := range steps {
		s.faultStep(t, n, rule)
		if t.Failed() {
			return 0
		}
	}
	total := db.Calls(rule.Op)
	db.Arm()
	want, err := s.sign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.v.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	sound(t, s.store, "at the end")
	clone := mem.Clone(memkv.PowerLoss, 0)
	st, err := engine.Open(ctx, clone, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.Vault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := signature(ctx, v); err != nil || got != want {
		t.Fatalf("after power loss (%v):\n%s\nwant\n%s", err, got, want)
	}
	if err := errors.Join(st.Close(), s.store.Close()); err != nil {
		t.Fatal(err)
	}
	return total
}

// faultStep makes one step, and again if it fails.
func (s *script) faultStep(t *testing.T, n int, rule faultkv.Rule) {
	t.Helper()
	ctx := context.Background()
	before := s.mustSign(t)
	_, err := s.step(ctx, n)
	if err == nil {
		return
	}
	if !errors.Is(err, rule.Err) {
		t.Errorf("step %d: %v is not the cause", n, err)
		return
	}
	got := s.mustSign(t)
	_, err = s.step(ctx, n)
	if err != nil {
		t.Errorf("step %d, repeated: %v", n, err)
		return
	}
	after := s.mustSign(t)
	if got != before && got != after {
		t.Errorf("step %d happened half:\n%s\nbefore\n%s\nafter\n%s", n, got, before, after)
	}
}

// mustSign reads the state; a fault that strikes meanwhile strikes only once.
func (s *script) mustSign(t *testing.T) string {
	t.Helper()
	var err error
	for range 2 {
		var sig string
		if sig, err = s.sign(context.Background()); err == nil {
			return sig
		}
	}
	t.Fatal(err)
	return ""
}

// TestFailureStays keeps a failed commit visible until one succeeds, to whoever
// asks, and loses nothing.
func TestFailureStays(t *testing.T) {
	for _, cause := range []error{kv.ErrNoSpace, errDisk} {
		t.Run(fmt.Sprint(cause), func(t *testing.T) {
			ctx := context.Background()
			mem := memkv.New(engine.Tables()...)
			db := faultkv.Wrap(mem, faultkv.Config{})
			st, err := engine.Create(ctx, db, &engine.Options{CommitInterval: -1, DirtyBytes: 100 << 10})
			if err != nil {
				t.Fatal(err)
			}
			v, err := st.CreateVault(ctx, "main")
			if err != nil {
				t.Fatal(err)
			}
			h, a, err := v.Create(ctx, engine.RootIno, "f", 0o644, engine.Owner{}, engine.OpenWrite|engine.OpenRead, true)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.WriteAt(ctx, make([]byte, 200<<10), 0); err != nil {
				t.Fatal(err)
			}
			db.Arm(faultkv.Rule{Op: faultkv.Commit, N: 1, Sticky: true, Err: cause})
			for range 3 {
				for what, err := range map[string]error{"sync": h.Sync(ctx), "flush": h.Flush(ctx), "vault": v.Sync(ctx)} {
					if !errors.Is(err, cause) {
						t.Errorf("%s reports %v", what, err)
					}
				}
				if n, err := h.WriteAt(ctx, []byte("x"), 0); !errors.Is(err, cause) || n != 0 {
					t.Errorf("a write past the bound wrote %d bytes and reports %v", n, err)
				}
			}
			if data, err := content(ctx, v, a2(t, v, a.Ino)); err != nil || len(data) != 200<<10 {
				t.Errorf("the file has %d bytes, %v", len(data), err)
			}
			r, err := v.Open(ctx, a.Ino, engine.OpenRead)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(r.Flush(ctx), r.Close()); err != nil {
				t.Errorf("who only reads is told %v", err)
			}
			db.Arm()
			if err := errors.Join(h.Sync(ctx), h.Flush(ctx), h.Close()); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			sound(t, st, "afterwards")
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func a2(t *testing.T, v *engine.Vault, ino engine.Ino) engine.Attr {
	t.Helper()
	a, err := v.Stat(context.Background(), ino)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
