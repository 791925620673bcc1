package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// script plays a fixed sequence of operations, each of which happens whole or not
// at all, on a vault.
type script struct {
	store *engine.Store
	v     *engine.Vault
	seed  uint64
	files map[int]*engine.File // open handles
	kept  map[string]string    // signature by checkpoint id
}

const scriptFiles = 5

// quietOptions keep commits to those that are asked for.
func quietOptions() *engine.Options {
	return &engine.Options{CommitInterval: -1, CacheBytes: 1 << 20}
}

func createScript(ctx context.Context, db kv.Store, seed uint64) (*script, error) {
	st, err := engine.Create(ctx, db, quietOptions())
	if err != nil {
		return nil, err
	}
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		return nil, err
	}
	return &script{store: st, v: v, seed: seed, files: map[int]*engine.File{}, kept: map[string]string{}}, nil
}

// outcome says what a step promises once it returned without an error.
type outcome struct {
	committed, durable bool
}

func scriptContent(rng *rand.Rand) []byte {
	data := make([]byte, 1+rng.IntN(3*engine.ChunkSize))
	for i := range data {
		data[i] = byte(rng.Uint32() >> 3)
	}
	return data
}

// step makes the nth operation. Which one it is depends on the seed and n alone, and
// on what is there.
func (s *script) step(ctx context.Context, n int) (outcome, error) {
	rng := rand.New(rand.NewPCG(s.seed, uint64(n)))
	file := rng.IntN(scriptFiles)
	name := fmt.Sprintf("f%d", file)
	switch rng.IntN(16) {
	case 0, 1, 2:
		data := scriptContent(rng)
		e := &engine.Entry{Name: name, Mode: engine.TypeRegular | 0o644, Size: int64(len(data)), Replace: true}
		for i := int64(0); i*engine.ChunkSize < int64(len(data)); i++ {
			part := data[i*engine.ChunkSize : min(int64(len(data)), (i+1)*engine.ChunkSize)]
			e.Content = append(e.Content, engine.Chunk{Index: i, Data: bytes.Clone(part)})
		}
		_, err := s.v.Ingest(ctx, engine.RootIno, e)
		return outcome{}, err
	case 3, 4:
		return outcome{}, s.overwrite(ctx, name, rng)
	case 5:
		return outcome{}, s.onFile(ctx, name, func(h *engine.File) error {
			return h.Truncate(ctx, int64(rng.IntN(3*engine.ChunkSize)))
		})
	case 6:
		err := s.v.Rename(ctx, engine.RootIno, name, engine.RootIno, fmt.Sprintf("f%d", rng.IntN(scriptFiles)), 0)
		return outcome{}, ignore(err, engine.NotFound)
	case 7:
		return outcome{}, ignore(s.v.Unlink(ctx, engine.RootIno, name), engine.NotFound)
	case 8:
		a, err := s.v.Lookup(ctx, engine.RootIno, name)
		if err == nil {
			_, err = s.v.Link(ctx, a.Ino, engine.RootIno, "link"+name)
		}
		return outcome{}, ignore(err, engine.NotFound, engine.Exists)
	case 9, 10:
		_, err := s.v.Commit(ctx, false)
		return outcome{committed: true}, err
	case 11, 12:
		return outcome{committed: true, durable: true}, s.v.Sync(ctx)
	case 13:
		want, err := s.sign(ctx)
		if err != nil {
			return outcome{}, err
		}
		cp, err := s.v.Checkpoint(ctx, engine.CheckpointOptions{})
		if err == nil {
			s.kept[cp.ID] = want
		}
		return outcome{committed: true, durable: true}, err
	case 14:
		return s.back(ctx, rng)
	}
	_, err := s.store.GC(ctx)
	return outcome{}, err
}

