package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// The quota of the test: small enough to be hit all the time, and no multiple of
// anything.
const (
	quotaBytes     = 1_000_000
	quotaFiles     = 12
	quotaFileBytes = 700_001
)

// testQuota plays random operations against a quota. After each one the usage is
// exactly that of the model, and what was refused changed nothing.
func (s *vaultSuite) testQuota(t *testing.T) {
	seeds, steps := 8, 500
	if testing.Short() {
		seeds, steps = 2, 400
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := &quotaRun{TB: t, s: s, path: s.newPath(t), rng: rand.New(rand.NewPCG(seed, 13))}
			r.store = s.open(t, r.path, true, r.options())
			t.Cleanup(func() { _ = r.store.Close() }) // in a failed run
			r.run(context.Background(), steps)
		})
	}
}

// quotaRun plays on one vault.
type quotaRun struct {
	testing.TB
	s     *vaultSuite
	path  string
	rng   *rand.Rand
	store *engine.Store
	v     *engine.Vault
	state quotaState
	kept  map[string]quotaState // by checkpoint id
	open  []*quotaHandle
	hits  map[engine.Limit]int
	step  int
}

// quotaState is what the names lead to. A file is shared by its names.
type quotaState struct {
	files map[string]*quotaFile
	dirs  int
}

// quotaFile is the content of a file, and how much of each chunk is stored.
type quotaFile struct {
	data   []byte
	stored map[int64]int
	names  int
}

type quotaHandle struct {
	h *engine.File
	f *quotaFile
}

func (f *quotaFile) bytes() (n int64) {
	for _, length := range f.stored {
		n += int64(length)
	}
	return n
}

func (s quotaState) clone() quotaState {
	c := quotaState{files: map[string]*quotaFile{}, dirs: s.dirs}
	copies := map[*quotaFile]*quotaFile{}
	for name, f := range s.files {
		if copies[f] == nil {
			copies[f] = &quotaFile{data: bytes.Clone(f.data), stored: maps.Clone(f.stored), names: f.names}
		}
		c.files[name] = copies[f]
	}
	return c
}

func (r *quotaRun) options() *engine.Options {
	return &engine.Options{CommitInterval: -1, DirtyBytes: 1 << 20}
}

func (r *quotaRun) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("step %d: %v", r.step, err)
	}
}

// usage is what the model says that the vault uses.
func (r *quotaRun) usage() engine.Usage {
	u := engine.Usage{Files: int64(r.state.dirs)}
	seen := map[*quotaFile]bool{}
	add := func(f *quotaFile) {
		if seen[f] {
			return
		}
		seen[f] = true
		u.Files++
		u.Bytes += f.bytes()
		if f.names == 0 {
			u.UnlinkedFiles++
			u.UnlinkedBytes += f.bytes()
		}
	}
	for _, f := range r.state.files {
		add(f)
	}
	for _, h := range r.open {
		add(h.f)
	}
	return u
}

func (r *quotaRun) run(ctx context.Context, steps int) {
	var err error
	r.v, err = r.store.CreateVault(ctx, "main")
	r.ok(err)
	r.state, r.kept, r.hits = quotaState{files: map[string]*quotaFile{}}, map[string]quotaState{}, map[engine.Limit]int{}
	bytes, files, file := int64(quotaBytes), int64(quotaFiles), int64(quotaFileBytes)
	_, err = r.v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &bytes, MaxFiles: &files, MaxFileBytes: &file}, engine.AuditEntry{Kind: "quota"})
	r.ok(err)
	for r.step = range steps {
		r.operate(ctx)
		if got, want := r.v.Usage(), r.usage(); got != want {
			r.Fatalf("step %d: usage is %+v, want %+v", r.step, got, want)
		}
	}
	r.compare(ctx)
	for _, l := range []engine.Limit{engine.LimitSize, engine.LimitFiles, engine.LimitFileSize} {
		if r.hits[l] == 0 {
			r.Errorf("%s was never hit", l)
		}
	}
	r.reopen(ctx)
	mustCheck(r, r.store)
	r.empty(ctx)
	r.ok(r.store.Close())
}

