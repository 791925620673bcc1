package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// A state is named by one of these, wherever a command takes one:
//
//	now              the present state; so does an empty text
//	base             the state that a fork began with
//	c12, NAME        a checkpoint, by id or name
//	EXEC, #12        the state after an event of the timeline: an exec by its id, any event
//	                 by its number
//	EXEC^, #12^      the state before it
//	TIME             the newest state that the history knows at or before a time: RFC 3339,
//	                 a local "2006-01-02 15:04:05", a day, "10m ago" or -10m (units w d h m s)
//	vault:NAME       another vault of the store as it is now
//	vault:NAME@STATE a state of another vault
//
// What has several of these meanings is ambiguous and refused. "checkpoint:", "exec:",
// "event:" and "time:" in front leave one. A path of a reading command is PATH@STATE,
// unless something has that very name.
const (
	vaultPrefix = "vault:"
	stateNow    = "now"
	stateBase   = "base"
	before      = "^" // after an event: the state before it
)

// reading is one of the things that the name of a state can mean.
type reading struct {
	prefix string
	// find gives the root; live says that it is the present state, which is not
	// looked up but pinned. ok is false where the name does not mean this.
	find func(ctx context.Context, v *engine.Vault, name string) (root engine.Root, live, ok bool, err error)
	// missing is the failure where the prefix was given and nothing is found.
	missing engine.Kind
}

// readings lists what a name without a prefix is tried as. No state has two of them
// unless somebody calls a checkpoint like one.
func readings() []reading {
	return []reading{
		{"", findPresent, ""},
		{"", findBase, ""},
		{"checkpoint:", findCheckpoint, engine.CheckpointNotFound},
		{"exec:", findExec, engine.EventNotFound},
		{"event:", findNumber, engine.EventNotFound},
		{"time:", findTime, engine.Invalid},
	}
}

func findPresent(_ context.Context, _ *engine.Vault, name string) (root engine.Root, live, ok bool, err error) {
	return root, true, name == stateNow, nil
}

func findBase(_ context.Context, v *engine.Vault, name string) (root engine.Root, live, ok bool, err error) {
	if name != stateBase {
		return root, false, false, nil
	}
	root, ok = v.ForkPoint()
	return root, false, ok, nil
}

func findCheckpoint(ctx context.Context, v *engine.Vault, name string) (root engine.Root, live, ok bool, err error) {
	cp, err := v.FindCheckpoint(ctx, name)
	if engine.KindOf(err) == engine.CheckpointNotFound {
		return root, false, false, nil
	}
	return cp.Root, false, err == nil, err
}

func findExec(ctx context.Context, v *engine.Vault, name string) (root engine.Root, live, ok bool, err error) {
	id, earlier := strings.CutSuffix(name, before)
	ev, err := v.FindEvent(ctx, id)
	if engine.KindOf(err) == engine.EventNotFound || err == nil && (ev.ID != id || ev.Cause != engine.CauseExec) {
		return root, false, false, nil
	}
	return sideOf(ev, earlier), false, err == nil, err
}

func findNumber(ctx context.Context, v *engine.Vault, name string) (root engine.Root, live, ok bool, err error) {
	name, earlier := strings.CutSuffix(name, before)
	digits := strings.TrimPrefix(name, "#")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return root, false, false, nil
	}
	ev, err := v.FindEvent(ctx, digits)
	if engine.KindOf(err) == engine.EventNotFound {
		return root, false, false, nil
	}
	return sideOf(ev, earlier), false, err == nil, err
}

func sideOf(ev engine.Event, earlier bool) engine.Root {
	if earlier {
		return ev.Before
	}
	return ev.After
}

func findTime(ctx context.Context, v *engine.Vault, name string) (root engine.Root, live, ok bool, err error) {
	now := time.Now()
	t, ok := parseTime(name, now)
	switch {
	case !ok:
		return root, false, false, nil
	case !t.Before(now):
		return root, true, true, nil
	}
	root, err = stateAt(ctx, v, t)
	return root, false, err == nil, err
}

