package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// Owner is the open store in the process that has it open.
type Owner struct {
	w       *Workspace
	path    string
	driver  kv.Driver
	store   *engine.Store
	serving bool // others reach it; set, with w.mu held, before the first of them does
	refs    int  // guarded by w.mu

	// mounting is held while a mount is made or ended. It is taken before mu.
	mounting sync.Mutex

	deciding sync.Mutex // held while an approval is looked for and made

	forking sync.Mutex // held while a fork is made

	searching *searchIndex // of the store

	changed chan struct{} // gets a value when idleIn may say something else

	mu       sync.Mutex // guards what follows
	mounts   map[string]*mount
	turns    map[string]*turn // by vault
	execs    map[string]RunningExec
	services map[string]*service       // that run, by the name of their notes
	printing map[string]*engine.Output // of execs whose command runs, by id
	asking   map[string]chan struct{}  // execs that are asked for or run, by id; closed when that is over
	busy     int                       // operations under way
	holding  int                       // those of them that only wait for the end of a mount or a service
	since    time.Time                 // when busy became 0, or a while later
	closing  bool                      // the server takes no more operations
	tending  context.CancelFunc        // ends the collection in the background; nil while none runs
}

// Store is the open store.
func (o *Owner) Store() *engine.Store { return o.store }

// conn is a way to a store: the owner in this process or one elsewhere.
type conn struct {
	local  *Owner
	remote *remote
}

const retryPause = 5 * time.Millisecond

// connect finds the owner of the store or becomes it. With away it prefers an
// owner in a process of its own.
func (w *Workspace) connect(ctx context.Context, path string, away bool) (conn, error) {
	if _, err := os.Lstat(path); err != nil {
		return conn{}, err
	}
	deadline := time.Now().Add(w.cfg.LockWait)
	for {
		if o := w.opened(path, away); o != nil {
			return conn{local: o}, nil
		}
		if r := w.dial(ctx, path); r != nil {
			return conn{remote: r}, nil
		}
		var err error
		if away && w.cfg.Spawn != nil {
			if err = w.cfg.Spawn(ctx, path); err == nil {
				continue
			}
		}
		if !away || w.cfg.Spawn == nil || unwritable(err) {
			var o *Owner
			if o, err = w.open(path); err == nil {
				return conn{local: o}, nil
			}
		}
		if engine.KindOf(err) != engine.Locked || time.Now().After(deadline) {
			return conn{}, err
		}
		select {
		case <-ctx.Done():
			return conn{}, ctx.Err()
		case <-time.After(retryPause):
		}
	}
}

// opened returns the owner in this process with one more reference, nil if there
// is none. With away one does not count that serves nobody: it has the store for an
// operation that is soon over, and what takes long would make it one that ends with
// this process, mounts and all. The owner that is started instead waits for it.
func (w *Workspace) opened(path string, away bool) *Owner {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.owners[path]
	if o == nil || away && w.cfg.Spawn != nil && !o.serving {
		return nil
	}
	o.refs++
	return o
}

