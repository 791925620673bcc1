package engine_test

import (
	"context"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// A file with two names is followed to where it was before a merge moved its directory.
func TestPathLogThroughMerge(t *testing.T) {
	ctx := context.Background()
	for _, links := range []string{"", "ln a/f z", "ln a/f a/g", "ln a/f 0"} {
		st := mergeVaults(t, "w a/f 1\n"+links, "w n 1", "mv a b")
		if _, err := st.Merge(ctx, "src", "dst", nil); err != nil {
			t.Fatal(err)
		}
		log, err := vaultOf(t, st, "dst").PathLog(ctx, "b/f", nil)
		if err != nil || len(log.Events) == 0 {
			t.Fatalf("%q: %+v, %v", links, log, err)
		}
		c := log.Events[0].Changes
		if len(c) != 1 || c[0].Kind != engine.Renamed || c[0].OldPath != "a/f" {
			t.Errorf("%q: %+v", links, log.Events)
		}
	}
}
