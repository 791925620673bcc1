package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/mountpoint"
)

// ErrUnavailable says that this machine or this build cannot mount. The error
// that wraps it says what to install or permit.
var ErrUnavailable = errors.New("mounting is not available")

// ErrRefused says that the FUSE library or the kernel would not mount. libfuse
// writes its reason to standard error.
var ErrRefused = errors.New("the system refused the mount")

// BusyError says who keeps a mount from being unmounted.
type BusyError = mountpoint.BusyError

// View is a vault that is visible as a directory.
type View struct {
	driver  string
	point   string
	created bool // Mount made the directory
	vault   *engine.Vault
	srv     *Server
	device  string // as mountpoint.Device gave it; for Abort

	flushing   chan struct{} // full while the kernel is asked to write back; guards lost
	lost       error         // of a page that the vault has not taken, which no Flush has told yet
	unmounting sync.Mutex    // held by Unmount
	remove     sync.Once     // removes a created directory
	done       chan struct{}
	err        error // why serving ended; written before done is closed
}

// Server is what runs behind a view: a FUSE library calling a binding's operations.
type Server struct {
	Ready     <-chan struct{} // closed once the kernel has said hello
	Run       func() error    // serves until the mount is gone; an error: it never came up, or why it ended
	Shut      func() error    // ends all service: closes every handle, commits durably; again: only reports
	RootCalls func() uint64   // how often the top directory has been asked for; nil: the mount is in place before Ready
	Stop      func() bool     // asks the library to end, where it can be asked
	WriteBack func() error    // waits for mapped pages that the kernel is handing over; the first error of one since the last call; nil: see Writing
	Writing   func() bool     // whether a file is open for writing, in a library that cannot tell whether the kernel is handing over pages of it
	PollName  string          // a file in the top directory for AskPoll; empty: the library sees to that
}

// Driver is a binding, as the life of a view needs it.
type Driver struct {
	Name string // as people choose it
	// Available is nil, or returns an error that wraps ErrUnavailable.
	Available func() error
	// Plan checks the options of a mount of v. Nothing happens before the
	// returned function is given the mount point, and then Run is called.
	Plan func(v *engine.Vault, opts *Options) (func(point string) *Server, error)
}

// Mount makes v visible at point and returns once a stat through the mount gets
// its answer from v. A missing directory is made, and removed at the unmount; what
// a dead process left mounted there is cleared away. ctx bounds the wait for the
// mount, not its life. The caller keeps v open until Done.
func Mount(ctx context.Context, d *Driver, v *engine.Vault, point string, opts *Options) (*View, error) {
	if err := d.Available(); err != nil {
		return nil, err
	}
	if opts == nil {
		opts = &Options{}
	}
	if err := mountpoint.Recover(point); err != nil {
		return nil, err
	}
	start, err := d.Plan(v, opts)
	if err != nil {
		return nil, err
	}
	full, created, err := mountpoint.Prepare(point, opts.AllowNonEmpty)
	if err != nil {
		return nil, err
	}
	w := &View{driver: d.Name, point: full, created: created, vault: v, srv: start(full), flushing: make(chan struct{}, 1), done: make(chan struct{})}
	go w.serve() // ends when the mount is gone
	if err := w.awaitUsable(ctx); err != nil {
		return nil, errors.Join(err, w.abandon())
	}
	if err := w.settlePolls(ctx); err != nil {
		return nil, errors.Join(err, w.abandon())
	}
	if w.device, err = mountpoint.Device(full); err != nil {
		return nil, errors.Join(err, w.abandon())
	}
	mountpoint.ReadAhead(w.device)
	return w, nil
}

// settlePolls lets the kernel find out that nobody answers polls of the mount's
// files. Package os adds every file that it opens to the poller of the Go runtime,
// and the kernel would then ask the server whether the file is ready; where that is
// this process, the runtime waits for itself, for ever.
func (w *View) settlePolls(ctx context.Context) error {
	if w.srv.PollName == "" {
		return nil
	}
	failed, err := w.asking(ctx, func() error { return mountpoint.AskPoll(filepath.Join(w.point, w.srv.PollName)) })
	if errors.Is(failed, os.ErrPermission) {
		failed = nil // who may not enter the mount opens no file in it
	}
	return errors.Join(failed, err)
}

// serve runs the library until the mount is gone, and cleans up.
func (w *View) serve() {
	failed := w.srv.Run()
	err := w.srv.Shut()
	select {
	case <-w.srv.Ready: // then it only means that the kernel cut the connection
	default:
		if failed != nil {
			err = errors.Join(failed, err)
		}
	}
	w.removePoint()
	w.err = errors.Join(err, w.untold())
	close(w.done)
}

