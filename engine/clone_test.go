package engine_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// noise is content that neither repeats nor shrinks.
func noise(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 3))
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	return p
}

// openAt opens a file by its path, made where it is missing.
func openAt(t *testing.T, v *engine.Vault, name string) *engine.File {
	t.Helper()
	h, _, err := v.Create(t.Context(), engine.RootIno, name, 0o600, engine.Owner{}, engine.OpenRead|engine.OpenWrite, false)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func wantClone(t *testing.T, to *engine.File, off int64, from *engine.File, fromOff, length, want int64) {
	t.Helper()
	n, err := to.CloneRange(t.Context(), off, from, fromOff, length)
	if err != nil || n != want {
		t.Fatalf("cloned %d bytes, %v; want %d", n, err, want)
	}
}

func wantContent(t *testing.T, h *engine.File, off int64, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := h.ReadAt(t.Context(), got, off); err != nil || !bytes.Equal(got[:n], want) {
		t.Errorf("inode %d at %d: %d bytes that are not the %d expected (%v)", h.Ino(), off, n, len(want), err)
	}
}

// TestCloneShares copies 64 MiB that are stored: that writes no content, and neither
// copy sees what happens to the other.
func TestCloneShares(t *testing.T) {
	const size = 64 << 20
	c := newCostVault(t, 0)
	data := noise(1, size)
	from, to := openAt(t, c.v, "from"), openAt(t, c.v, "to")
	_, err := from.WriteAt(t.Context(), data, 0)
	must(t, err)
	must(t, from.Sync(t.Context()))
	used := c.v.Usage().Bytes
	got := c.measure(t, func() error {
		if n, err := to.CloneRange(t.Context(), 0, from, 0, size+5); err != nil || n != size {
			t.Errorf("cloned %d bytes, %v", n, err)
		}
		return to.Sync(t.Context())
	})
	if got.bytes > size/512 {
		t.Errorf("a copy of %d bytes took %s", size, got)
	}
	if more := c.v.Usage().Bytes - used; more != size {
		t.Errorf("the quota counts %d bytes more, want %d", more, size)
	}
	_, err = from.WriteAt(t.Context(), []byte("changed"), 200_000)
	must(t, err)
	must(t, from.Truncate(t.Context(), 40<<20))
	for range 3 { // the second commit deletes what the first one left, and GC the rest
		must(t, from.Sync(t.Context()))
	}
	_, err = c.st.GC(t.Context())
	must(t, err)
	wantContent(t, to, 0, data)
	sound(t, c.st, "afterwards")
	must(t, from.Close())
	must(t, to.Close())
}

// TestClonePending copies content that no commit has seen yet, at once and while the
// two files go on changing.
func TestClonePending(t *testing.T) {
	st, v, _ := newVault(t, &engine.Options{CommitInterval: -1, CacheBytes: 1})
	const size = 5*engine.ChunkSize + 777
	data := noise(2, size)
	from, to := openAt(t, v, "from"), openAt(t, v, "to")
	_, err := from.WriteAt(t.Context(), data, 0)
	must(t, err)
	wantClone(t, to, 0, from, 0, 1<<40, size)
	_, err = from.WriteAt(t.Context(), []byte("from"), engine.ChunkSize)
	must(t, err)
	_, err = to.WriteAt(t.Context(), []byte("to"), 2*engine.ChunkSize)
	must(t, err)
	inTo := append([]byte(nil), data...)
	copy(inTo[2*engine.ChunkSize:], "to")
	wantContent(t, to, 0, inTo)
	must(t, to.Sync(t.Context()))
	wantContent(t, to, 0, inTo)
	copy(data[engine.ChunkSize:], "from")
	wantContent(t, from, 0, data)
	sound(t, st, "afterwards")
	must(t, from.Close())
	must(t, to.Close())
}

// TestCloneHoles copies a file that is nearly all hole over one that is full.
func TestCloneHoles(t *testing.T) {
	_, v, _ := newVault(t, nil)
	from, to := openAt(t, v, "from"), openAt(t, v, "to")
	const far = 1 << 40
	_, err := from.WriteAt(t.Context(), []byte("end"), far)
	must(t, err)
	_, err = to.WriteAt(t.Context(), noise(3, 1<<20), 0)
	must(t, err)
	wantClone(t, to, 0, from, 0, far+3, far+3)
	a, err := to.Stat(t.Context())
	must(t, err)
	if a.Size != far+3 || a.Blocks != 8 {
		t.Errorf("the copy has %d bytes in %d blocks", a.Size, a.Blocks)
	}
	at, err := to.Seek(t.Context(), 0, false)
	if must(t, err); at != far {
		t.Errorf("data begins at %d, want %d", at, int64(far))
	}
	wantContent(t, to, far, []byte("end"))
	must(t, from.Close())
	must(t, to.Close())
}

// TestCloneRefused asks for what cannot be done.
func TestCloneRefused(t *testing.T) {
	st, v, _ := newVault(t, nil)
	ctx := t.Context()
	h := openAt(t, v, "f")
	_, err := h.WriteAt(ctx, noise(4, 1<<20), 0)
	must(t, err)
	other, err := st.CreateVault(ctx, "other")
	must(t, err)
	foreign := openAt(t, other, "f")
	appender, err := v.Open(ctx, h.Ino(), engine.OpenWrite|engine.OpenAppend)
	must(t, err)
	reader, err := v.Open(ctx, h.Ino(), engine.OpenRead)
	must(t, err)
	for _, tc := range []struct {
		what         string
		to, from     *engine.File
		off, fromOff int64
		kind         engine.Kind
	}{
		{"ranges that overlap", h, h, 1000, 0, engine.Invalid},
		{"ranges that overlap, by another handle", h, reader, 0, 1000, engine.Invalid},
		{"a negative offset", h, h, -1, 0, engine.Invalid},
		{"another vault's file", h, foreign, 0, 0, engine.Invalid},
		{"a handle that appends", appender, reader, 1 << 20, 0, engine.BadHandle},
		{"a handle that only reads", reader, h, 1 << 20, 0, engine.BadHandle},
		{"beyond the greatest size", h, reader, engine.MaxFileSize - 10, 0, engine.FileTooLarge},
	} {
		n, err := tc.to.CloneRange(ctx, tc.off, tc.from, tc.fromOff, 100_000)
		wantKind(t, tc.what, err, tc.kind)
		if n != 0 {
			t.Errorf("%s: %d bytes were cloned", tc.what, n)
		}
	}
	wantClone(t, h, 0, h, 1<<20, 10, 0)
	for _, f := range []*engine.File{h, foreign, appender, reader} {
		must(t, f.Close())
	}
}

// TestCloneQuota copies more than the quota allows: what fits is there, and counted.
func TestCloneQuota(t *testing.T) {
	_, v, _ := newVault(t, nil)
	from, to := openAt(t, v, "from"), openAt(t, v, "to")
	const chunks = 8
	data := noise(5, chunks*engine.ChunkSize)
	_, err := from.WriteAt(t.Context(), data, 0)
	must(t, err)
	limit := int64((chunks + 3) * engine.ChunkSize)
	_, err = v.SetQuota(t.Context(), engine.QuotaChange{MaxBytes: &limit}, engine.AuditEntry{})
	must(t, err)
	n, err := to.CloneRange(t.Context(), 0, from, 0, int64(len(data)))
	wantKind(t, "a copy over the quota", err, engine.QuotaExceeded)
	if n != 3*engine.ChunkSize || v.Usage().Bytes != limit {
		t.Errorf("%d bytes were cloned and %d are used", n, v.Usage().Bytes)
	}
	wantContent(t, to, 0, data[:n])
	must(t, from.Close())
	must(t, to.Close())
}

// hookedDB runs something before it is read, or written to, next.
type hookedDB struct {
	kv.Store
	mu                       sync.Mutex // guards the hooks once calls run in parallel
	beforeView, beforeUpdate func()
}

// take takes a hook away and runs it.
func (d *hookedDB) take(hook *func()) {
	d.mu.Lock()
	run := *hook
	*hook = nil
	d.mu.Unlock()
	if run != nil {
		run()
	}
}

func (d *hookedDB) Unwrap() kv.Store { return d.Store }

func (d *hookedDB) View(ctx context.Context, fn func(kv.Reader) error) error {
	d.take(&d.beforeView)
	return d.Store.View(ctx, fn)
}

func (d *hookedDB) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	d.take(&d.beforeUpdate)
	return d.Store.Update(ctx, mode, fn)
}