func (r *quotaRun) operate(ctx context.Context) {
	switch n := r.rng.IntN(100); {
	case n < 12:
		r.create(ctx)
	case n < 16:
		_, err := r.v.Mkdir(ctx, engine.RootIno, fmt.Sprintf("dir%d", r.step), 0o755, engine.Owner{})
		if r.admitted(err, r.filesFit(), engine.LimitFiles) {
			r.state.dirs++
		}
	case n < 60:
		r.write(ctx)
	case n < 70:
		r.truncate(ctx)
	case n < 76:
		r.link(ctx)
	case n < 86:
		r.unlink(ctx)
	case n < 92:
		r.close()
	case n < 95:
		_, err := r.v.Commit(ctx, r.rng.IntN(2) == 0)
		r.ok(err)
	case n < 97:
		r.checkpoint(ctx)
	case n < 99:
		r.restore(ctx)
	default:
		r.compare(ctx)
		r.reopen(ctx)
	}
}

// admitted checks that err is what the quota should say, and counts the limit.
func (r *quotaRun) admitted(err error, fits bool, limit engine.Limit) bool {
	r.Helper()
	if fits {
		r.ok(err)
		return true
	}
	var e *engine.Error
	if engine.KindOf(err) != engine.QuotaExceeded || !errors.As(err, &e) || e.Details["type"] != string(limit) {
		r.Fatalf("step %d: %v where %s is exceeded", r.step, err, limit)
	}
	r.hits[limit]++
	return false
}

func (r *quotaRun) filesFit() bool { return r.usage().Files < quotaFiles }

func (r *quotaRun) create(ctx context.Context) {
	name := fmt.Sprintf("file%d", r.step)
	h, _, err := r.v.Create(ctx, engine.RootIno, name, 0o644, engine.Owner{}, engine.OpenRead|engine.OpenWrite, true)
	if r.admitted(err, r.filesFit(), engine.LimitFiles) {
		f := &quotaFile{stored: map[int64]int{}, names: 1}
		r.state.files[name] = f
		r.open = append(r.open, &quotaHandle{h, f})
	}
}

// handle is an open one, of which there may be none.
func (r *quotaRun) handle() *quotaHandle {
	if len(r.open) == 0 {
		return nil
	}
	return r.open[r.rng.IntN(len(r.open))]
}

// write writes a run of bytes. Every chunk of it is written whole or not at all,
// and none after one that is refused.
func (r *quotaRun) write(ctx context.Context) {
	h := r.handle()
	if h == nil {
		return
	}
	off := int64(r.rng.IntN(quotaFileBytes))
	if r.rng.IntN(3) == 0 {
		off = int64(len(h.f.data))
	}
	p := bytes.Repeat([]byte{byte(1 + r.rng.IntN(255))}, 1+r.rng.IntN(300_000))
	n, err := h.h.WriteAt(ctx, p, off)
	done, limit := 0, engine.Limit("")
	for done < len(p) && limit == "" {
		at := off + int64(done)
		index, in := at/engine.ChunkSize, int(at%engine.ChunkSize)
		length := min(len(p)-done, engine.ChunkSize-in)
		more := int64(in + length - h.f.stored[index])
		end := at + int64(length)
		switch {
		case end > quotaFileBytes && end > int64(len(h.f.data)):
			limit = engine.LimitFileSize
		case more > 0 && r.usage().Bytes+more > quotaBytes:
			limit = engine.LimitSize
		default:
			h.f.stored[index] = max(h.f.stored[index], in+length)
			h.f.data = write(h.f.data, p[done:done+length], at)
			done += length
		}
	}
	r.admitted(err, limit == "", limit)
	if n != done {
		r.Fatalf("step %d: wrote %d bytes, want %d", r.step, n, done)
	}
}

func (r *quotaRun) truncate(ctx context.Context) {
	h := r.handle()
	if h == nil {
		return
	}
	size := int64(r.rng.IntN(quotaFileBytes * 5 / 4))
	err := h.h.Truncate(ctx, size)
	if !r.admitted(err, size <= quotaFileBytes || size <= int64(len(h.f.data)), engine.LimitFileSize) {
		return
	}
	for index, length := range h.f.stored {
		if left := int(min(size-index*engine.ChunkSize, int64(length))); left > 0 {
			h.f.stored[index] = left
		} else {
			delete(h.f.stored, index)
		}
	}
	h.f.data = resize(h.f.data, size)
}

