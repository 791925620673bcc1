package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// MaxOutput is how much of each stream of a command is kept, in bytes.
const MaxOutput = 64 << 20

// Bounds of what an Output holds in memory: so much, or for so long. To put it into
// chunks stores the last chunk of each stream anew, so what is little goes into the
// record first.
const (
	outputFlushBytes  = 2 << 20
	outputFlushAge    = time.Second
	outputFlushLittle = 16 << 10
)

// Output keeps what a command prints, from its beginning, while it runs. What is
// written is stored a second later, or at some MiB, so that little is lost when the
// process dies; without commits in the background by the first Write after that. It
// never holds a command up or fails it: what cannot be kept is counted, and the record
// says why. It may be used by any number of goroutines.
type Output struct {
	v   *Vault
	seq uint64

	mu      sync.Mutex // guards what follows; taken before commitMu and sweep
	rec     outputRecord
	streams []*outputStream // as in rec.Streams
	fresh   bool            // something is pending that no flush has taken
	flushed time.Time
	timer   *time.Timer // of the next flush; nil where none is due
	broken  bool        // the store has refused to keep more
	over    bool        // the command has ended
}

// outputRecord is the row of an Output. Root has the name that it has in a
// checkpoint, by which the roots of all rows are found. Its tree has the chunks of
// the stream i under inode i+1, and nothing else. What follows them is in Tails, by
// stream.
type outputRecord struct {
	VaultID uint64         `json:"vault_id"`
	ID      string         `json:"id"` // of the exec
	At      time.Time      `json:"at"` // when the command began
	Root    Root           `json:"root"`
	Streams []StreamOutput `json:"streams"`
	Tails   [][]byte       `json:"tails,omitempty"`
	Ended   bool           `json:"ended"`
	Cut     string         `json:"cut,omitempty"`
}

// nothing reports whether nothing that the command has printed is in chunks. Then there
// is no tree.
func (r *outputRecord) nothing() bool {
	for i := range r.Streams {
		if r.Streams[i].Kept != int64(len(r.tail(i))) {
			return false
		}
	}
	return r.Root.IsZero()
}

// tail is what of a stream follows its chunks.
func (r *outputRecord) tail(stream int) []byte {
	if stream >= len(r.Tails) {
		return nil
	}
	return r.Tails[stream]
}

// StreamOutput says what is kept of one stream. What is kept is its beginning.
type StreamOutput struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // printed
	Kept  int64  `json:"kept"`
}

// outputStream is what of a stream is not in the store, or only in a chunk that is
// not full: pending begins at the chunk next.
type outputStream struct {
	next    int64
	pending []byte
	stored  int64 // bytes in chunks in the store
}

// fresh is what of a stream is in no chunk in the store.
func (s *outputStream) fresh() []byte {
	return s.pending[min(s.stored-s.next*ChunkSize, int64(len(s.pending))):]
}

// newOutput is an output without a row; the first flush or the end makes one.
func (v *Vault) newOutput(exec string) *Output {
	now := v.s.opts.Clock().UTC()
	return &Output{v: v, seq: v.s.lastOutput.Add(1), flushed: now,
		rec: outputRecord{VaultID: v.id, ID: exec, At: now, Streams: []StreamOutput{}}}
}

func (o *Output) key() []byte { return outputKey(o.v.id, o.seq) }

// outputKey orders the outputs of a vault from the newest to the oldest.
func outputKey(vault, seq uint64) []byte { return rowKey(vault, ^seq) }

// Write takes what the command has printed to the stream of that name.
func (o *Output) Write(ctx context.Context, stream string, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	i := o.stream(stream)
	have := &o.rec.Streams[i]
	gap := have.Kept < have.Bytes
	have.Bytes += int64(len(p))
	if room := MaxOutput - have.Kept; int64(len(p)) > room {
		p = p[:room]
		o.cut(tooMuch())
	}
	if o.broken || gap || len(p) == 0 {
		return
	}
	have.Kept += int64(len(p))
	o.streams[i].pending = append(o.streams[i].pending, p...)
	o.fresh = true
	held := 0
	for _, s := range o.streams {
		held += len(s.pending)
	}
	if held < outputFlushBytes && o.v.s.opts.Clock().Sub(o.flushed) < outputFlushAge {
		o.arm()
		return
	}
	o.flush(ctx)
}

// arm has what is pending stored in a second, unless something does it earlier. The
// caller holds mu.
func (o *Output) arm() {
	if o.timer == nil && o.v.s.opts.CommitInterval > 0 {
		o.timer = time.AfterFunc(outputFlushAge, func() { o.Flush(context.Background()) })
	}
}

// Count adds n bytes that the command has printed to a stream behind MaxOutput, and
// that nobody has passed on.
func (o *Output) Count(stream string, n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || n <= 0 {
		return
	}
	o.rec.Streams[o.stream(stream)].Bytes += n
	o.cut(tooMuch())
}

func tooMuch() string { return fmt.Sprintf("of each stream the first %d bytes are kept", MaxOutput) }

