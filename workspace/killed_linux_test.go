package workspace_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/workspace"
)

// freeing is a mounter to which the owner looks killed: setting it free ends it.
type freeing struct {
	nowhere
	t     *testing.T
	end   context.CancelFunc
	freed *atomic.Int64
}

func (f freeing) FreeKilled(pid int) (bool, error) {
	if pid != os.Getpid() {
		f.t.Errorf("process %d is looked at, want %d", pid, os.Getpid())
	}
	f.freed.Add(1)
	f.end()
	return true, nil
}

// TestOwnerCannotEnd holds that an owner which was killed and cannot end, but at whose
// socket one can still knock, is set free and waited for, and never asked.
func TestOwnerCannotEnd(t *testing.T) {
	home := t.TempDir()
	owner := open(t, home)
	doc, err := owner.CreateVault(t.Context(), "v", "")
	if err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends with ctx
		ended <- owner.Serve(ctx, doc.Store, workspace.ServeOptions{Linger: -1, Ready: func() { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	f := freeing{t: t, end: cancel, freed: &atomic.Int64{}}
	w, err := workspace.Open(workspace.Config{Home: home, Drivers: backends.All(), Mounter: f})
	if err != nil {
		t.Fatal(err)
	}
	mkdir(t, w, "/d")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if f.freed.Load() == 0 {
		t.Error("the owner was asked")
	}
}
