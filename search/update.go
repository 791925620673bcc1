package search

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// MaxText is how much of a file is indexed, from its beginning, in bytes.
const MaxText = 1 << 20

// sniff is how much of a file tells whether it is binary, in bytes.
const sniff = 8 << 10

// UpdateOptions bound an update. The zero value and nil mean no bound.
type UpdateOptions struct {
	// MaxBytes ends the update, with Behind, once it has read so much.
	MaxBytes int64
	// Progress is told now and then how many files and bytes the update has looked at.
	// It is called by one goroutine at a time.
	Progress func(files, bytes int64)
}

// Report says what an update did.
type Report struct {
	Files  int64 `json:"files"`  // that were looked at
	Read   int64 `json:"read"`   // contents that were read
	Bytes  int64 `json:"bytes"`  // of them
	Behind bool  `json:"behind"` // there is more to index
}

// segmentBytes bounds what one goroutine collects in memory before it writes a segment,
// segmentTexts how many texts.
const (
	segmentBytes = 32 << 20
	segmentTexts = 8_000
)

// update is one Update under way.
type update struct {
	x    *Index
	snap *engine.Snapshot
	opts UpdateOptions

	mu      sync.Mutex // guards what follows, and the index
	pending map[engine.ContentID]uint32
	next    uint32 // the next number
	rows    int64  // new ones that the state does not count yet
	report  Report
}

// Update indexes what the state has that the index has not. The state must be kept
// meanwhile. What was indexed when Update fails stays so.
func (x *Index) Update(ctx context.Context, snap *engine.Snapshot, opts *UpdateOptions) (Report, error) {
	if err := x.load(ctx); err != nil {
		return Report{}, err
	}
	u := &update{x: x, snap: snap, pending: map[engine.ContentID]uint32{}, next: x.state.NextNumber}
	if opts != nil {
		u.opts = *opts
	}
	nodes, err := u.run(ctx)
	if err != nil || len(nodes) == 0 {
		return u.report, err
	}
	if err := x.merge(ctx); err != nil {
		return u.report, err
	}
	b := &batch{x: x}
	for _, id := range nodes {
		if err := b.put(ctx, row{nodesTable(), bytes.Clone(id[:]), nil}); err != nil {
			return u.report, err
		}
	}
	done := x.state
	done.Rows += u.rows + int64(len(nodes))
	if done.Base == 0 {
		done.Base = done.Rows
	}
	return u.report, x.commit(ctx, b.rows, done)
}

// errBehind ends the walk of an update that has done what it may.
var errBehind = errors.New("there is more to index")

