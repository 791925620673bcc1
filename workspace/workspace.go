package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/mountpoint"
)

// Config says what a workspace consists of.
type Config struct {
	// Home is the directory of the workspace; empty is AVFS_HOME, or ~/.avfs.
	Home string
	// Drivers are the back ends of this build, the default first.
	Drivers []kv.Driver
	// Mounter makes vaults visible as directories; nil if this build cannot.
	Mounter Mounter
	// Spawn starts an owner of the store at path in a process of its own and
	// returns when it listens. Nil: this process does not start owners, and
	// operations that want one run in it.
	Spawn func(ctx context.Context, path string) error
	// Away says that this process has many operations at the same time: they go through an
	// owner that Spawn starts, so that they do not wait for each other to open and close
	// the store.
	Away bool
	// EndCommand ends what is left of the command of an exec whose caller or owner
	// has died, and fails if something does not end. Nil: this process cannot.
	EndCommand func(left ExecLeft) error
	// Version is that of the program, told to whoever asks the owner.
	Version string
	// LockWait is how long to wait for a store that somebody else has open and
	// does not serve; 0 is five seconds.
	LockWait time.Duration
}

// Mounter makes a vault visible as a directory.
type Mounter interface {
	// Mount returns when the directory is usable.
	Mount(ctx context.Context, v *engine.Vault, point string, how MountHow) (Mounted, error)
	// Recover detaches a mount point that a dead process left; anything else
	// it leaves alone.
	Recover(point string) error
	// FreeKilled sets a process free that was killed and cannot end, because a mount
	// which it serves waits for it, and reports whether it was such a one.
	FreeKilled(pid int) (bool, error)
}

// MountHow says how to mount.
type MountHow struct {
	ReadOnly bool
	Driver   string // one of the mounter's ways to mount; empty leaves it the choice
}

// Mounted is a live mount.
type Mounted interface {
	// Driver is what it was made with, as MountHow names it.
	Driver() string
	Unmount(ctx context.Context, force bool) error
	// Flush hands to the vault what programs have written to shared mappings of
	// files, which the kernel otherwise keeps for a while. It returns when ctx
	// ends, done or not.
	Flush(ctx context.Context) error
	// Done is closed when the mount has ended, for whatever reason.
	Done() <-chan struct{}
}

const defaultLockWait = 5 * time.Second

// Workspace is a directory of stores. It may be used by any number of goroutines.
type Workspace struct {
	cfg      Config
	userName func() string // of who runs this process; empty is not known

	mu     sync.Mutex        // guards what follows
	owners map[string]*Owner // stores that this process has open, by path
}

// Open prepares the workspace; its directories are made when they are needed.
func Open(cfg Config) (*Workspace, error) {
	if cfg.Home == "" {
		cfg.Home = os.Getenv("AVFS_HOME")
	}
	if cfg.Home == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("no home directory (set AVFS_HOME): %w", err)
		}
		cfg.Home = filepath.Join(home, ".avfs")
	}
	abs, err := filepath.Abs(cfg.Home)
	if err != nil {
		return nil, err
	}
	cfg.Home = abs
	if err := apart(abs); err != nil {
		return nil, err
	}
	if cfg.LockWait == 0 {
		cfg.LockWait = defaultLockWait
	}
	if len(cfg.Drivers) == 0 {
		return nil, errors.New("this build has no storage back end")
	}
	return &Workspace{cfg: cfg, userName: newUserName(), owners: map[string]*Owner{}}, nil
}

// apart refuses a directory in a vault: the commands that run there must not reach the
// policy and the audit.
func apart(home string) error {
	point, err := mountpoint.Over(home)
	if err != nil || point == "" {
		return err
	}
	return &engine.Error{Kind: engine.Invalid, Op: "open workspace", Path: home,
		Err: fmt.Errorf("it is in the vault that is mounted at %s, where commands could change the policy and the audit; set AVFS_HOME to a directory outside of every vault", point)}
}

// Home is the directory of the workspace.
func (w *Workspace) Home() string { return w.cfg.Home }

func (w *Workspace) vaultsDir() string { return filepath.Join(w.cfg.Home, "vaults") }

// MountPoint is where a vault is mounted when nobody says where.
func (w *Workspace) MountPoint(vault string, readOnly bool) string {
	if readOnly {
		vault += readOnlySuffix
	}
	return filepath.Join(w.mountsDir(), vault)
}

func (w *Workspace) mountsDir() string { return filepath.Join(w.cfg.Home, "mnt") }

// readOnlySuffix tells the place of a read-only mount from that of the other one,
// and from that of any other vault: no name has such a character.
const readOnlySuffix = "@ro"

func (w *Workspace) storePath(name string) string {
	return filepath.Join(w.vaultsDir(), name+storeSuffix)
}

