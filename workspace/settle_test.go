package workspace

import (
	"errors"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// TestCannotWait holds that what can wait hides nothing that cannot.
func TestCannotWait(t *testing.T) {
	damage, full := &engine.Error{Kind: engine.Corrupt}, &engine.Error{Kind: engine.NoSpace}
	disk := errors.New("the disk does not answer")
	for _, c := range []struct{ err, want error }{
		{nil, nil}, {full, nil}, {errors.Join(damage, full), nil}, {disk, disk}, {errors.Join(damage, disk), disk}, {errors.Join(disk, full), disk},
	} {
		if got := cannotWait(c.err); !errors.Is(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("of %v is left %v", c.err, got)
		}
	}
}
