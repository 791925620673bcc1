package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// BackupRequest asks for a copy of a vault's whole store in one file.
type BackupRequest struct {
	Vault string `json:"vault"`
	Dest  string `json:"dest"` // absolute path of a file that is not there yet
}

// BackupResult describes a backup.
type BackupResult struct {
	Dest    string   `json:"dest"`
	Backend string   `json:"backend"` // of the copy
	Vaults  []string `json:"vaults"`
	Bytes   int64    `json:"bytes"` // size of the file
}

// OpBackup copies one moment of a store, with all its vaults, checkpoints and
// timelines, into a store of the default back end, while it is in use.
var OpBackup = Op[BackupRequest, BackupResult]{Name: "backup", Long: true,
	Run: func(ctx context.Context, o *Owner, req BackupRequest, s Streams) (BackupResult, error) {
		if _, err := os.Lstat(req.Dest); err == nil {
			return BackupResult{}, &engine.Error{Kind: engine.Exists, Op: "backup", Path: req.Dest}
		}
		names, err := o.settle(ctx)
		if err != nil {
			return BackupResult{}, err
		}
		d := o.w.cfg.Drivers[0]
		if _, err := copyStore(ctx, o.store.Unwrap(), d, req.Dest, s); err != nil {
			return BackupResult{}, err
		}
		info, err := os.Stat(req.Dest)
		if err != nil {
			return BackupResult{}, err
		}
		return BackupResult{Dest: req.Dest, Backend: d.Name(), Vaults: names, Bytes: info.Size()}, nil
	}}

// settle commits every vault and lists their names.
func (o *Owner) settle(ctx context.Context) ([]string, error) {
	infos, err := o.store.Vaults(ctx)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, info := range infos {
		v, err := o.present(ctx, info.Name)
		if err != nil {
			return nil, err
		}
		if _, err := v.Commit(ctx, true); err != nil {
			return nil, err
		}
		names = append(names, info.Name)
	}
	return names, nil
}

