package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// roleVaultHistory is a child that plays a random history until it is killed. Its seed
// is in envKillFrom. It says, a line each:
//
//	new VAULT           a vault is about to be made
//	may VAULT STATE     the vault is about to get that state
//	any VAULT           it is about to get a state that is known afterwards only
//	at VAULT STATE SEQ  that state, and the event of that number, survive the process
//	keep VAULT ID STATE a checkpoint was saved
//	drop VAULT ID       a checkpoint is about to be deleted
//	end VAULT           the vault is about to be deleted
//	gone VAULT          it is deleted
const roleVaultHistory = "vault-history"

// historyForEver is the child.
func (s *vaultSuite) historyForEver(ctx context.Context, path string) error {
	seed, err := strconv.ParseUint(os.Getenv(envKillFrom), 10, 64)
	if err != nil {
		return err
	}
	opts := historyOptions(seed)
	opts.DirtyBytes = 256 << 10
	if seed%3 == 0 {
		opts.CommitInterval = 3 * time.Millisecond
	}
	r := &historyRun{
		s: s, path: path, opts: opts, rng: rand.New(rand.NewPCG(seed, 19)), made: int(seed) * 1000,
		fail: func(message string) {
			fmt.Fprintln(os.Stderr, "child:", message)
			os.Exit(2)
		},
		say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) },
	}
	r.store, err = s.tryOpen(path, false, opts)
	if errors.Is(err, fs.ErrNotExist) {
		r.store, err = s.tryOpen(path, true, opts)
	}
	if err != nil {
		return err
	}
	r.load(ctx)
	if len(r.vaults) == 0 {
		r.create(ctx)
	}
	for ; ; r.step++ {
		r.next(ctx)
	}
}

// load ends what a process that was killed has begun, and takes the store as it is.
func (r *historyRun) load(ctx context.Context) {
	for _, u := range r.store.Unfinished() {
		_, err := u.End(ctx, engine.AuditEntry{Kind: engine.AuditExec})
		r.ok(err)
	}
	r.ok(r.store.Settle(ctx))
	infos, err := r.store.Vaults(ctx)
	r.ok(err)
	read := map[engine.Root]pathState{}
	state := func(root engine.Root) pathState {
		if read[root] == nil {
			w, err := captureRoot(ctx, r.store, root)
			r.ok(err)
			read[root] = pathStateOf(w)
		}
		return read[root]
	}
	for _, info := range infos {
		t := &told{name: info.Name}
		t.v, err = r.store.Vault(ctx, info.Name)
		r.ok(err)
		t.cur = r.read(ctx, t)
		t.noted = t.cur
		events, err := t.v.Timeline(ctx, 0)
		r.ok(err)
		for _, ev := range slices.Backward(events) {
			t.events = append(t.events, &toldEvent{Event: ev, before: state(ev.Before), after: state(ev.After)})
			t.seen = ev.Seq
		}
		if n := len(t.events); n > 0 && !t.events[n-1].after.equal(t.cur) {
			r.fatalf("no event of %s tells of %q", t.name, t.events[n-1].after.differing(t.cur))
		}
		saved, err := t.v.Checkpoints(ctx)
		r.ok(err)
		for _, cp := range saved {
			if !cp.Auto {
				r.saved = append(r.saved, savedState{t.name, cp, state(cp.Root)})
			}
		}
		r.vaults = append(r.vaults, t)
		r.at(t)
	}
}

// claim is what a child has said of a vault.
type claim struct {
	states map[string]bool // that it may have
	any    bool            // it may have any
	seen   uint64          // an event that it has, or a newer one
	maybe  bool            // it may not be there
}

// claims is what the children have said.
type claims struct {
	vaults map[string]*claim
	saved  map[string]string // vault and id of checkpoints, to their states
	exact  int               // states that were compared
}

// hear takes in a line.
func (c *claims) hear(line string) error {
	f := strings.Fields(line)
	if len(f) < 2 {
		return fmt.Errorf("the child says %q", line)
	}
	v := c.vaults[f[1]]
	if v == nil {
		v = &claim{states: map[string]bool{}, maybe: true}
		c.vaults[f[1]] = v
	}
	switch f[0] {
	case "new", "end":
		v.maybe, v.any = true, v.any || f[0] == "new"
		c.forget(f[1] + " ")
	case "gone":
		delete(c.vaults, f[1])
	case "any":
		v.any = true
	case "may":
		v.states[f[2]] = true
	case "at":
		seen, err := strconv.ParseUint(f[3], 10, 64)
		*v = claim{states: map[string]bool{f[2]: true}, seen: seen}
		return err
	case "keep":
		c.saved[f[1]+" "+f[2]] = f[3]
	case "drop":
		delete(c.saved, f[1]+" "+f[2])
	default:
		return fmt.Errorf("the child says %q", line)
	}
	return nil
}