// back restores a checkpoint, whole or for one path, or undoes.
func (s *script) back(ctx context.Context, rng *rand.Rand) (outcome, error) {
	list, err := s.v.Checkpoints(ctx)
	if err != nil || len(list) == 0 {
		return outcome{}, err
	}
	cp := list[rng.IntN(len(list))]
	opts := &engine.RestoreOptions{}
	switch rng.IntN(3) {
	case 0:
		opts.Paths = []string{"f1", "linkf1"}
	case 1:
		_, err := s.v.Undo(ctx, nil)
		return outcome{}, ignore(err, engine.NothingToUndo, engine.Drift)
	}
	_, err = s.v.Restore(ctx, cp.Root, opts)
	return outcome{}, err // nothing promised where nothing changed
}

func ignore(err error, kinds ...engine.Kind) error {
	for _, k := range kinds {
		if engine.KindOf(err) == k {
			return nil
		}
	}
	return err
}

func (s *script) onFile(ctx context.Context, name string, fn func(*engine.File) error) error {
	a, err := s.v.Lookup(ctx, engine.RootIno, name)
	if err != nil {
		return ignore(err, engine.NotFound)
	}
	h, err := s.v.Open(ctx, a.Ino, engine.OpenRead|engine.OpenWrite)
	if err != nil {
		return err
	}
	err = fn(h)
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return err
}

// overwrite changes a part of one chunk.
func (s *script) overwrite(ctx context.Context, name string, rng *rand.Rand) error {
	return s.onFile(ctx, name, func(h *engine.File) error {
		p := bytes.Repeat([]byte{byte(rng.Uint32())}, 1+rng.IntN(5000))
		off := int64(rng.IntN(2))*engine.ChunkSize + int64(rng.IntN(engine.ChunkSize-5000))
		_, err := h.WriteAt(ctx, p, off)
		return err
	})
}

func (s *script) sign(ctx context.Context) (string, error) { return signature(ctx, s.v) }

// walker is a Vault or a Snapshot.
type walker interface {
	Walk(ctx context.Context, p string, fn func(string, engine.Attr) error) error
}

// signature describes a state: names, types, sizes, links, content.
func signature(ctx context.Context, w walker) (string, error) {
	var b strings.Builder
	err := w.Walk(ctx, "", func(p string, a engine.Attr) error {
		fmt.Fprintf(&b, "%q %o %d %d", p, a.Mode, a.Nlink, a.Ino)
		if a.IsRegular() {
			data, err := content(ctx, w, a)
			if err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			fmt.Fprintf(&b, " %d %x", len(data), sha256.Sum256(data))
		}
		b.WriteByte('\n')
		return nil
	})
	return b.String(), err
}

func content(ctx context.Context, w walker, a engine.Attr) ([]byte, error) {
	data := make([]byte, a.Size)
	var n int
	var err error
	switch w := w.(type) {
	case *engine.Vault:
		h, oerr := w.Open(ctx, a.Ino, engine.OpenRead)
		if oerr != nil {
			return nil, oerr
		}
		n, err = h.ReadAt(ctx, data, 0)
		if cerr := h.Close(); err == nil {
			err = cerr
		}
	case *engine.Snapshot:
		h, oerr := w.Open(ctx, a.Ino)
		if oerr != nil {
			return nil, oerr
		}
		n, err = h.ReadAt(ctx, data, 0)
		if cerr := h.Close(); err == nil {
			err = cerr
		}
	}
	if err == nil && int64(n) != a.Size {
		err = fmt.Errorf("%d of %d bytes", n, a.Size)
	}
	return data, err
}

// sound fails the test unless the store is whole.
func sound(t testing.TB, st *engine.Store, what string) {
	t.Helper()
	rep, err := st.Check(context.Background(), &engine.CheckOptions{ReadData: true, History: true})
	if err != nil {
		t.Fatalf("%s: check: %v", what, err)
	}
	for _, f := range rep.Findings {
		t.Errorf("%s: %s %v %v", what, f.Problem, f.Owners, f.Paths)
	}
	if t.Failed() {
		t.FailNow()
	}
}