// cut notes why not all is kept; the first reason counts.
func (o *Output) cut(why string) {
	if o.rec.Cut == "" {
		o.rec.Cut = why
	}
}

// stream finds a stream, or adds it.
func (o *Output) stream(name string) int {
	i := slices.IndexFunc(o.rec.Streams, func(s StreamOutput) bool { return s.Name == name })
	if i < 0 {
		i = len(o.rec.Streams)
		o.rec.Streams = append(o.rec.Streams, StreamOutput{Name: name})
		o.streams = append(o.streams, &outputStream{})
	}
	return i
}

// Flush puts what is pending into the store.
func (o *Output) Flush(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fresh && !o.over {
		o.flush(ctx)
	}
}

// flush puts what is pending into the store: into the record if it is little, or else
// into chunks. The caller holds mu.
func (o *Output) flush(ctx context.Context) {
	fresh := 0
	for _, s := range o.streams {
		fresh += len(s.fresh())
	}
	if fresh < outputFlushLittle {
		o.put(ctx, o.storeTails)
	} else {
		o.put(ctx, o.store)
	}
}

// put stores what is pending. Where that fails nothing more is kept, and what was
// pending is not.
func (o *Output) put(ctx context.Context, store func(context.Context) error) {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	err := store(context.WithoutCancel(ctx))
	o.fresh, o.flushed = false, o.v.s.opts.Clock()
	if err == nil {
		return
	}
	o.broken = true
	o.cut("the store did not take more: " + string(KindOf(err)))
	for i, s := range o.streams {
		o.rec.Streams[i].Kept = s.stored + int64(len(o.rec.tail(i)))
		s.pending = nil
	}
}

// storeTails writes the record with what is in no chunk.
func (o *Output) storeTails(ctx context.Context) error {
	s := o.v.s
	if err := s.space.check(s.dirty.Load()); err != nil {
		return err
	}
	rec := o.rec
	rec.Tails = nil
	for _, st := range o.streams {
		rec.Tails = append(rec.Tails, bytes.Clone(st.fresh()))
	}
	err := s.kv.Update(ctx, kv.Relaxed, func(tx kv.Writer) error {
		if err := putJSON(tx, tableOutputs, o.key(), rec); err != nil {
			return err
		}
		return s.putCounters(tx)
	})
	if err == nil {
		o.rec = rec
	}
	return err
}

// store writes the pending chunks, the tree with them, and the record, in one
// transaction. Each stream's last chunk stays pending while it is not full.
func (o *Output) store(ctx context.Context) error {
	s := o.v.s
	var size int64
	var group []*stored
	var keys [][]byte
	for i, st := range o.streams {
		for at := 0; at < len(st.pending); at += ChunkSize {
			part := st.pending[at:min(at+ChunkSize, len(st.pending))]
			group = append(group, &stored{data: part})
			keys = append(keys, chunkKey(Ino(i+1), st.next+int64(at/ChunkSize)))
			size += int64(len(part))
		}
	}
	if err := s.space.check(s.dirty.Load() + size); err != nil {
		return err
	}
	s.sweep.RLock()
	defer s.sweep.RUnlock()
	if err := s.chunks.prepare(ctx, group, map[[sha256.Size]byte]uint64{}); err != nil {
		return err
	}
	changes := make([]tree.Change, len(group))
	for i, p := range group {
		changes[i] = tree.Change{Key: keys[i], Value: p.ref.encode()}
	}
	sink := nodeSink{ctx: ctx, s: s, mode: kv.Relaxed}
	root, err := tree.Apply(ctx, &sink, o.rec.Root.ref, tree.Slice(changes), &sink)
	if err != nil {
		return err
	}
	rec := o.rec
	rec.Root, rec.Tails = Root{root}, nil
	err = s.kv.Update(ctx, kv.Relaxed, func(tx kv.Writer) error {
		if err := s.chunks.write(tx, group); err != nil {
			return err
		}
		if err := sink.write(tx); err != nil {
			return err
		}
		if err := putJSON(tx, tableOutputs, o.key(), rec); err != nil {
			return err
		}
		return s.putCounters(tx)
	})
	if err != nil {
		return err
	}
	o.rec = rec
	for i, st := range o.streams {
		full := len(st.pending) / ChunkSize
		st.next += int64(full)
		st.pending = bytes.Clone(st.pending[full*ChunkSize:])
		st.stored = o.rec.Streams[i].Kept
	}
	return nil
}

// finish puts the rest into the store and gives the row that says that the command
// has ended, for the transaction of its end.
func (o *Output) finish(ctx context.Context) (put func(tx kv.Writer) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fresh || len(o.rec.Tails) > 0 && !o.broken {
		o.put(ctx, o.store)
	}
	o.over = true
	rec := o.rec
	rec.Ended = true
	return func(tx kv.Writer) error { return putJSON(tx, tableOutputs, o.key(), rec) }
}

// Info says what is kept now.
func (o *Output) Info() OutputInfo {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rec.info(o.v.Name())
}
