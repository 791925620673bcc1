package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// VaultDoc describes a vault of the workspace.
type VaultDoc struct {
	engine.VaultInfo
	Current    bool        `json:"current"`
	Store      string      `json:"store"`                 // path of the database
	StoreBytes int64       `json:"store_bytes,omitempty"` // its size on disk, shared by all its vaults
	Backend    string      `json:"backend"`
	Mounts     []MountInfo `json:"mounts"`
}

// ForkRequest asks for a fork.
type ForkRequest struct {
	Vault string `json:"vault"`
	Name  string `json:"name"`
	At    string `json:"at,omitempty"` // a checkpoint; empty is the present state
}

// DeleteResult says what is left in a store after a vault was deleted.
type DeleteResult struct {
	Deleted string   `json:"deleted"`
	Left    []string `json:"left"`
}

var opVaults = Op[Nothing, []VaultDoc]{Name: "vault.list", Run: func(ctx context.Context, o *Owner, _ Nothing, _ Streams) ([]VaultDoc, error) {
	infos, err := o.store.Vaults(ctx)
	if err != nil {
		return nil, err
	}
	docs := make([]VaultDoc, 0, len(infos))
	for _, info := range infos {
		docs = append(docs, o.describe(info))
	}
	return docs, nil
}}

func (o *Owner) describe(info engine.VaultInfo) VaultDoc {
	doc := VaultDoc{VaultInfo: info, Store: o.path, Backend: o.driver.Name(), Mounts: []MountInfo{}}
	if s, ok := kv.As[kv.Sizer](o.store.Unwrap()); ok {
		if n, err := s.Size(); err == nil {
			doc.StoreBytes = n
		}
	}
	for _, m := range o.mountInfos() {
		if m.Vault == info.Name {
			doc.Mounts = append(doc.Mounts, m)
		}
	}
	return doc
}

var opVaultCreate = Op[InVault, VaultDoc]{Name: "vault.create", Run: func(ctx context.Context, o *Owner, req InVault, _ Streams) (VaultDoc, error) {
	v, err := o.store.CreateVault(ctx, req.Vault)
	if err != nil {
		return VaultDoc{}, err
	}
	return o.describe(v.Info()), o.w.dropHome(req.Vault)
}}

var opFork = Op[ForkRequest, VaultDoc]{Name: "vault.fork", Run: func(ctx context.Context, o *Owner, req ForkRequest, _ Streams) (VaultDoc, error) {
	v, err := o.fork(ctx, req)
	if err != nil {
		return VaultDoc{}, err
	}
	return o.describe(v.Info()), nil
}}

func (o *Owner) fork(ctx context.Context, req ForkRequest) (*engine.Vault, error) {
	if req.At == "" { // before the lock: a mount that does not hand over keeps no other fork waiting
		if err := o.flush(ctx, req.Vault); err != nil {
			return nil, err
		}
	}
	o.forking.Lock()
	defer o.forking.Unlock()
	if err := o.dropRef(ctx, req.Name); err != nil {
		return nil, err
	}
	release, err := o.w.claim(req.Name, o.path)
	if err != nil {
		return nil, err
	}
	v, err := o.forkNow(ctx, req)
	if err != nil {
		release()
	}
	return v, err
}

// dropRef removes the ref of a name that says that the vault is in this store, if
// it is not: a process died between the two. The caller holds forking.
func (o *Owner) dropRef(ctx context.Context, name string) error {
	_, store, err := o.w.Locate(name)
	if err != nil || store != o.path || store == o.w.storePath(name) {
		return nil // claim says what is wrong
	}
	if _, err := o.vault(ctx, name); engine.KindOf(err) != engine.VaultNotFound {
		return nil
	}
	return os.Remove(o.w.refPath(name))
}

func (o *Owner) forkNow(ctx context.Context, req ForkRequest) (*engine.Vault, error) {
	if req.At == "" {
		return o.store.Fork(ctx, req.Vault, req.Name)
	}
	v, err := o.vault(ctx, req.Vault)
	if err != nil {
		return nil, err
	}
	cp, err := v.FindCheckpoint(ctx, req.At)
	if err != nil {
		return nil, err
	}
	return o.store.ForkAt(ctx, req.Vault, cp, req.Name)
}

var opVaultDelete = Op[InVault, DeleteResult]{Name: "vault.delete", Run: func(ctx context.Context, o *Owner, req InVault, s Streams) (DeleteResult, error) {
	if _, err := o.vault(ctx, req.Vault); err != nil {
		o.forking.Lock()
		defer o.forking.Unlock()
		return DeleteResult{}, errors.Join(err, o.dropRef(ctx, req.Vault))
	}
	done, err := o.turn(ctx, req.Vault, false, s.Exec)
	if err != nil {
		return DeleteResult{}, err
	}
	defer done()
	if err := o.endMounts(ctx, req.Vault, s.Exec); err != nil {
		return DeleteResult{}, err
	}
	if err := o.store.DeleteVault(ctx, req.Vault); err != nil {
		return DeleteResult{}, err
	}
	res := DeleteResult{Deleted: req.Vault, Left: []string{}}
	infos, err := o.store.Vaults(ctx)
	for _, info := range infos {
		res.Left = append(res.Left, info.Name)
	}
	if rerr := os.Remove(o.w.refPath(req.Vault)); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return res, errors.Join(err, o.w.dropHome(req.Vault))
}}