// stateAt is the newest state that the history of a vault knows at or before t: after
// an event, of a checkpoint, or the beginning of a fork. What programs wrote into a
// mount after that is in none of them.
func stateAt(ctx context.Context, v *engine.Vault, t time.Time) (engine.Root, error) {
	var newest, oldest time.Time
	var root engine.Root
	consider := func(at time.Time, r engine.Root) {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
		// Of the same moment is an event after the checkpoint that was made for it.
		if !at.After(t) && !at.Before(newest) {
			newest, root = at, r
		}
	}
	if r, ok := v.ForkPoint(); ok {
		consider(v.Info().CreatedAt, r)
	}
	checkpoints, err := v.Checkpoints(ctx)
	if err != nil {
		return root, err
	}
	for _, cp := range checkpoints {
		consider(cp.At, cp.Root)
	}
	events, err := v.Timeline(ctx, 0)
	if err != nil {
		return root, err
	}
	for i := len(events) - 1; i >= 0; i-- {
		consider(events[i].At, events[i].After)
	}
	if !root.IsZero() {
		return root, nil
	}
	why := errors.New("the vault has no history yet")
	if !oldest.IsZero() {
		why = fmt.Errorf("the history begins at %s", oldest.UTC().Format(time.RFC3339))
	}
	return root, &engine.Error{Kind: engine.EventNotFound, Op: "find the state at", Path: t.UTC().Format(time.RFC3339), Err: why}
}

// localTimes are the forms of a time in the zone of this machine.
var localTimes = [...]string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"}

// parseTime reads a time, or how long before now it was.
func parseTime(s string, now time.Time) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, true
	}
	for _, form := range localTimes {
		if t, err := time.ParseInLocation(form, s, time.Local); err == nil {
			return t, true
		}
	}
	ago, ok := strings.CutSuffix(s, " ago")
	if !ok {
		if ago, ok = strings.CutPrefix(s, "-"); !ok {
			return time.Time{}, false
		}
	}
	d, ok := parseAge(strings.TrimSpace(ago))
	return now.Add(-d), ok
}

// parseAge reads a duration with the units of Go and d (24 hours) and w (7 days), such
// as 1d12h.
func parseAge(s string) (time.Duration, bool) {
	var sum time.Duration
	for _, unit := range []struct {
		name  string
		hours int
	}{{"w", 7 * 24}, {"d", 24}} {
		digits, rest, found := strings.Cut(s, unit.name)
		if !found {
			continue
		}
		d, err := time.ParseDuration(digits + "h")
		if err != nil || d < 0 || d > time.Duration(1<<62)/time.Duration(unit.hours) {
			return 0, false
		}
		sum += d * time.Duration(unit.hours)
		if s = rest; s == "" {
			return sum, sum >= 0
		}
	}
	d, err := time.ParseDuration(s)
	return sum + d, err == nil && d >= 0 && sum+d >= 0
}

// splitVault takes the vault off the name of a state.
func splitVault(vault, name string) (string, string) {
	other, ok := strings.CutPrefix(name, vaultPrefix)
	if !ok {
		return vault, name
	}
	vault, name, _ = strings.Cut(other, "@")
	return vault, name
}

// state finds the root of a state by its name. It stays whole until the returned
// function is called.
func (o *Owner) state(ctx context.Context, vault, name string) (engine.Root, func(), error) {
	none := func() {}
	vault, name = splitVault(vault, name)
	v, err := o.vault(ctx, vault)
	if err != nil {
		return engine.Root{}, none, err
	}
	for {
		root, live, err := find(ctx, v, name)
		if err != nil {
			return engine.Root{}, none, err
		}
		if live {
			return o.pinPresent(ctx, v, vault)
		}
		// What keeps it may be pruned at any time. If the name leads to it once it is
		// held, it was kept all along.
		release := o.store.Hold(root)
		again, _, err := find(ctx, v, name)
		if err == nil && again == root {
			return root, release, nil
		}
		release()
	}
}

// pinPresent pins the present state of a vault.
func (o *Owner) pinPresent(ctx context.Context, v *engine.Vault, vault string) (engine.Root, func(), error) {
	if err := o.flush(ctx, vault); err != nil {
		return engine.Root{}, func() {}, err
	}
	root, err := v.Pin(ctx)
	if err != nil {
		return engine.Root{}, func() {}, err
	}
	return root, func() { v.Unpin(root) }, nil
}

