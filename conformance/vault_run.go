package conformance

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// envSeed makes the model test run one seed only.
const envSeed = "AVFS_MODEL_SEED"

func (s *vaultSuite) testModel(t *testing.T) {
	seeds, steps := 24, 900
	if testing.Short() {
		seeds, steps = 4, 400
	}
	first := uint64(1)
	if v := os.Getenv(envSeed); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, seeds = n, 1
	}
	for seed := first; seed < first+uint64(seeds); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := &modelRun{
				TB: t, s: s, path: s.newPath(t), rng: rand.New(rand.NewPCG(seed, 7)),
				opts: &engine.Options{CommitInterval: -1, DirtyBytes: 1 << 20, CacheBytes: 1 << 20},
			}
			if seed%2 == 0 {
				r.opts.CacheBytes = 1 // nothing is cached: what is gone from the store is missed at once
			}
			r.store = s.open(t, r.path, true, r.opts)
			t.Cleanup(func() { _ = r.store.Close() }) // in a failed run; the rest closes it itself
			r.run(steps)
		})
	}
}

// modelRun plays random operations on a family of vaults and on models of them.
type modelRun struct {
	testing.TB
	s      *vaultSuite
	path   string
	opts   *engine.Options
	rng    *rand.Rand
	store  *engine.Store
	vaults []*played
	kept   []keptWorld
	step   int
	log    []string
	forks  int
}

// played is one vault with its model.
type played struct {
	name    string
	v       *engine.Vault
	w       *world
	handles []*handle
	apart   map[engine.Ino]*thing // unlinked, but open
}

// files counts inodes but the top, and those that only a handle keeps.
func (p *played) files() int64 {
	open := map[engine.Ino]bool{}
	for _, h := range p.handles {
		if p.apart[h.ino] != nil && p.w.nodes[h.ino] == nil {
			open[h.ino] = true
		}
	}
	return int64(len(p.w.nodes) - 1 + len(open))
}

type handle struct {
	f     *engine.File
	ino   engine.Ino
	th    *thing // set while the inode is apart
	never bool   // the inode had no name yet
	appnd bool
}

// keptWorld is a checkpoint with its model.
type keptWorld struct {
	vault string
	cp    engine.Checkpoint
	w     *world
}

func (r *modelRun) fatalf(format string, args ...any) {
	r.Helper()
	tail := r.log[max(0, len(r.log)-40):]
	r.Fatalf("step %d: %s\nlast operations:\n  %s", r.step, fmt.Sprintf(format, args...), strings.Join(tail, "\n  "))
}

func (r *modelRun) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%d ", r.step)+fmt.Sprintf(format, args...))
}

// ok fails the run on an error.
func (r *modelRun) ok(err error) {
	r.Helper()
	if err != nil {
		r.fatalf("%v", err)
	}
}

// want fails the run unless err is of the kind, "" for none.
func (r *modelRun) want(err error, kind engine.Kind) bool {
	r.Helper()
	if got := engine.KindOf(err); got != kind {
		r.fatalf("error kind %q (%v), want %q", got, err, kind)
	}
	return kind == ""
}

func (r *modelRun) run(steps int) {
	ctx := context.Background()
	v, err := r.store.CreateVault(ctx, "main")
	r.ok(err)
	top, err := v.Stat(ctx, engine.RootIno)
	r.ok(err)
	r.vaults = []*played{{name: "main", v: v, w: newWorld(top), apart: map[engine.Ino]*thing{}}}
	for r.step = range steps {
		p := r.vaults[r.rng.IntN(len(r.vaults))]
		r.operate(ctx, p)
		if got, want := p.v.Usage().Files, p.files(); got != want {
			r.fatalf("the vault says that it has %d files, and has %d", got, want)
		}
		if r.step%50 == 49 {
			r.compareAll(ctx)
		}
	}
	r.compareAll(ctx)
	r.ok(checkStore(r.store))
	r.reopen(ctx)
	r.ok(checkStore(r.store))
	_, err = r.store.GC(ctx)
	r.ok(err)
	r.compareAll(ctx)
	r.compareKept(ctx)
	r.ok(checkStore(r.store))
	r.ok(r.store.Close())
}

// compareAll compares every live vault with its model.
func (r *modelRun) compareAll(ctx context.Context) {
	r.Helper()
	for _, p := range r.vaults {
		got, err := captureVault(ctx, p.v)
		if err != nil {
			r.fatalf("vault %s: %v", p.name, err)
		}
		if err := compareWorlds(got, p.w, true); err != nil {
			r.fatalf("vault %s: %v", p.name, err)
		}
		if n := p.v.Info().Files; n != int64(len(p.w.nodes)-1) {
			r.fatalf("vault %s says it has %d inodes, it has %d", p.name, n, len(p.w.nodes)-1)
		}
		for _, h := range p.handles {
			r.compareHandle(ctx, p, h)
		}
	}
}