// open opens the store in this process, without waiting for who has it. Commands
// whose owner has died are ended and recorded.
func (w *Workspace) open(path string) (*Owner, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.owners[path]; o != nil {
		o.refs++
		return o, nil
	}
	driver, db, err := w.openDatabase(path)
	if err != nil {
		return nil, err
	}
	store, err := engine.Open(context.Background(), db, nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	err = w.recordLost(context.Background(), store)
	if err == nil {
		err = settleAll(context.Background(), store)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	o := &Owner{
		w: w, path: path, driver: driver, store: store, refs: 1,
		searching: newSearchIndex(), changed: make(chan struct{}, 1), mounts: map[string]*mount{}, turns: map[string]*turn{},
		execs: map[string]RunningExec{}, services: map[string]*service{}, printing: map[string]*engine.Output{}, asking: map[string]chan struct{}{}, since: time.Now(),
	}
	w.owners[path] = o
	return o, nil
}

// openDatabase finds the back end of a store and opens it, without waiting for who
// has it. A migration may put another store in its place meanwhile; then what was
// seen of the old one counts for nothing.
func (w *Workspace) openDatabase(path string) (kv.Driver, kv.Store, error) {
	for {
		before, err := os.Stat(path)
		if err != nil {
			return nil, nil, err
		}
		driver, db, err := w.openFound(path)
		if after, serr := os.Stat(path); serr != nil || os.SameFile(before, after) {
			return driver, db, err
		}
		if err == nil {
			if err := db.Close(); err != nil {
				return nil, nil, err
			}
		}
	}
}

func (w *Workspace) openFound(path string) (kv.Driver, kv.Store, error) {
	driver, err := w.recognise(path)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a cancelled context does not wait for the lock
	db, err := driver.Open(ctx, path, kv.Options{Tables: engine.Tables()})
	if errors.Is(err, kv.ErrNoSpace) {
		db, err = openFull(driver, path, err)
	} else if unwritable(err) {
		db, err = driver.Open(ctx, path, kv.Options{Tables: engine.Tables(), ReadOnly: true})
	}
	return driver, db, err
}

// unwritable reports whether err says that nothing can be written where the store
// is. Then it can still be read.
func unwritable(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

// recognise finds the back end of a store by its first bytes.
func (w *Workspace) recognise(path string) (kv.Driver, error) {
	for _, d := range w.cfg.Drivers {
		if d.Recognise(path) {
			return d, nil
		}
	}
	return nil, &engine.Error{Kind: engine.NotStore, Op: "open", Path: path}
}

// release gives one reference back; with the last one the mounts that are left end and
// the store is closed.
func (o *Owner) release() error {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	o.refs--
	if o.refs > 0 {
		return nil
	}
	delete(o.w.owners, o.path)
	return errors.Join(o.searching.close(), o.unmountAll(context.Background()), settleAll(context.Background(), o.store), o.store.Close())
}

// settleAll gives what changed in the vaults of a store without an event an event: when
// the store is opened, what an owner left that died. Where that cannot be written now,
// or what is damaged is in the way, it waits for the next one.
func settleAll(ctx context.Context, store *engine.Store) error {
	return cannotWait(store.Settle(ctx))
}

// cannotWait is the part of err, which may be several, that the next owner is not left to
// try again.
func cannotWait(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var left []error
		for _, err := range many.Unwrap() {
			left = append(left, cannotWait(err))
		}
		return errors.Join(left...)
	}
	switch kindOf(err) {
	case engine.NoSpace, engine.Corrupt, engine.ReadOnly:
		return nil
	}
	return err
}

// vault opens a vault of the store.
func (o *Owner) vault(ctx context.Context, name string) (*engine.Vault, error) {
	return o.store.Vault(ctx, name)
}

// turn is who may change a vault by a command, an import, a restore or an undo.
type turn struct {
	taken chan struct{} // full while somebody has it
	exec  string        // whose it is, if it is an exec's; guarded by Owner.mu
}

// turn waits until no other command runs in the vault; without wait it fails with
// VaultBusy instead, and so it does for a caller that runs in the vault itself,
// which would wait for ever. The returned function ends the turn.
func (o *Owner) turn(ctx context.Context, vault string, wait bool, caller string) (done func(), err error) {
	t := o.turnOf(vault)
	free := func() {
		o.setTurn(t, "")
		<-t.taken
	}
	select {
	case t.taken <- struct{}{}:
		return free, nil
	default:
	}
	switch {
	case caller != "" && o.hasTurn(t, caller):
		return nil, &engine.Error{Kind: VaultBusy, Op: "use", Path: vault, Err: errors.New("the command that asks runs in the vault itself")}
	case !wait:
		return nil, &engine.Error{Kind: VaultBusy, Op: "use", Path: vault, Err: errors.New("another command runs in the vault")}
	}
	select {
	case t.taken <- struct{}{}:
		return free, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (o *Owner) turnOf(vault string) *turn {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.turns[vault]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		o.turns[vault] = t
	}
	return t
}

// setTurn notes which exec has the turn.
func (o *Owner) setTurn(t *turn, exec string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.exec = exec
}

func (o *Owner) hasTurn(t *turn, exec string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.exec == exec
}