// find looks a state up by its name in a vault.
func find(ctx context.Context, v *engine.Vault, name string) (root engine.Root, live bool, err error) {
	if name == "" {
		return root, true, nil
	}
	var meanings []string
	var early error
	for _, r := range readings() {
		bare, typed := strings.CutPrefix(name, r.prefix)
		typed = typed && r.prefix != ""
		if !typed {
			bare = name
		}
		got, now, ok, err := r.find(ctx, v, bare)
		if !typed && engine.KindOf(err) == engine.EventNotFound {
			early, err = err, nil // a time before all history, or the name of something else
		}
		switch {
		case err != nil:
			return root, false, err
		case typed && ok:
			return got, now, nil
		case typed:
			return root, false, noState(r.missing, v, name)
		case ok:
			root, live = got, now
			meanings = append(meanings, r.prefix+name)
		}
	}
	switch len(meanings) {
	case 0:
		if early != nil {
			return root, false, early
		}
		return root, false, noState(kindOfName(name), v, name)
	case 1:
		return root, live, nil
	}
	return root, false, ambiguous(name, meanings)
}

// kindOfName is the kind of failure for a name that leads nowhere.
func kindOfName(name string) engine.Kind {
	if strings.HasPrefix(name, "#") || strings.HasSuffix(name, before) {
		return engine.EventNotFound
	}
	if name == stateBase {
		return engine.Invalid
	}
	return engine.CheckpointNotFound
}

func noState(kind engine.Kind, v *engine.Vault, name string) error {
	why := errors.New("no checkpoint, exec, event or time of this name")
	switch {
	case name == stateBase:
		why = errors.New("the vault is no fork; name a state to compare with")
	case kind == engine.EventNotFound:
		why = errors.New("no such event in the timeline; history may have been pruned")
	}
	return &engine.Error{Kind: kind, Op: "find state", Path: name, Err: why, Details: map[string]any{"vault": v.Name()}}
}

func ambiguous(name string, meanings []string) error {
	for i, m := range meanings {
		if m == name {
			meanings[i] = "the state that avfs calls so"
		}
	}
	return &engine.Error{Kind: engine.Invalid, Op: "find state", Path: name,
		Err:     fmt.Errorf("ambiguous: it can be %s", strings.Join(meanings, " or ")),
		Details: map[string]any{"meanings": meanings}}
}

// lookups finds the states and paths of one reading request.
type lookups struct {
	o        *Owner
	vault    string
	past     bool // a path may be PATH@STATE
	base     tree
	releases []func()
}

// at begins the lookups of a request in the state of a checkpoint, or in the present.
// The caller closes them.
func (o *Owner) at(ctx context.Context, vault, name string, past bool) (*lookups, error) {
	l := &lookups{o: o, vault: vault, past: past}
	t, err := l.state(ctx, name)
	l.base = t
	return l, err
}

func (l *lookups) close() {
	for _, release := range l.releases {
		release()
	}
}

// state opens a state. The present one is the vault itself, unless a name asks for it.
func (l *lookups) state(ctx context.Context, name string) (tree, error) {
	if name == "" {
		return l.o.vault(ctx, l.vault)
	}
	root, release, err := l.o.state(ctx, l.vault, name)
	if err != nil {
		return nil, err
	}
	l.releases = append(l.releases, release)
	return l.o.store.Snapshot(root), nil
}

// find opens the state that a path is in, and gives the path there. PATH@STATE is PATH
// in that state where nothing has that very name.
func (l *lookups) find(ctx context.Context, name Path) (tree, string, error) {
	p, state, ok := splitPast(string(name))
	if !l.past || !ok {
		return l.base, string(name), nil
	}
	_, err := l.base.Resolve(ctx, string(name), false)
	if k := engine.KindOf(err); k != engine.NotFound && k != engine.NotDirectory && k != engine.NameTooLong {
		return l.base, string(name), nil // what is wrong with it shows when it is used
	}
	t, err := l.state(ctx, state)
	if engine.KindOf(err) == engine.CheckpointNotFound {
		return nil, "", &engine.Error{Kind: engine.NotFound, Op: "find", Path: string(name),
			Err: fmt.Errorf("no such file or directory, and no checkpoint %s of %s, nor an exec, event or time", state, p)}
	}
	return t, p, err
}

// splitPast splits PATH@STATE.
func splitPast(name string) (path, state string, ok bool) {
	i := strings.LastIndexByte(name, '@')
	if j := strings.LastIndex(name, "@"+vaultPrefix); j >= 0 {
		i = j // the state has an @ of its own
	}
	if i < 0 || i == len(name)-1 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}