// run indexes all files in pieces that are new, and lists those pieces if that was all.
func (u *update) run(ctx context.Context) (nodes []engine.NodeID, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := make(chan []engine.Ino)
	failed := make(chan error, runtime.GOMAXPROCS(0))
	var workers sync.WaitGroup
	start := func() { // on the first job: most updates have none
		if err := u.x.sweep(ctx); err != nil {
			failed <- err
			cancel()
		}
		for range runtime.GOMAXPROCS(0) {
			workers.Go(func() {
				if err := u.work(ctx, jobs); err != nil {
					select {
					case failed <- err:
					default:
					}
					cancel()
				}
			})
		}
	}
	var started sync.Once
	walked := u.snap.WalkFiles(ctx, func(id engine.NodeID) (bool, error) {
		known, err := u.x.known(ctx, id)
		if err == nil && !known {
			nodes = append(nodes, id)
		}
		return !known, err
	}, func(files []engine.Ino) error {
		if u.full() {
			return errBehind
		}
		if len(files) == 0 {
			return nil
		}
		started.Do(start)
		select {
		case jobs <- files:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	close(jobs)
	workers.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	if errors.Is(walked, errBehind) {
		u.report.Behind = true
		return nil, nil
	}
	return nodes, walked
}

// full reports whether the update has done what it may.
func (u *update) full() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.opts.MaxBytes > 0 && u.report.Bytes >= u.opts.MaxBytes
}

// known reports whether everything in a piece is indexed.
func (x *Index) known(ctx context.Context, id engine.NodeID) (ok bool, err error) {
	err = x.db.View(ctx, func(tx kv.Reader) (err error) {
		_, ok, err = tx.Get(nodesTable(), id[:])
		return err
	})
	return ok, err
}

// worker is what one goroutine has collected.
type worker struct {
	u        *update
	b        *builder
	contents []row // of the texts in b, and of the binary files beside them
	ids      []engine.ContentID
	places   batch
	buf      []byte
}

// work takes jobs until there are no more.
func (u *update) work(ctx context.Context, jobs <-chan []engine.Ino) error {
	w := &worker{u: u, b: newBuilder(), places: batch{x: u.x}}
	for files := range jobs {
		if err := w.files(ctx, files); err != nil {
			return err
		}
		if w.b.bytes >= segmentBytes || len(w.ids) >= segmentTexts {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	return w.flush(ctx)
}

// content is one content of a job.
type content struct {
	ino    engine.Ino
	id     engine.ContentID
	number uint32
	fresh  bool // nobody has read it yet
	placed bool // the index knows that the file has it
}

// files indexes the content of some files.
func (w *worker) files(ctx context.Context, files []engine.Ino) error {
	list := make([]content, 0, len(files))
	for _, ino := range files {
		id, size, err := w.u.snap.Content(ctx, ino)
		if err != nil {
			return err
		}
		if size > 0 {
			list = append(list, content{ino: ino, id: id})
		}
	}
	if err := w.u.assign(ctx, list); err != nil {
		return err
	}
	var read, bytes int64
	for _, c := range list {
		if !c.placed {
			if err := w.places.put(ctx, placeRow(c.number, c.ino)); err != nil {
				return err
			}
		}
		if !c.fresh {
			continue
		}
		text, err := readText(ctx, w.u.snap, c.ino, &w.buf)
		if err != nil {
			return err
		}
		if text != nil {
			w.b.add(c.number, text)
		}
		w.ids = append(w.ids, c.id)
		w.contents = append(w.contents, contentRow(c.id, c.number), numberRow(c.number, c.id))
		read++
		bytes += int64(len(text))
	}
	w.u.did(int64(len(files)), read, bytes)
	return nil
}

// assign finds the numbers of contents, and gives numbers to those that have none.
func (u *update) assign(ctx context.Context, list []content) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.x.db.View(ctx, func(tx kv.Reader) error {
		for i := range list {
			c := &list[i]
			n, ok := u.pending[c.id]
			if !ok {
				var err error
				if n, err = findNumber(tx, c.id); err != nil {
					return err
				}
			}
			if n == 0 {
				if u.next == 0 {
					return errors.New("search index: no more numbers")
				}
				n, c.fresh = u.next, true
				u.pending[c.id] = n
				u.next++
				u.rows += 2 // of the content and of its number
			}
			c.number = n
			if !c.fresh {
				var err error
				if _, c.placed, err = tx.Get(placesTable(), placeRow(n, c.ino).key); err != nil {
					return err
				}
			}
			if !c.placed {
				u.rows++
			}
		}
		return nil
	})
}

// did notes what was done.
func (u *update) did(files, read, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.report.Files += files
	u.report.Read += read
	u.report.Bytes += bytes
	if u.opts.Progress != nil {
		u.opts.Progress(u.report.Files, u.report.Bytes)
	}
}

// flush writes what the worker has collected as a segment, together with what makes its
// contents known.
func (w *worker) flush(ctx context.Context) error {
	w.u.mu.Lock()
	defer w.u.mu.Unlock()
	x := w.u.x
	if err := w.places.flush(ctx); err != nil || len(w.ids) == 0 {
		return err
	}
	next := x.state
	seg := segment{ID: next.NextSegment, Texts: uint32(len(w.b.docs)), Words: w.b.words}
	b := batch{x: x}
	bw := &blockWriter{seg: seg.ID, put: func(r row) error { return b.put(ctx, r) }}
	if err := w.b.write(bw); err != nil {
		return err
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	next.NextNumber = w.u.next
	next.Rows += w.u.rows
	w.u.rows = 0
	rows := w.contents
	if seg.Texts > 0 {
		seg.Bytes = bw.size + int64(len(w.b.docs)*docBytes)
		next.NextSegment++
		next.Segments = append(append([]segment(nil), next.Segments...), seg)
		rows = append(rows, docRows(seg.ID, w.b.docs)...)
	}
	if err := x.commit(ctx, rows, next); err != nil {
		return err
	}
	for _, id := range w.ids {
		delete(w.u.pending, id)
	}
	w.b, w.contents, w.ids = newBuilder(), nil, nil
	return nil
}

// readText reads what is indexed of a file into buf; nil if it is binary.
func readText(ctx context.Context, snap *engine.Snapshot, ino engine.Ino, buf *[]byte) ([]byte, error) {
	if *buf == nil {
		*buf = make([]byte, MaxText)
	}
	n := 0
	for _, end := range []int{engine.ChunkSize, MaxText} {
		part := []engine.Once{{Ino: ino, Off: int64(n), Buf: (*buf)[n:end]}}
		if snap.ReadOnce(ctx, part); part[0].Err != nil {
			return nil, part[0].Err
		}
		if n == 0 && bytes.IndexByte((*buf)[:min(part[0].N, sniff)], 0) >= 0 {
			return nil, nil
		}
		if n += part[0].N; n < end {
			break
		}
	}
	return (*buf)[:n], nil
}