// endMounts ends the services of a vault and the mounts that nobody uses; others make
// it Busy. The caller has the turn, so that no service begins meanwhile.
func (o *Owner) endMounts(ctx context.Context, vault, caller string) error {
	for _, info := range o.mountInfos() {
		if info.Vault == vault && !info.Implicit {
			return &engine.Error{Kind: engine.Busy, Op: "delete vault", Path: vault, Err: fmt.Errorf("it is mounted at %s", info.Mountpoint)}
		}
	}
	if err := o.stopServices(ctx, vault, caller); err != nil {
		return err
	}
	for _, info := range o.mountInfos() {
		if info.Vault != vault {
			continue
		}
		if _, err := o.unmount(ctx, info.Mountpoint, false); err != nil {
			return err
		}
	}
	return nil
}

func vaultOps() map[string]handler {
	all := map[string]handler{}
	add(all, opVaults)
	add(all, opVaultCreate)
	add(all, opFork)
	add(all, opVaultDelete)
	return all
}

// CreateVault makes a vault: in a new store of its own, or, where the store of that
// name is there and only holds forks of it, in that one. backend names the driver;
// empty is the default. The first vault becomes the current one.
func (w *Workspace) CreateVault(ctx context.Context, name, backend string) (VaultDoc, error) {
	if err := engine.CheckVaultName(name); err != nil {
		return VaultDoc{}, err
	}
	driver, err := w.driver(backend)
	if err != nil {
		return VaultDoc{}, err
	}
	if err := os.MkdirAll(w.vaultsDir(), 0o700); err != nil {
		return VaultDoc{}, err
	}
	path := w.storePath(name)
	if _, err := os.Lstat(path); err == nil {
		if is, err := w.recognise(path); err == nil && backend != "" && is.Name() != driver.Name() {
			return VaultDoc{}, &engine.Error{Kind: engine.Exists, Op: "create vault", Path: name,
				Err: fmt.Errorf("a store of that name holds its forks, on %s", is.Name())}
		}
		return Call(ctx, w, path, opVaultCreate, InVault{name}, Streams{})
	}
	release, err := w.claimNew(ctx, name, path)
	if err != nil {
		return VaultDoc{}, err
	}
	defer release()
	if err := w.newStore(ctx, driver, path, name); err != nil {
		return VaultDoc{}, err
	}
	if _, err := os.Lstat(filepath.Join(w.cfg.Home, "current")); errors.Is(err, fs.ErrNotExist) {
		if err := writeFile(filepath.Join(w.cfg.Home, "current"), name+"\n"); err != nil {
			return VaultDoc{}, err
		}
	}
	return w.infoAt(ctx, path, name)
}

// claimNew is claim for a new store. A name that only stands for what is left of a
// fork, whose making or deletion was cut short, is free.
func (w *Workspace) claimNew(ctx context.Context, name, path string) (release func(), err error) {
	release, err = w.claim(name, path)
	if engine.KindOf(err) != engine.VaultExists {
		return release, err
	}
	if _, ierr := w.Info(ctx, name); engine.KindOf(ierr) != engine.VaultNotFound {
		return nil, err
	}
	if _, derr := w.DeleteVault(ctx, name); engine.KindOf(derr) != engine.VaultNotFound {
		return nil, errors.Join(err, derr)
	}
	return w.claim(name, path)
}

func (w *Workspace) driver(name string) (kv.Driver, error) {
	if name == "" {
		return w.cfg.Drivers[0], nil
	}
	var names []string
	for _, d := range w.cfg.Drivers {
		if d.Name() == name {
			return d, nil
		}
		names = append(names, d.Name())
	}
	return nil, &engine.Error{Kind: engine.Unsupported, Op: "back end", Path: name,
		Err: fmt.Errorf("not in this build, which has %v", names)}
}

// newStore makes a store with one vault beside its place and moves it there when
// it is whole.
func (w *Workspace) newStore(ctx context.Context, d kv.Driver, path, vault string) (err error) {
	tmp, remove, err := scratch(w.vaultsDir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	made := filepath.Join(tmp, filepath.Base(path))
	db, err := d.Open(ctx, made, kv.Options{Tables: engine.Tables(), Create: true})
	if err != nil {
		return err
	}
	s, err := engine.Create(ctx, db, nil)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	_, err = s.CreateVault(engine.WithActor(ctx, w.actor(ctx, "", time.Now())), vault)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return &engine.Error{Kind: engine.VaultExists, Op: "create vault", Path: vault}
	}
	return os.Rename(made, path)
}

// Info describes one vault; an empty name is the current one.
func (w *Workspace) Info(ctx context.Context, vault string) (VaultDoc, error) {
	name, store, err := w.Locate(vault)
	if err != nil {
		return VaultDoc{}, err
	}
	return w.infoAt(ctx, store, name)
}

