package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// The child of the kill test: it applies steps of a fixed sequence, each one call
// of the engine, and says which of them it has synced.
const (
	roleVaultWrite = "vault-write"
	envKillFrom    = "AVFS_KILL_FROM" // how many steps the store holds already
)

const (
	killFiles  = 6
	killBlocks = 70
	killBlock  = 5000 // not a divisor of the size of a chunk
)

// killState is what the sequence has made so far.
type killState struct {
	files [killFiles][killBlocks]byte // what each block is filled with
	names [killFiles]int              // the file behind each name
	dirs  [4]bool
	seq   int
}

func newKillState() *killState {
	s := &killState{}
	for i := range s.names {
		s.names[i] = i
	}
	return s
}

// killStep is one step: a change of the state and the call that makes it.
type killStep struct {
	kind, a, b int
	fill       byte
}

func stepAt(seq int) killStep {
	rng := rand.New(rand.NewPCG(uint64(seq), 99))
	return killStep{kind: rng.IntN(8), a: rng.IntN(killFiles), b: rng.IntN(killBlocks), fill: byte(1 + rng.IntN(255))}
}

// apply makes the step in the model.
func (s *killState) apply() {
	st := stepAt(s.seq)
	s.seq++
	switch st.kind {
	case 0:
		b := st.b % killFiles
		s.names[st.a], s.names[b] = s.names[b], s.names[st.a]
	case 1:
		s.dirs[st.b%len(s.dirs)] = !s.dirs[st.b%len(s.dirs)]
	default:
		s.files[st.a][st.b] = st.fill
	}
}

// sign describes the state of the model.
func (s *killState) sign() string {
	var b strings.Builder
	for name, file := range s.names {
		fmt.Fprintf(&b, "%d:%x\n", name, s.files[file])
	}
	fmt.Fprint(&b, s.dirs)
	return b.String()
}

func killName(i int) string { return fmt.Sprintf("name%d", i) }
func killDir(i int) string  { return fmt.Sprintf("dir%d", i) }

// killWriter makes the steps in a vault.
type killWriter struct {
	v     *engine.Vault
	files [killFiles]*engine.File
	state *killState
}

// prepare makes or opens the files; those of a state are found by its names.
func (w *killWriter) prepare(ctx context.Context) error {
	for name, file := range w.state.names {
		mode := engine.OpenRead | engine.OpenWrite
		h, a, err := w.v.Create(ctx, engine.RootIno, killName(name), 0o644, engine.Owner{}, mode, false)
		if err != nil {
			return err
		}
		if a.Size == 0 {
			if err := h.Truncate(ctx, killBlocks*killBlock); err != nil {
				return err
			}
		}
		w.files[file] = h
	}
	return w.v.Sync(ctx)
}

func (w *killWriter) step(ctx context.Context) error {
	st := stepAt(w.state.seq)
	w.state.apply()
	switch st.kind {
	case 0:
		return w.v.Rename(ctx, engine.RootIno, killName(st.a), engine.RootIno, killName(st.b%killFiles), engine.RenameExchange)
	case 1:
		d := st.b % len(w.state.dirs)
		if !w.state.dirs[d] {
			return w.v.Rmdir(ctx, engine.RootIno, killDir(d))
		}
		_, err := w.v.Mkdir(ctx, engine.RootIno, killDir(d), 0o755, engine.Owner{})
		return err
	}
	_, err := w.files[st.a].WriteAt(ctx, bytes.Repeat([]byte{st.fill}, killBlock), int64(st.b*killBlock))
	return err
}

// signVault describes the state of the vault.
func signVault(ctx context.Context, v *engine.Vault) (string, error) {
	got, err := captureVault(ctx, v)
	if err != nil {
		return "", err
	}
	paths := got.paths()
	var b strings.Builder
	for i := range killFiles {
		var blocks [killBlocks]byte
		if th := got.nodes[paths[killName(i)]]; th != nil {
			for j := range blocks {
				part := th.data[j*killBlock : (j+1)*killBlock]
				blocks[j] = part[0]
				if !bytes.Equal(part, bytes.Repeat(part[:1], killBlock)) {
					return "", fmt.Errorf("block %d of %s is torn", j, killName(i))
				}
			}
		}
		fmt.Fprintf(&b, "%d:%x\n", i, blocks)
	}
	var dirs [4]bool
	for i := range dirs {
		_, dirs[i] = paths[killDir(i)]
	}
	fmt.Fprint(&b, dirs)
	return b.String(), nil
}