// copyStore copies src into a new store at dest, proves the copy and returns the
// digest of both. dest appears when it is whole.
func copyStore(ctx context.Context, src kv.Store, d kv.Driver, dest string, s Streams) (digest [32]byte, err error) {
	tmp, remove, err := scratch(filepath.Dir(dest))
	if err != nil {
		return digest, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	made := filepath.Join(tmp, filepath.Base(dest))
	db, err := d.Open(ctx, made, kv.Options{Tables: engine.Tables(), Create: true})
	if err != nil {
		return digest, err
	}
	digest, err = kv.Copy(ctx, db, src, engine.Tables(), func(_, bytes int64) { s.progress(Progress{Bytes: bytes}) })
	if err == nil {
		err = prove(ctx, db, digest)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return digest, err
	}
	if _, err := os.Lstat(dest); err == nil {
		return digest, &engine.Error{Kind: engine.Exists, Op: "copy", Path: dest}
	}
	return digest, os.Rename(made, dest)
}

// prove reads a copy back and compares it with what was copied.
func prove(ctx context.Context, db kv.Store, want [32]byte) error {
	got, err := kv.Digest(ctx, db, engine.Tables())
	if err == nil && got != want {
		err = &engine.Error{Kind: engine.Corrupt, Op: "copy", Err: errors.New("the copy does not read back as what was written")}
	}
	return err
}

// OpCompact gives unused space of a store back to the file system.
var OpCompact = Op[InVault, CompactResult]{Name: "compact", Long: true,
	Run: func(ctx context.Context, o *Owner, _ InVault, _ Streams) (CompactResult, error) {
		c, ok := kv.As[kv.Compacter](o.store.Unwrap())
		if !ok {
			return CompactResult{}, &engine.Error{Kind: engine.Unsupported, Op: "compact", Path: o.driver.Name()}
		}
		n, err := c.Compact(ctx)
		return CompactResult{ReclaimedBytes: n}, err
	}}

// CompactResult says how much a store shrank, in bytes.
type CompactResult struct {
	ReclaimedBytes int64 `json:"reclaimed_bytes"`
}

// Restore puts a backup into the workspace, under the names that its vaults have;
// none of them may be taken. backend names the driver of the new store; empty is
// that of the backup.
func (w *Workspace) Restore(ctx context.Context, file, backend string, s Streams) (vaults []VaultDoc, err error) {
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	driver, err := w.recognise(file)
	if err != nil {
		return nil, err
	}
	src, err := driver.Open(ctx, file, kv.Options{Tables: engine.Tables(), ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if backend != "" {
		if driver, err = w.driver(backend); err != nil {
			return nil, err
		}
	}
	names, err := engine.VaultNames(ctx, src)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &engine.Error{Kind: engine.NotStore, Op: "restore", Path: file, Err: errors.New("it holds no vault")}
	}
	if err := os.MkdirAll(w.vaultsDir(), 0o700); err != nil {
		return nil, err
	}
	path := w.storePath(names[0])
	for i, name := range names {
		release, err := w.claim(name, path)
		if err != nil {
			return nil, err
		}
		defer func() {
			if err != nil || i == 0 { // the first one is named by the store itself
				release()
			}
		}()
	}
	if _, err := copyStore(ctx, src, driver, path, s); err != nil {
		return nil, err
	}
	return Call(ctx, w, path, opVaults, Nothing{}, Streams{})
}

// MigrateResult says what a migration did. Sizes are in bytes.
type MigrateResult struct {
	Store       string `json:"store"`
	From        string `json:"from"`
	To          string `json:"to"`
	BytesBefore int64  `json:"bytes_before"`
	BytesAfter  int64  `json:"bytes_after"`
}

// Migrate moves the store of a vault, with all its vaults, checkpoints and
// timelines, to another back end. The new store takes the place of the old one in
// one step, after it was read back and checked; until then the old one is as it
// was, and an interrupted migration can simply be asked for again.
func (w *Workspace) Migrate(ctx context.Context, vault, backend string, s Streams) (MigrateResult, error) {
	_, store, err := w.Locate(vault)
	if err != nil {
		return MigrateResult{}, err
	}
	driver, err := w.driver(backend)
	if err != nil {
		return MigrateResult{}, err
	}
	if err := w.endIdleOwner(ctx, store); err != nil {
		return MigrateResult{}, err
	}
	dir, remove, err := scratch(filepath.Dir(store))
	if err != nil {
		return MigrateResult{}, err
	}
	res, err := w.migrate(ctx, store, filepath.Join(dir, filepath.Base(store)), driver, s)
	return res, errors.Join(err, remove())
}

// migrate copies the store to made, proves and checks the copy, and swaps the two.
// It works on the database alone: nothing in it changes meanwhile.
func (w *Workspace) migrate(ctx context.Context, store, made string, to kv.Driver, s Streams) (MigrateResult, error) {
	from, err := w.recognise(store)
	if err != nil {
		return MigrateResult{}, err
	}
	res := MigrateResult{Store: store, From: from.Name(), To: to.Name()}
	if res.From == res.To {
		return res, &engine.Error{Kind: engine.Invalid, Op: "migrate", Path: store, Err: fmt.Errorf("the store is on %s already", res.To)}
	}
	was, err := w.copyAway(ctx, from, store, to, made, &res, s)
	if err != nil {
		return res, err
	}
	if err := exchange(made, store); err != nil {
		return res, err
	}
	// made is the old store now. Nobody had it open for a moment before the swap:
	// what was written to it then must not be lost.
	if err := unchanged(ctx, from, made, was); err != nil {
		return res, errors.Join(err, exchange(made, store))
	}
	return res, nil
}

func (w *Workspace) copyAway(ctx context.Context, from kv.Driver, store string, to kv.Driver, made string, res *MigrateResult, s Streams) (was [32]byte, err error) {
	wait, cancel := context.WithTimeout(ctx, w.cfg.LockWait)
	defer cancel()
	db, err := from.Open(wait, store, kv.Options{Tables: engine.Tables()})
	if err != nil {
		return was, err
	}
	res.BytesBefore = storeSize(db)
	was, err = copyStore(ctx, db, to, made, s)
	if err == nil {
		res.BytesAfter, err = checkStore(ctx, to, made)
	}
	return was, errors.Join(err, db.Close())
}

// unchanged reads a store and compares it with what it was.
func unchanged(ctx context.Context, d kv.Driver, path string, was [32]byte) error {
	db, err := d.Open(ctx, path, kv.Options{Tables: engine.Tables()})
	if err != nil {
		return err
	}
	now, err := kv.Digest(ctx, db, engine.Tables())
	if err = errors.Join(err, db.Close()); err == nil && now != was {
		err = &engine.Error{Kind: engine.Busy, Op: "migrate", Path: path, Err: errors.New("another process wrote to the store; try again")}
	}
	return err
}

// endIdleOwner ends an owner that nobody needs; one that serves a mount is Busy.
func (w *Workspace) endIdleOwner(ctx context.Context, store string) error {
	owners, err := w.Owners(ctx)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if o.Store != store {
			continue
		}
		for _, m := range o.Mounts {
			if !m.Implicit {
				return &engine.Error{Kind: engine.Busy, Op: "migrate", Path: m.Vault, Err: fmt.Errorf("it is mounted at %s", m.Mountpoint)}
			}
		}
		if err := w.stopWhenIdle(ctx, store); err != nil {
			return err
		}
	}
	return nil
}

// stopWhenIdle waits for operations that are under way, but not for long: a
// command may run for hours.
func (w *Workspace) stopWhenIdle(ctx context.Context, store string) error {
	deadline := time.Now().Add(w.cfg.LockWait)
	for {
		_, err := w.stopOwner(ctx, store, ifIdle)
		if !errors.Is(err, errInUse) {
			return err
		}
		if perr := pause(ctx, deadline, store); perr != nil && ctx.Err() != nil {
			return perr
		} else if perr != nil {
			return &engine.Error{Kind: engine.Busy, Op: "migrate", Path: store, Err: errors.New("a command runs in one of its vaults")}
		}
	}
}

// checkStore opens a store and checks it.
func checkStore(ctx context.Context, d kv.Driver, path string) (size int64, err error) {
	db, err := d.Open(ctx, path, kv.Options{Tables: engine.Tables()})
	if err != nil {
		return 0, err
	}
	st, err := engine.Open(ctx, db, nil)
	if err != nil {
		return 0, errors.Join(err, db.Close())
	}
	rep, err := st.Check(ctx, &engine.CheckOptions{History: true})
	if err == nil && len(rep.Findings) > 0 {
		err = &engine.Error{Kind: engine.Corrupt, Op: "check", Path: path, Err: errors.New(rep.Findings[0].Problem)}
	}
	size = storeSize(db)
	return size, errors.Join(err, st.Close())
}

// storeSize is the size of a store in bytes, 0 where it cannot be told.
func storeSize(db kv.Store) int64 {
	if s, ok := kv.As[kv.Sizer](db); ok {
		if n, err := s.Size(); err == nil {
			return n
		}
	}
	return 0
}