// TestCloneOfUnlinked gives content that only an unlinked open file has left to a file
// with a name, while GC has committed and not marked yet, and closes the first.
func TestCloneOfUnlinked(t *testing.T) {
	db := &hookedDB{Store: newMem(t)}
	st, err := engine.Create(t.Context(), db, &engine.Options{CommitInterval: -1, CacheBytes: 1})
	must(t, err)
	v, err := st.CreateVault(t.Context(), "main")
	must(t, err)
	data := noise(6, 3*engine.ChunkSize)
	from := openAt(t, v, "from")
	_, err = from.WriteAt(t.Context(), data, 0)
	must(t, err)
	must(t, from.Sync(t.Context()))
	must(t, v.Unlink(t.Context(), engine.RootIno, "from"))
	must(t, from.Sync(t.Context()))
	var to *engine.File
	db.beforeView = func() {
		to = openAt(t, v, "to")
		wantClone(t, to, 0, from, 0, int64(len(data)), int64(len(data)))
		must(t, from.Close())
	}
	_, err = st.GC(t.Context())
	must(t, err)
	if to == nil {
		t.Fatal("GC read nothing")
	}
	wantContent(t, to, 0, data)
	for range 3 {
		must(t, to.Sync(t.Context()))
	}
	wantContent(t, to, 0, data)
	must(t, to.Close())
	must(t, st.Close())
}

// TestCloneOfDoomed copies a file whose content a commit has found dead and the next
// one would delete: a state was kept between the two, so the chunk looks as if others
// had it.
func TestCloneOfDoomed(t *testing.T) {
	for name, keep := range map[string]func(*engine.Store, *engine.Vault) error{
		"checkpoint": func(_ *engine.Store, v *engine.Vault) error {
			_, err := v.Checkpoint(t.Context(), engine.CheckpointOptions{})
			return err
		},
		"fork": func(st *engine.Store, v *engine.Vault) error {
			_, err := v.Commit(t.Context(), true)
			if err == nil {
				_, err = st.Fork(t.Context(), v.Name(), "other")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, v, _ := newVault(t, &engine.Options{CommitInterval: -1, CacheBytes: 1})
			data := noise(6, 3*engine.ChunkSize)
			from := openAt(t, v, "from")
			_, err := from.WriteAt(t.Context(), data, 0)
			must(t, err)
			must(t, from.Sync(t.Context()))
			must(t, v.Unlink(t.Context(), engine.RootIno, "from"))
			must(t, keep(st, v))
			to := openAt(t, v, "to")
			wantClone(t, to, 0, from, 0, int64(len(data)), int64(len(data)))
			must(t, from.Close())
			for range 3 {
				must(t, to.Sync(t.Context()))
			}
			_, err = st.GC(t.Context())
			must(t, err)
			wantContent(t, to, 0, data)
			must(t, to.Close())
			sound(t, st, "afterwards")
		})
	}
}