// untold is what a Flush that was given up has found, and nobody was told of.
func (w *View) untold() error {
	select {
	case w.flushing <- struct{}{}:
		defer func() { <-w.flushing }()
		return w.lost
	default: // a Flush is under way and tells it
		return nil
	}
}

// awaitUsable returns once a stat of the mount point has reached our server.
func (w *View) awaitUsable(ctx context.Context) error {
	if err := w.await(ctx, w.srv.Ready); err != nil {
		return err
	}
	for {
		before := w.rootCalls()
		statErr, err := w.asking(ctx, func() error { return mountpoint.Ask(w.point) })
		if err != nil {
			return err
		}
		if statErr == nil && (w.srv.RootCalls == nil || w.rootCalls() > before) {
			return nil
		}
		// Only macOS and Windows come here: they mount after they say hello.
		time.Sleep(time.Millisecond)
	}
}

// asking runs fn, which asks the mount something, as long as there is time.
func (w *View) asking(ctx context.Context, fn func() error) (answer, err error) {
	answered := make(chan error, 1)
	go func() { answered <- fn() }() // ends with fn, at the latest when the mount goes
	select {
	case answer = <-answered:
		return answer, nil
	case <-w.done:
		return nil, fmt.Errorf("mount on %s: %w", w.point, w.err)
	case <-ctx.Done():
		return nil, fmt.Errorf("mount on %s: %w", w.point, ctx.Err())
	}
}

func (w *View) rootCalls() uint64 {
	if w.srv.RootCalls == nil {
		return 0
	}
	return w.srv.RootCalls()
}

// await waits for event, unless the mount fails or time is up.
func (w *View) await(ctx context.Context, event <-chan struct{}) error {
	select {
	case <-event:
		return nil
	case <-w.done:
		return fmt.Errorf("mount on %s: %w", w.point, w.err)
	case <-ctx.Done():
		return fmt.Errorf("mount on %s: %w", w.point, ctx.Err())
	}
}

// abandon takes down a mount that nobody has got hold of. The library cannot be
// stopped before it has mounted, so that is waited for, as long as it is quick.
func (w *View) abandon() error {
	gone := make(chan error, 1)
	go func() { // ends when the library has mounted or given up
		select {
		case <-w.srv.Ready:
		case <-w.done:
			gone <- nil
			return
		}
		err := w.detach(context.Background(), true)
		gone <- errors.Join(err, w.cut(context.Background()))
	}()
	select {
	case err := <-gone:
		return err
	case <-time.After(cutTime):
		return nil
	}
}

// Point is the mount point, absolute and without symbolic links.
func (w *View) Point() string { return w.point }

// Driver is the name of the binding that serves the view.
func (w *View) Driver() string { return w.driver }

// Done is closed when the mount is gone and everything is committed, however it
// ended. Err says how.
func (w *View) Done() <-chan struct{} { return w.done }

// Wait returns Done.
func (w *View) Wait() <-chan struct{} { return w.done }

// Err is nil before Done and after a clean end; else why data may be missing, or
// what went wrong inside while the mount was served.
func (w *View) Err() error {
	select {
	case <-w.done:
		return w.err
	default:
		return nil
	}
}

// Unmount commits everything durably and takes the mount down. While somebody
// uses the mount it fails with a *BusyError and the mount stays usable. With force
// the mount disappears all the same: what was written before is durable, and
// whoever still uses it gets errors. A failed commit keeps the mount, unless
// forced; then it is reported as well. Unmount of a mount that is gone returns Err.
func (w *View) Unmount(ctx context.Context, force bool) error {
	w.unmounting.Lock()
	defer w.unmounting.Unlock()
	select {
	case <-w.done:
		return w.err
	default:
	}
	saved := w.save(ctx, force)
	if saved != nil && !force {
		return fmt.Errorf("unmount %s: %w", w.point, saved)
	}
	if err := w.detach(ctx, force); err != nil && saved == nil {
		return err
	} else if err != nil {
		return errors.Join(saved, err)
	}
	if force {
		return errors.Join(saved, w.cut(ctx))
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return fmt.Errorf("unmount %s: %w", w.point, ctx.Err())
	}
}

// Flush hands to the vault what programs have written to shared mappings of files,
// which the kernel otherwise keeps for a while. The vault commits nothing. It fails if
// the vault has not taken something that was handed over since the last Flush; that is
// told once, and gone. When ctx ends first, the kernel goes on by itself, and a later
// Flush waits for it and tells of its errors. Where the library does not know whether
// everything has arrived, and the kernel does not say so within idleTime, it is an
// engine.Error of kind Busy. A mount that is gone has nothing to hand over.
func (w *View) Flush(ctx context.Context) error {
	failed := func() error { return fmt.Errorf("flush %s: %w", w.point, ctx.Err()) }
	select {
	case w.flushing <- struct{}{}:
	case <-w.done:
		return nil
	case <-ctx.Done():
		return failed()
	}
	flushed, abandoned := make(chan error), make(chan struct{})
	defer close(abandoned)
	go func() { // ends when our server answers or ends
		w.flush(ctx, flushed, abandoned)
		<-w.flushing
	}()
	select {
	case err := <-flushed:
		return err
	case <-w.done:
		return nil
	case <-ctx.Done():
		return failed()
	}
}

