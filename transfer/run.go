package transfer

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// Progress is how far a transfer is. Totals are 0 until they are known.
type Progress struct {
	Files      int64 // entries done, directories not counted
	Bytes      int64 // of file content done, holes included
	TotalFiles int64
	TotalBytes int64
	Path       string // an entry in work, relative to the source
}

// progressInterval is the least time between two calls of a progress function.
const progressInterval = 100 * time.Millisecond

// run is what one transfer shares among its goroutines.
type run struct {
	op   string
	ctx  context.Context // ends with the caller's, or when going on is pointless
	stop context.CancelCauseFunc

	files, dirs, symlinks, others, hardLinks, unchanged, bytes atomic.Int64

	// What progress functions are told.
	doneFiles, doneBytes, totalFiles, totalBytes atomic.Int64
	path                                         atomic.Pointer[string]
	progress                                     func(Progress)

	jobs    chan func()
	workers sync.WaitGroup
	drained bool
	sole    bool // there is but one entry, whose failure is that of the transfer

	mu      sync.Mutex // guards what follows
	skipped []Skip
	skips   int64
	failed  int64
	first   *engine.Error
	dropped map[string]int64
}

// queueLength is how many entries may wait for a worker. Each may hold a
// directory of the host open.
const queueLength = 256

// newRun starts the workers. finish ends them.
func newRun(ctx context.Context, op string, workers int, progress func(Progress)) *run {
	r := &run{op: op, progress: progress, jobs: make(chan func(), queueLength), dropped: map[string]int64{}}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	if workers <= 0 {
		workers = min(max(2*runtime.GOMAXPROCS(0), 4), 16)
	}
	for range workers {
		r.workers.Go(func() {
			for job := range r.jobs {
				job()
			}
		})
	}
	return r
}

// do has a worker run job, sooner or later. Jobs run even after the end of the
// context, so that each can let go of what it holds.
func (r *run) do(job func()) { r.jobs <- job }

// drain waits until all jobs are done and ends the workers. It is called by the
// goroutine that calls do, which adds no more; a second call does nothing.
func (r *run) drain() {
	if !r.drained {
		r.drained = true
		close(r.jobs)
		r.workers.Wait()
	}
}

// ended reports whether there is no point in going on.
func (r *run) ended() bool { return r.ctx.Err() != nil }

// finish ends the workers and sums up.
func (r *run) finish() (Report, error) {
	r.drain()
	cause := context.Cause(r.ctx)
	r.stop(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	rep := Report{
		Files: r.files.Load(), Dirs: r.dirs.Load(), Symlinks: r.symlinks.Load(), Others: r.others.Load(),
		HardLinks: r.hardLinks.Load(), Unchanged: r.unchanged.Load(), Bytes: r.bytes.Load(), Skipped: r.skipped, SkippedTotal: r.skips,
	}
	if len(r.dropped) > 0 {
		rep.DroppedXattrs = r.dropped
	}
	sortSkips(rep.Skipped)
	switch {
	case cause != nil:
		return rep, failure(r.op, "", cause)
	case r.failed > 0 && r.sole:
		return rep, r.first
	case r.failed > 0:
		return rep, &PartialError{Op: r.op, Failed: r.failed, First: r.first}
	}
	return rep, nil
}

// fail records that the entry at rel, or an aspect of it, failed, and ends the
// transfer if nothing can succeed after it.
func (r *run) fail(rel string, err error) {
	if r.ended() {
		return // the reason to end is what counts
	}
	e := failure(r.op, rel, err)
	if hopeless(e.Kind) {
		r.stop(e)
		return
	}
	r.record(rel, e, false)
}

// note records that the entry at rel was left out on purpose.
func (r *run) note(rel string, kind engine.Kind, text string) {
	r.record(rel, &engine.Error{Kind: kind, Op: r.op, Path: rel, Err: message(text)}, true)
}

func (r *run) record(rel string, e *engine.Error, note bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skips++
	if !note {
		r.failed++
		if r.first == nil {
			r.first = e
		}
	}
	if len(r.skipped) < MaxSkips {
		text := (&engine.Error{Kind: e.Kind}).Error()
		if e.Err != nil {
			text = e.Err.Error()
		}
		r.skipped = append(r.skipped, newSkip(rel, e.Kind, text, note))
	}
}

// dropXattr counts an extended attribute that is not kept.
func (r *run) dropXattr(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped[name]++
}

// hopeless says which failures every further entry would meet.
func hopeless(k engine.Kind) bool {
	switch k {
	case engine.NoSpace, engine.QuotaExceeded, engine.ReadOnly, engine.Closed, engine.Interrupted, engine.Locked:
		return true
	}
	return false
}

// message is an error that is a mere sentence.
type message string

func (m message) Error() string { return string(m) }

// at notes which entry is in work.
func (r *run) at(rel string) {
	if r.progress != nil {
		r.path.Store(&rel)
	}
}

// report calls the progress function at intervals until the returned function is
// called, which calls it a last time.
func (r *run) report() (stop func()) {
	if r.progress == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.progress(r.now())
			case <-quit:
				r.progress(r.now())
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

func (r *run) now() Progress {
	p := Progress{
		Files: r.doneFiles.Load(), Bytes: r.doneBytes.Load(),
		TotalFiles: r.totalFiles.Load(), TotalBytes: r.totalBytes.Load(),
	}
	if s := r.path.Load(); s != nil {
		p.Path = *s
	}
	return p
}