func (r *modelRun) compareHandle(ctx context.Context, p *played, h *handle) {
	r.Helper()
	want := p.thing(h)
	a, err := h.f.Stat(ctx)
	r.ok(err)
	got := make([]byte, a.Size)
	n, err := h.f.ReadAt(ctx, got, 0)
	r.ok(err)
	if int64(n) != a.Size || !bytes.Equal(got, want.data) {
		r.fatalf("vault %s: handle of inode %d reads %d bytes that are not its %d", p.name, h.ino, n, len(want.data))
	}
}

// compareKept reads every checkpoint.
func (r *modelRun) compareKept(ctx context.Context) {
	r.Helper()
	for _, k := range r.kept {
		got, err := captureRoot(ctx, r.store, k.cp.Root)
		if err == nil {
			err = compareWorlds(got, k.w, true)
		}
		if err != nil {
			r.fatalf("checkpoint %s of %s: %v", k.cp.ID, k.vault, err)
		}
		if k.cp.Files != int64(len(k.w.nodes)-1) {
			r.fatalf("checkpoint %s of %s says it has %d inodes, it has %d", k.cp.ID, k.vault, k.cp.Files, len(k.w.nodes)-1)
		}
	}
}

// thing is the model of what a handle refers to.
func (p *played) thing(h *handle) *thing {
	if h.th != nil {
		return h.th
	}
	return p.w.nodes[h.ino]
}

// lose notes that a name went away; an inode that lost its last name lives on
// while it is open.
func (p *played) lose(dir engine.Ino, name string) {
	ino, th := p.w.drop(dir, name)
	if th == nil {
		return
	}
	for _, h := range p.handles {
		if h.ino == ino && h.th == nil {
			h.th = th
			p.apart[ino] = th
		}
	}
}

// closeHandle closes the handle at index i.
func (r *modelRun) closeHandle(p *played, i int) {
	h := p.handles[i]
	r.ok(h.f.Close())
	p.handles = slices.Delete(p.handles, i, i+1)
}

// reopen closes the store and opens it again. Unlinked files are gone then.
func (r *modelRun) reopen(ctx context.Context) {
	r.note("reopen")
	for _, p := range r.vaults {
		for len(p.handles) > 0 {
			r.closeHandle(p, 0)
		}
	}
	r.ok(r.store.Close())
	r.store = r.s.open(r, r.path, false, r.opts)
	for _, p := range r.vaults {
		v, err := r.store.Vault(ctx, p.name)
		r.ok(err)
		p.v = v
	}
	r.compareAll(ctx)
}

// weighted operations, in the order of their weights.
var modelOps = []struct {
	weight int
	name   string
	run    func(*modelRun, context.Context, *played)
}{
	{14, "create", (*modelRun).opCreate},
	{3, "create nameless", (*modelRun).opNameless},
	{14, "write", (*modelRun).opWrite},
	{6, "truncate", (*modelRun).opTruncate},
	{5, "allocate", (*modelRun).opAllocate},
	{6, "clone", (*modelRun).opClone},
	{8, "read", (*modelRun).opRead},
	{3, "seek", (*modelRun).opSeek},
	{5, "mkdir", (*modelRun).opMkdir},
	{3, "rmdir", (*modelRun).opRmdir},
	{6, "unlink", (*modelRun).opUnlink},
	{5, "link", (*modelRun).opLink},
	{3, "link nameless", (*modelRun).opLinkNameless},
	{12, "rename", (*modelRun).opRename},
	{3, "symlink", (*modelRun).opSymlink},
	{4, "setattr", (*modelRun).opSetAttr},
	{4, "xattr", (*modelRun).opXattr},
	{4, "open", (*modelRun).opOpen},
	{5, "close", (*modelRun).opClose},
	{4, "commit", (*modelRun).opCommit},
	{2, "checkpoint", (*modelRun).opCheckpoint},
	{2, "restore", (*modelRun).opRestore},
	{3, "restore paths", (*modelRun).opRestorePaths},
	{2, "undo", (*modelRun).opUndo},
	{1, "fork", (*modelRun).opFork},
	{2, "diff", (*modelRun).opDiff},
	{1, "gc", (*modelRun).opGC},
	{1, "reopen", func(r *modelRun, ctx context.Context, _ *played) { r.reopen(ctx) }},
}

func (r *modelRun) operate(ctx context.Context, p *played) {
	total := 0
	for _, op := range modelOps {
		total += op.weight
	}
	n := r.rng.IntN(total)
	for _, op := range modelOps {
		if n -= op.weight; n < 0 {
			op.run(r, ctx, p)
			return
		}
	}
}

// edit is operate with what changes files only.
func (r *modelRun) edit(ctx context.Context, p *played) {
	ops := []func(context.Context, *played){
		r.opCreate, r.opWrite, r.opTruncate, r.opAllocate, r.opClone, r.opMkdir, r.opRmdir, r.opUnlink,
		r.opLink, r.opRename, r.opRename, r.opSymlink, r.opSetAttr, r.opXattr,
	}
	ops[r.rng.IntN(len(ops))](ctx, p)
}