// forget drops the checkpoints of a vault that may be gone.
func (c *claims) forget(prefix string) {
	maps.DeleteFunc(c.saved, func(k, _ string) bool { return strings.HasPrefix(k, prefix) })
}

// testHistoryKilled kills processes that play random histories, and the next one goes on
// with what is there.
func (s *vaultSuite) testHistoryKilled(t *testing.T) {
	if s.opts.InMemory {
		t.Skipf("SKIP: a %s store dies with its process", s.driver.Name())
	}
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	seed := historyNumber(t, envHistorySeed, 1)
	path := s.newPath(t)
	rng := rand.New(rand.NewPCG(seed, 20))
	c := &claims{vaults: map[string]*claim{}, saved: map[string]string{}}
	for round := range rounds {
		t.Setenv(envKillFrom, strconv.FormatUint(seed*100+uint64(round), 10))
		child := (&storeSuite{driver: s.driver, self: s.self}).startChild(t, roleVaultHistory, path)
		var timer *time.Timer
		shoot := func() {
			timer = time.AfterFunc(time.Duration(rng.IntN(300))*time.Millisecond, func() { _ = child.cmd.Process.Kill() })
		}
		if round > 0 && rng.IntN(5) == 0 {
			shoot() // perhaps while the store opens
		}
		for line := child.line(); line != ""; line = child.line() {
			if err := c.hear(line); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if timer == nil {
				shoot()
			}
		}
		child.kill()
		if child.cmd.ProcessState.Exited() {
			t.Fatalf("round %d (seed %d): the child ended by itself: %v", round, seed, child.cmd.ProcessState)
		}
		timer.Stop()
		if err := s.afterHistory(t, path, c); err != nil {
			t.Fatalf("round %d (seed %d): %v", round, seed, err)
		}
	}
	if c.exact == 0 {
		t.Fatal("no child ever got anything done")
	}
	t.Logf("seed %d: %d states compared after %d kills", seed, c.exact, rounds)
}

// afterHistory compares the store with what was said.
func (s *vaultSuite) afterHistory(t *testing.T, path string, c *claims) error {
	t.Helper()
	ctx := context.Background()
	st := s.open(t, path, false, historyOptions(1))
	mustCheck(t, st)
	infos, err := st.Vaults(ctx)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, info := range infos {
		v, err := st.Vault(ctx, info.Name)
		if err != nil {
			return err
		}
		there[info.Name] = true
		if err := c.compare(ctx, v); err != nil {
			return fmt.Errorf("vault %s: %w", info.Name, err)
		}
	}
	for name, v := range c.vaults {
		if !there[name] && !v.maybe {
			return fmt.Errorf("vault %s is gone", name)
		}
		if !there[name] {
			delete(c.vaults, name)
		}
	}
	if err := c.compareSaved(ctx, st); err != nil {
		return err
	}
	mustBeClean(t, st)
	mustCheck(t, st)
	return st.Close()
}

// compare compares one vault.
func (c *claims) compare(ctx context.Context, v *engine.Vault) error {
	said := c.vaults[v.Name()]
	if said == nil {
		return errors.New("nobody has made it")
	}
	w, err := captureVault(ctx, v)
	if err != nil {
		return err
	}
	state := pathStateOf(w).digest()
	if !said.any && !said.states[state] {
		return fmt.Errorf("it is in state %s, which it never had; it may be in %v", state, said.states)
	}
	if !said.any {
		c.exact++
	}
	events, err := v.Timeline(ctx, 1)
	if err != nil {
		return err
	}
	if said.seen > 0 && (len(events) == 0 || events[0].Seq < said.seen) {
		return fmt.Errorf("event %d is not in its timeline, the newest is %+v", said.seen, events)
	}
	*said = claim{states: map[string]bool{state: true}, seen: said.seen}
	return nil
}

// compareSaved compares the checkpoints.
func (c *claims) compareSaved(ctx context.Context, st *engine.Store) error {
	for key, want := range c.saved {
		vault, id, _ := strings.Cut(key, " ")
		v, err := st.Vault(ctx, vault)
		if err != nil {
			return err
		}
		cp, err := v.FindCheckpoint(ctx, id)
		if err != nil {
			return err
		}
		w, err := captureRoot(ctx, st, cp.Root)
		if err != nil {
			return err
		}
		if got := pathStateOf(w).digest(); got != want {
			return fmt.Errorf("checkpoint %s of %s is in state %s, not %s", id, vault, got, want)
		}
		c.exact++
	}
	return nil
}
