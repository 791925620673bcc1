package view

import (
	"context"
	"errors"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// newUnmounted is a view of a server that mounts nothing: what is flushed is a folder.
func newUnmounted(t *testing.T, srv *Server) *View {
	return &View{point: t.TempDir(), srv: srv, flushing: make(chan struct{}, 1), done: make(chan struct{})}
}

// TestFlushUnsure checks that a flush is Busy, each time, where neither the library nor
// the system says whether mapped pages have arrived, and that nothing can be under way
// where no file is open for writing.
func TestFlushUnsure(t *testing.T) {
	writing := true
	w := newUnmounted(t, &Server{Writing: func() bool { return writing }})
	for range 2 {
		if err := w.Flush(t.Context()); engine.KindOf(err) != engine.Busy {
			t.Errorf("with an open file: %v, want Busy", err)
		}
	}
	writing = false
	if err := w.Flush(t.Context()); err != nil {
		t.Errorf("without: %v", err)
	}
}

// TestFlushKeepsLoss checks that a loss which is found after nobody waited any more is
// told by the next flush, and once.
func TestFlushKeepsLoss(t *testing.T) {
	lost := errors.New("lost")
	begun, goOn := make(chan struct{}), make(chan error)
	w := newUnmounted(t, &Server{WriteBack: func() error {
		begun <- struct{}{}
		return <-goOn
	}})
	ctx, cancel := context.WithCancel(t.Context())
	abandoned := make(chan error, 1)
	go func() { abandoned <- w.Flush(ctx) }() // ends with ctx
	<-begun
	cancel()
	if err := <-abandoned; !errors.Is(err, context.Canceled) {
		t.Errorf("the abandoned flush: %v", err)
	}
	goOn <- lost
	for _, want := range []error{lost, nil} {
		told := make(chan error, 1)
		go func() { told <- w.Flush(t.Context()) }() // ends when the server answers
		<-begun
		goOn <- nil
		if err := <-told; !errors.Is(err, want) {
			t.Errorf("the next flush: %v, want %v", err, want)
		}
	}
}