// link gives a file that is open one more name, which costs nothing.
func (r *quotaRun) link(ctx context.Context) {
	h := r.handle()
	if h == nil || h.f.names == 0 {
		return
	}
	name := fmt.Sprintf("link%d", r.step)
	_, err := r.v.Link(ctx, h.h.Ino(), engine.RootIno, name)
	r.ok(err)
	h.f.names++
	r.state.files[name] = h.f
}

// unlink removes any name; that always works.
func (r *quotaRun) unlink(ctx context.Context) {
	var names []string
	for name := range r.state.files {
		names = append(names, name)
	}
	if len(names) == 0 {
		return
	}
	name := minimum(names)
	r.ok(r.v.Unlink(ctx, engine.RootIno, name))
	r.state.files[name].names--
	delete(r.state.files, name)
}

// minimum keeps a run the same for one seed, which the order of a map is not.
func minimum(names []string) string {
	least := names[0]
	for _, n := range names {
		least = min(least, n)
	}
	return least
}

func (r *quotaRun) close() {
	if len(r.open) == 0 {
		return
	}
	i := r.rng.IntN(len(r.open))
	r.ok(r.open[i].h.Close())
	r.open = append(r.open[:i:i], r.open[i+1:]...)
}

func (r *quotaRun) closeAll() {
	for len(r.open) > 0 {
		r.close()
	}
}

func (r *quotaRun) checkpoint(ctx context.Context) {
	cp, err := r.v.Checkpoint(ctx, engine.CheckpointOptions{})
	r.ok(err)
	r.kept[cp.ID] = r.state.clone()
}

// restore is never refused, and undoing it brings everything back; then the state
// may be over the quota, which the next steps hold against the rules of growth.
func (r *quotaRun) restore(ctx context.Context) {
	list, err := r.v.Checkpoints(ctx)
	r.ok(err)
	if len(list) == 0 {
		return
	}
	r.closeAll()
	cp := list[r.rng.IntN(len(list))]
	state, ok := r.kept[cp.ID]
	if !ok {
		return // what another restore left behind
	}
	if _, err := r.v.Restore(ctx, cp.Root, nil); err != nil {
		r.ok(err)
	}
	r.state = state.clone()
}

// reopen closes the store and opens it again: the usage is kept with the root.
func (r *quotaRun) reopen(ctx context.Context) {
	r.closeAll()
	if r.s.opts.InMemory {
		return
	}
	r.ok(r.store.Close())
	r.store = r.s.open(r, r.path, false, r.options())
	var err error
	r.v, err = r.store.Vault(ctx, "main")
	r.ok(err)
	if got, want := r.v.Usage(), r.usage(); got != want {
		r.Fatalf("step %d: after opening again usage is %+v, want %+v", r.step, got, want)
	}
	if q := r.v.Quota(); q != (engine.Quota{MaxBytes: quotaBytes, MaxFiles: quotaFiles, MaxFileBytes: quotaFileBytes}) {
		r.Fatalf("step %d: the quota is %+v", r.step, q)
	}
}

// compare reads every file: what was refused has left no trace.
func (r *quotaRun) compare(ctx context.Context) {
	for name, f := range r.state.files {
		a, err := r.v.Lookup(ctx, engine.RootIno, name)
		r.ok(err)
		h, err := r.v.Open(ctx, a.Ino, engine.OpenRead)
		r.ok(err)
		got, err := readAll(ctx, h, a.Size)
		r.ok(err)
		if !bytes.Equal(got, f.data) {
			r.Fatalf("step %d: %s has other content than its model", r.step, name)
		}
	}
}

// empty removes everything from a vault that may be full: then nothing is used.
func (r *quotaRun) empty(ctx context.Context) {
	r.ok(r.v.RemoveAll(ctx, "/"))
	if got := r.v.Usage(); got != (engine.Usage{}) {
		r.Fatalf("an empty vault uses %+v", got)
	}
	mustCheck(r, r.store)
}