func (w *Workspace) infoAt(ctx context.Context, store, name string) (VaultDoc, error) {
	docs, err := Call(ctx, w, store, opVaults, Nothing{}, Streams{})
	if err != nil {
		return VaultDoc{}, err
	}
	current, _ := w.Current() // none is none
	for _, d := range docs {
		if d.Name == name {
			d.Current = name == current
			return d, nil
		}
	}
	return VaultDoc{}, &engine.Error{Kind: engine.VaultNotFound, Op: "find vault", Path: name}
}

// StoreFault is a store that could not be read.
type StoreFault struct {
	Store string `json:"store"`
	Error *Fault `json:"error"`
}

// List describes every vault, sorted by name, and lists the stores that could not
// be read.
func (w *Workspace) List(ctx context.Context) ([]VaultDoc, []StoreFault, error) {
	stores, err := w.Stores()
	if err != nil {
		return nil, nil, err
	}
	current, _ := w.Current() // none is none
	look := opVaults
	look.Brief = true
	docs, faults := []VaultDoc{}, []StoreFault{}
	for _, store := range stores {
		some, err := Call(ctx, w, store, look, Nothing{}, Streams{})
		if err != nil {
			faults = append(faults, StoreFault{Store: store, Error: NewFault(err)})
			continue
		}
		for i := range some {
			some[i].Current = some[i].Name == current
		}
		docs = append(docs, some...)
	}
	sort.Slice(docs, func(i, j int) bool { return docs[i].Name < docs[j].Name })
	return docs, faults, nil
}

// Fork makes a fork of a vault.
func (w *Workspace) Fork(ctx context.Context, req ForkRequest) (VaultDoc, error) {
	return CallVault(ctx, w, req.Vault, opFork, func(v string) ForkRequest { req.Vault = v; return req }, Streams{})
}

// DeleteVault deletes a vault, and with the last one its store.
func (w *Workspace) DeleteVault(ctx context.Context, vault string) (DeleteResult, error) {
	name, store, err := w.Locate(vault)
	if err != nil {
		return DeleteResult{}, err
	}
	res, err := Call(ctx, w, store, opVaultDelete, InVault{name}, Streams{})
	if err != nil {
		return res, err
	}
	return res, w.forgetVault(ctx, name, store, res.Left)
}

// forgetVault makes sure that a vault that was deleted is not the current one, and
// deletes its store if it was the last.
func (w *Workspace) forgetVault(ctx context.Context, name, store string, left []string) (err error) {
	if b, rerr := os.ReadFile(filepath.Join(w.cfg.Home, "current")); rerr == nil && string(b) == name+"\n" {
		err = os.Remove(filepath.Join(w.cfg.Home, "current"))
	}
	if len(left) == 0 {
		err = errors.Join(err, w.removeStore(ctx, store))
	}
	return err
}

// StopOwner asks the owner of a store to end, waits until it has let go of the
// store, and reports whether there was one. It is Busy while a command runs in a
// vault of the store, unless forced: then the command is ended. Other operations
// under way may go on for a few seconds.
func (w *Workspace) StopOwner(ctx context.Context, store string, force bool) (stopped bool, err error) {
	if force {
		return w.stopOwner(ctx, store, byForce)
	}
	return w.stopOwner(ctx, store, "")
}

// stopOwner is StopOwner; how is what remote.stop takes.
func (w *Workspace) stopOwner(ctx context.Context, store, how string) (stopped bool, err error) {
	deadline := time.Now().Add(w.cfg.LockWait + shutdownWait)
	for {
		r := w.dial(ctx, store)
		if r == nil {
			break
		}
		stopped = true
		if err := r.stop(ctx, how); err != nil && !errors.Is(err, errNotStarted) {
			return true, err
		}
		if err := pause(ctx, deadline, store); err != nil {
			return true, err
		}
	}
	for stopped { // it closes the store after it has stopped listening
		o, err := w.open(store)
		if err == nil {
			return true, o.release()
		}
		if engine.KindOf(err) != engine.Locked {
			return true, err
		}
		if err := pause(ctx, deadline, store); err != nil {
			return true, err
		}
	}
	return stopped, nil
}

// pause waits a little, and fails when the deadline has passed.
func pause(ctx context.Context, deadline time.Time, store string) error {
	if time.Now().After(deadline) {
		return &engine.Error{Kind: engine.Locked, Op: "wait for the owner", Path: store}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(retryPause):
		return nil
	}
}

// removeStore deletes a store without vaults.
func (w *Workspace) removeStore(ctx context.Context, store string) error {
	if _, err := w.StopOwner(ctx, store, false); err != nil {
		return err
	}
	o, err := w.openWait(ctx, store)
	if err != nil {
		return err
	}
	infos, err := o.store.Vaults(ctx)
	if err = errors.Join(err, o.release()); err != nil || len(infos) > 0 {
		return err
	}
	return errors.Join(removeIndex(store), os.RemoveAll(store))
}
