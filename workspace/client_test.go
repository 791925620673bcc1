package workspace

import (
	"bufio"
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// TestCallToEndingOwner calls an owner that ends after it has read the request and
// before it has taken it. The call must come back, and may be tried again.
func TestCallToEndingOwner(t *testing.T) {
	store := filepath.Join(t.TempDir(), "v"+storeSuffix)
	l, err := net.Listen("unix", socketPath(store))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() { // ends with the one connection
		c, err := l.Accept()
		if err == nil {
			_, err = bufio.NewReader(c).ReadString('}') // into the body
			err = errors.Join(err, c.Close())
		}
		served <- err
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r := (&Workspace{}).dial(ctx, store)
	if r == nil {
		t.Fatal("nobody listens")
	}
	if _, err := r.call(ctx, "any", false, []byte(`{}`), Streams{}, engine.Actor{}); !errors.Is(err, errNotStarted) {
		t.Errorf("the call ended with %v, want errNotStarted", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