// runAsChild plays the role that the environment gives to this process.
func (s *vaultSuite) runAsChild() bool {
	if os.Getenv(envDriver) != s.driver.Name() {
		return false
	}
	play, lifetime := s.writeVault, childLifetime
	switch os.Getenv(envRole) {
	case roleVaultWrite:
	case roleVaultHistory:
		play = s.historyForEver
	case roleVaultMerge:
		play = s.mergeOnce
	case roleVaultRepair:
		play = s.repairForEver
	case roleVaultGC:
		play = s.collectForEver
	case roleVaultLarge:
		play, lifetime = s.writeLarge, 20*time.Minute
	default:
		return false
	}
	time.AfterFunc(lifetime, func() { os.Exit(3) })
	if err := play(context.Background(), os.Getenv(envPath)); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(2)
	}
	os.Exit(0)
	return true
}

// writeVault makes steps until the process is killed.
func (s *vaultSuite) writeVault(ctx context.Context, path string) error {
	opts := &engine.Options{CommitInterval: 3 * time.Millisecond, DirtyBytes: 256 << 10}
	st, err := s.tryOpen(path, false, opts)
	if errors.Is(err, fs.ErrNotExist) {
		st, err = s.tryOpen(path, true, opts)
	}
	if err != nil {
		return err
	}
	v, err := st.Vault(ctx, "main")
	if engine.KindOf(err) == engine.VaultNotFound {
		v, err = st.CreateVault(ctx, "main")
	}
	if err != nil {
		return err
	}
	w := &killWriter{v: v, state: newKillState()}
	from, err := strconv.Atoi(os.Getenv(envKillFrom))
	if err != nil {
		return err
	}
	for w.state.seq < from {
		w.state.apply()
	}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	fmt.Println(from)
	for {
		if err := w.step(ctx); err != nil {
			return err
		}
		n := w.state.seq
		switch {
		case n%13 == 0:
			if err := v.Sync(ctx); err != nil {
				return err
			}
			fmt.Println(n)
		case n%97 == 0:
			if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{}); err != nil {
				return err
			}
			fmt.Println(n)
		case n%201 == 0:
			if _, err := st.GC(ctx); err != nil {
				return err
			}
		}
	}
}

func (s *vaultSuite) testKill(t *testing.T) {
	if s.opts.InMemory {
		t.Skipf("SKIP: a %s store dies with its process", s.driver.Name())
	}
	rounds := 100
	if testing.Short() {
		rounds = 6
	}
	path := s.newPath(t)
	rng := rand.New(rand.NewPCG(4, 2))
	state := newKillState()
	for round := range rounds {
		t.Setenv(envKillFrom, strconv.Itoa(state.seq))
		c := (&storeSuite{driver: s.driver, self: s.self}).startChild(t, roleVaultWrite, path)
		var timer *time.Timer
		shoot := func() {
			timer = time.AfterFunc(time.Duration(rng.IntN(150))*time.Millisecond, func() { _ = c.cmd.Process.Kill() })
		}
		early := round > 0 && rng.IntN(5) == 0 // perhaps while the store opens
		if early {
			shoot()
		}
		acked := -1
		for line := c.line(); line != ""; line = c.line() {
			n, err := strconv.Atoi(line)
			if err != nil {
				t.Fatalf("round %d: the child says %q", round, line)
			}
			if acked = n; timer == nil {
				shoot()
			}
		}
		if acked < 0 && !early {
			t.Fatalf("round %d: the child ended before it did anything", round)
		}
		timer.Stop()
		c.kill()
		s.afterKill(t, path, state, acked)
	}
	if state.seq == 0 {
		t.Fatal("no child ever got anything done")
	}
	t.Logf("%d steps in %d rounds", state.seq, rounds)
}

// afterKill opens the store and moves state on to what is there, which must be a
// state that the child went through, and not before what it has synced.
func (s *vaultSuite) afterKill(t *testing.T, path string, state *killState, acked int) {
	t.Helper()
	ctx := context.Background()
	st := s.open(t, path, false, nil)
	v, err := st.Vault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	mustCheck(t, st)
	got, err := signVault(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	from := state.seq
	for state.seq < acked {
		state.apply()
	}
	const ahead = 5000
	var tried []string
	for range ahead {
		want := state.sign()
		if want == got {
			return
		}
		tried = append(tried, want)
		state.apply()
	}
	t.Fatalf("the store holds no state between step %d and %d (the child began at %d):\n%s\nat the first it was\n%s",
		acked, state.seq, from, got, slices.Concat(tried[:1])[0])
}
