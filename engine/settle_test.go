package engine_test

import (
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
)

// TestSettleGoesOn holds that a vault that cannot be settled keeps no other from it.
func TestSettleGoesOn(t *testing.T) {
	ctx := t.Context()
	db := faultkv.Wrap(newMem(t), faultkv.Config{Scribble: true})
	st, err := engine.Create(ctx, db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	var vaults []*engine.Vault
	for _, name := range []string{"b", "a", "c", "d"} {
		v, err := st.CreateVault(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		writeText(t, v, "f", name)
		vaults = append(vaults, v)
	}
	db.Arm(faultkv.Rule{Op: faultkv.Update, N: 1, Err: kv.ErrNoSpace})
	if err := st.Settle(ctx); engine.KindOf(err) != engine.NoSpace {
		t.Errorf("%v, want NoSpace", err)
	}
	db.Arm()
	for i, v := range vaults {
		events, err := v.Timeline(ctx, 0)
		if err != nil || (len(events) == 1) != (i > 0) {
			t.Errorf("vault %s has %+v, %v", v.Name(), events, err)
		}
	}
	if err := st.Settle(ctx); err != nil {
		t.Error(err)
	}
	if events, err := vaults[0].Timeline(ctx, 0); err != nil || len(events) != 1 {
		t.Errorf("after another time: %+v, %v", events, err)
	}
}