func (w *Workspace) refPath(name string) string { return filepath.Join(w.vaultsDir(), name+refSuffix) }

const (
	storeSuffix = ".avfs"
	refSuffix   = ".ref"
)

// Locate finds the store of a vault without opening it. The vault of an empty
// name is the current one.
func (w *Workspace) Locate(vault string) (name, store string, err error) {
	if vault == "" {
		if vault, err = w.Current(); err != nil {
			return "", "", err
		}
	}
	if err := engine.CheckVaultName(vault); err != nil {
		return "", "", err
	}
	ref, err := os.ReadFile(w.refPath(vault))
	switch {
	case err == nil:
		base := strings.TrimSpace(string(ref))
		if base != filepath.Base(base) || !strings.HasSuffix(base, storeSuffix) {
			return "", "", &engine.Error{Kind: engine.Corrupt, Op: "find vault", Path: vault, Err: fmt.Errorf("%s names no store", w.refPath(vault))}
		}
		return vault, filepath.Join(w.vaultsDir(), base), nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", "", err
	}
	if _, err := os.Lstat(w.storePath(vault)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = &engine.Error{Kind: engine.VaultNotFound, Op: "find vault", Path: vault}
		}
		return "", "", err
	}
	return vault, w.storePath(vault), nil
}

// Stores lists the stores of the workspace, sorted.
func (w *Workspace) Stores() ([]string, error) {
	entries, err := os.ReadDir(w.vaultsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var stores []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), storeSuffix) {
			stores = append(stores, filepath.Join(w.vaultsDir(), e.Name()))
		}
	}
	sort.Strings(stores)
	return stores, nil
}

// Current is the name of the current vault: AVFS_VAULT, what Use chose, or the
// only one there is.
func (w *Workspace) Current() (string, error) {
	if name := os.Getenv("AVFS_VAULT"); name != "" {
		return name, nil
	}
	b, err := os.ReadFile(filepath.Join(w.cfg.Home, "current"))
	if err == nil {
		return strings.TrimSpace(string(b)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	names, err := w.Names()
	if err != nil {
		return "", err
	}
	if len(names) == 1 {
		return names[0], nil
	}
	hint := "create one with: avfs vault create NAME"
	if len(names) > 1 {
		hint = "choose one with: avfs vault use NAME"
	}
	return "", &engine.Error{Kind: engine.VaultNotFound, Op: "find vault", Err: errors.New("no current vault; " + hint)}
}

// Use makes a vault the current one.
func (w *Workspace) Use(vault string) error {
	name, _, err := w.Locate(vault)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(w.cfg.Home, "current"), name+"\n")
}

// Names lists the vaults that have a file of their own, first vaults of stores and
// forks, without opening any.
func (w *Workspace) Names() ([]string, error) {
	entries, err := os.ReadDir(w.vaultsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		for _, suffix := range []string{storeSuffix, refSuffix} {
			if n, ok := strings.CutSuffix(e.Name(), suffix); ok {
				names = append(names, n)
			}
		}
	}
	return names, nil
}

// claim takes a vault name for the store, or fails with VaultExists. Nothing is left
// then of a vault that had the name before. The returned function gives it back.
func (w *Workspace) claim(name, store string) (release func(), err error) {
	if err := engine.CheckVaultName(name); err != nil {
		return nil, err
	}
	taken := &engine.Error{Kind: engine.VaultExists, Op: "create vault", Path: name}
	if store == w.storePath(name) {
		if _, err := os.Lstat(store); err == nil {
			return func() {}, nil // it is the store's own name, and the store knows whether it is free
		}
	}
	if _, err := os.Lstat(w.storePath(name)); err == nil {
		return nil, taken
	}
	f, err := os.OpenFile(w.refPath(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) && w.abandoned(name) {
		if err := os.Remove(w.refPath(name)); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(w.refPath(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, taken
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(filepath.Base(store) + "\n")
	err = errors.Join(err, f.Sync(), f.Close(), w.dropHome(name))
	if err != nil {
		return nil, errors.Join(err, os.Remove(w.refPath(name)))
	}
	return func() { _ = os.Remove(w.refPath(name)) }, nil
}

// abandonedAfter is how old a ref to a store that is not there must be before it
// counts as left by a process that died while it made the store.
const abandonedAfter = 10 * time.Second

// abandoned reports whether the ref of a name stands for nothing.
func (w *Workspace) abandoned(name string) bool {
	info, err := os.Stat(w.refPath(name))
	if err != nil || time.Since(info.ModTime()) < abandonedAfter {
		return false
	}
	_, store, err := w.Locate(name)
	if err != nil {
		return false
	}
	_, err = os.Lstat(store)
	return errors.Is(err, fs.ErrNotExist)
}

// writeFile replaces a small file in one step.
func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