// flush is Flush for as long as it takes. The answer goes to flushed; if nobody is
// there to take it, what was lost is kept for the next Flush. ctx bounds only the wait
// for an idle mount, which need not end by itself.
func (w *View) flush(ctx context.Context, flushed chan<- error, abandoned <-chan struct{}) {
	err := w.handOver()
	if err == nil && w.srv.WriteBack == nil {
		err = w.awaitIdle(ctx)
	}
	if w.lost == nil && !errors.Is(err, errUnsure) {
		w.lost = err
	}
	select {
	case flushed <- cmp.Or(w.lost, err):
		w.lost = nil
	case <-abandoned:
	}
}

// handOver has the kernel hand over mapped pages. A Linux since 6.16 begins to do so at
// a syncfs, and does not wait for the end. A server that waits by itself also knows
// which page it has not taken and why; of that the kernel says only that there was an
// error, at the next syncfs once more.
func (w *View) handOver() error {
	err := w.sync()
	if w.srv.WriteBack == nil {
		return err
	}
	if err = w.srv.WriteBack(); err != nil {
		return fmt.Errorf("flush %s: %w", w.point, err)
	}
	return nil
}

// sync is a syncfs of the mount. A top directory that this user may not open hides
// nothing from the unmount, which writes mapped pages back by itself.
func (w *View) sync() error {
	err := mountpoint.Flush(w.point)
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}

// errUnsure says that mapped pages may still be under way.
var errUnsure = errors.New("the FUSE library does not tell whether all that programs have written to mapped files has arrived")

// awaitIdle waits for a moment without requests where nothing else tells that the
// kernel has handed over mapped pages. A mount that is in use all the time may have
// none. Then a second syncfs has the error of what has arrived since the first.
func (w *View) awaitIdle(ctx context.Context) error {
	if w.srv.Writing == nil || !w.srv.Writing() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, idleTime)
	defer cancel()
	if err := mountpoint.AwaitIdle(ctx, w.device); err != nil {
		return &engine.Error{Kind: engine.Busy, Op: "flush", Path: w.point, Err: fmt.Errorf("%w: %w", errUnsure, err)}
	}
	return w.sync()
}

// idleTime bounds the wait for a moment without requests.
const idleTime = 5 * time.Second

// save makes everything durable that programs have written so far, mapped pages
// included. Without force, a file that is open for writing keeps the mount from being
// unmounted anyway, and who has it is worth more than that its pages may be missing.
func (w *View) save(ctx context.Context, force bool) error {
	switch err := w.Flush(ctx); {
	case err != nil && ctx.Err() != nil:
		return err
	case errors.Is(err, errUnsure) && force:
		return fmt.Errorf("what programs have in mapped memory may be lost: %w", err)
	case err != nil && !errors.Is(err, errUnsure): // it is told once, and dropped
		return fmt.Errorf("what a program had in mapped memory is lost; unmount again to go on without it: %w", err)
	}
	_, err := w.vault.Commit(ctx, true)
	return err
}

// detach takes the mount out of the tree. Where only the library can, it is asked.
func (w *View) detach(ctx context.Context, lazy bool) error {
	err := mountpoint.Detach(ctx, w.point, lazy)
	if errors.Is(err, errors.ErrUnsupported) && w.srv.Stop() {
		return nil
	}
	var busy *BusyError
	if err != nil && !errors.As(err, &busy) {
		return fmt.Errorf("unmount %s: %w", w.point, err)
	}
	return err
}

// cutTime bounds the wait for the library to notice that its mount is gone.
const cutTime = 2 * time.Second

// cut ends the service of a detached mount, also for whoever still uses it.
func (w *View) cut(ctx context.Context) error {
	failed := w.srv.Shut()
	w.removePoint()
	if mountpoint.Abort(w.device) != nil {
		return failed // the service has ended; Done comes when the last user lets go
	}
	select {
	case <-w.done:
		return w.err // which has what failed
	case <-time.After(cutTime):
		return failed
	case <-ctx.Done():
		return failed
	}
}

// removePoint removes the mount point if Mount made it. Somebody may have removed
// or filled it meanwhile; then it is theirs.
func (w *View) removePoint() {
	w.remove.Do(func() {
		if w.created {
			_ = os.Remove(w.point)
		}
	})
}
