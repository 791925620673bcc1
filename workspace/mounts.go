package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// mount is one place where a vault of the store is visible.
type mount struct {
	info  MountInfo
	m     Mounted
	users int // commands that run in it
	// leaving is closed when no command runs in the mount any more; nil while it is
	// open for commands.
	leaving chan struct{}
}

// MountInfo describes a mount.
type MountInfo struct {
	Session    string    `json:"session"` // its id, which the events of what programs change through it have
	Vault      string    `json:"vault"`
	Mountpoint string    `json:"mountpoint"`
	ReadOnly   bool      `json:"read_only"`
	Driver     string    `json:"driver"`         // what it was made with
	Implicit   bool      `json:"implicit"`       // made for commands; ends when none needs it
	Since      time.Time `json:"since,omitzero"` // absent, as what follows, of one that a dead process left
	PID        int       `json:"pid,omitempty"`  // the process that serves it
}

// is reports whether the mount is one that how asks for.
func (i *MountInfo) is(how MountHow) bool {
	return i.ReadOnly == how.ReadOnly && (how.Driver == "" || i.Driver == how.Driver)
}

// mountAt mounts a vault at a place that somebody chose.
func (o *Owner) mountAt(ctx context.Context, req MountRequest) (MountInfo, error) {
	o.mounting.Lock()
	defer o.mounting.Unlock()
	if old := o.mountOn(req.Mountpoint); old != nil && old.info.Vault == req.Vault && old.info.is(req.how()) {
		o.mu.Lock()
		defer o.mu.Unlock()
		old.info.Implicit = false
		return old.info, nil
	}
	m, err := o.mount(ctx, req.Vault, req.Mountpoint, req.how(), false)
	if err != nil {
		return MountInfo{}, err
	}
	return m.info, nil
}

// mountNew makes a mount where none is.
func (o *Owner) mountNew(ctx context.Context, req MountRequest) (*mount, error) {
	o.mounting.Lock()
	defer o.mounting.Unlock()
	if old := o.mountOn(req.Mountpoint); old != nil {
		return nil, &engine.Error{Kind: engine.Busy, Op: "mount", Path: req.Mountpoint, Err: fmt.Errorf("vault %s is mounted there", old.info.Vault)}
	}
	return o.mount(ctx, req.Vault, req.Mountpoint, req.how(), false)
}

// mountOn is the mount at a place, nil if there is none.
func (o *Owner) mountOn(point string) *mount {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mounts[point]
}

// mount makes a mount. The caller holds mounting.
func (o *Owner) mount(ctx context.Context, vault, point string, how MountHow, implicit bool) (*mount, error) {
	if o.w.cfg.Mounter == nil {
		return nil, &engine.Error{Kind: NoMounter, Op: "mount", Path: vault, Err: errors.New("this build cannot mount")}
	}
	if !implicit && !o.serving {
		return nil, &engine.Error{Kind: engine.ReadOnly, Op: "mount", Path: vault,
			Err: errors.New("no owner can be started, because nothing can be written where the store is")}
	}
	v, err := o.vault(ctx, vault)
	if err != nil {
		return nil, err
	}
	m, err := o.w.cfg.Mounter.Mount(ctx, v, point, how)
	if err != nil {
		return nil, err
	}
	entry := &mount{m: m, info: MountInfo{
		Session: rand.Text(), Vault: vault, Mountpoint: point, ReadOnly: how.ReadOnly, Driver: m.Driver(), Implicit: implicit, Since: time.Now().UTC(), PID: pid(),
	}}
	o.mu.Lock()
	o.mounts[point] = entry
	o.mu.Unlock()
	o.nameSession(v)
	go func() { // ends with the mount
		<-m.Done()
		o.forget(entry)
	}()
	return entry, nil
}

// flush has the mounts of a vault hand over what programs have written to shared
// mappings of files, so that a state which is about to be kept has it. A program or
// a kernel that holds on to a page does not hold everybody up: after a while the
// vault is Busy.
func (o *Owner) flush(ctx context.Context, vault string) error {
	wait, cancel := context.WithTimeout(ctx, o.w.cfg.LockWait)
	defer cancel()
	for _, m := range o.mountsOf(vault) {
		err := m.m.Flush(wait)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case wait.Err() != nil:
			return &engine.Error{Kind: engine.Busy, Op: "flush", Path: m.info.Mountpoint,
				Err: fmt.Errorf("what programs have written to mapped files has not arrived within %v", o.w.cfg.LockWait)}
		default:
			return &engine.Error{Kind: engine.KindOf(err), Op: "flush", Path: m.info.Mountpoint, Err: err}
		}
	}
	return nil
}

// present opens a vault whose present state is about to be read as a whole, flushed.
func (o *Owner) present(ctx context.Context, vault string) (*engine.Vault, error) {
	v, err := o.vault(ctx, vault)
	if err == nil {
		err = o.flush(ctx, vault)
	}
	return v, err
}

// mountsOf lists the mounts of a vault through which it can be written to.
func (o *Owner) mountsOf(vault string) []*mount {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []*mount
	for _, m := range o.mounts {
		if m.info.Vault == vault && !m.info.ReadOnly {
			list = append(list, m)
		}
	}
	return list
}

// forget takes a mount that has ended off the list. What programs have changed through
// it becomes an event first. Where that cannot be written now, as on a full disk, it
// becomes one with the next event that can.
func (o *Owner) forget(m *mount) {
	if o.mountOn(m.info.Mountpoint) != m {
		return
	}
	v, err := o.vault(context.Background(), m.info.Vault)
	if err == nil && !m.info.ReadOnly {
		v.SetMountSession(m.session())
		_ = v.Settle(context.Background()) // see above
	}
	o.mu.Lock()
	if o.mounts[m.info.Mountpoint] == m {
		delete(o.mounts, m.info.Mountpoint)
	}
	o.mu.Unlock()
	if err == nil {
		o.nameSession(v)
	}
	o.signal()
}

func (m *mount) session() *engine.MountSession {
	return &engine.MountSession{ID: m.info.Session, Mountpoint: m.info.Mountpoint}
}

// nameSession has changes that no event tells of laid to the oldest mount of the vault
// that somebody chose, or else to the one that was made for commands.
func (o *Owner) nameSession(v *engine.Vault) {
	var best *mount
	for _, m := range o.mountsOf(v.Name()) {
		if best == nil || best.info.Implicit && !m.info.Implicit || best.info.Implicit == m.info.Implicit && m.info.Since.Before(best.info.Since) {
			best = m
		}
	}
	if best == nil {
		v.SetMountSession(nil)
		return
	}
	v.SetMountSession(best.session())
}

// chosenFor finds the mount that commands use among those that somebody chose: the
// oldest that is as they need it. Locks on files hold within one mount, so a command
// and the programs of whoever made the mount have to share it.
func chosenFor(mounts []MountInfo, vault string, how MountHow) (point string, ok bool) {
	var best *MountInfo
	for i := range mounts {
		m := &mounts[i]
		if m.Vault != vault || m.Implicit || !m.is(how) {
			continue
		}
		if best == nil || m.Since.Before(best.Since) || m.Since.Equal(best.Since) && m.Mountpoint < best.Mountpoint {
			best = m
		}
	}
	if best == nil {
		return "", false
	}
	return best.Mountpoint, true
}

// use finds or makes the mount of the vault for commands: one that somebody chose,
// or else one that is always at the same place. With want, which is not empty, it
// fails with MountMoved if that is another place. The returned function gives the
// mount back.
func (o *Owner) use(ctx context.Context, vault string, how MountHow, want string) (point string, done func(), err error) {
	o.mounting.Lock()
	defer o.mounting.Unlock()
	point, ok := chosenFor(o.openMounts(), vault, how)
	if !ok {
		point = o.w.MountPoint(vault, how.ReadOnly)
	}
	if want != "" && point != want {
		return "", nil, &engine.Error{Kind: MountMoved, Op: "mount", Path: vault, Err: errors.New("commands run in " + point + " by now"),
			Details: map[string]any{"mountpoint": point}}
	}
	m := o.mountOn(point)
	if m != nil && m.info.Implicit && m.info.Vault == vault && !m.info.is(how) && !o.inUse(m) {
		// It was made for a command that wanted another driver and is over. One that
		// somebody has a foot in stays, and is Busy below.
		if err := o.unmountLocked(ctx, m, false); err == nil {
			m = nil
		}
	}
	if m == nil {
		if err := os.MkdirAll(filepath.Dir(point), 0o700); err != nil {
			return "", nil, err
		}
		if m, err = o.mount(ctx, vault, point, how, true); err != nil {
			return "", nil, err
		}
	}
	if m.info.Vault != vault || !m.info.is(how) || !o.isOpen(m) {
		return "", nil, &engine.Error{Kind: engine.Busy, Op: "mount", Path: vault,
			Err: fmt.Errorf("another mount, of vault %s with %s, is in its place at %s", m.info.Vault, m.info.Driver, point)}
	}
	o.addUser(m, 1)
	return point, func() { o.addUser(m, -1) }, nil
}

// clearDead takes away the mounts for commands that an owner left which died, and
// their directories. What cannot be cleared is left to who mounts there next.
func (o *Owner) clearDead() {
	dir := o.w.mountsDir()
	entries, err := os.ReadDir(dir)
	if err != nil || o.w.cfg.Mounter == nil {
		return // no command ever ran
	}
	for _, e := range entries {
		_, store, err := o.w.Locate(strings.TrimSuffix(e.Name(), readOnlySuffix))
		if err != nil || store != o.path {
			continue
		}
		point := filepath.Join(dir, e.Name())
		if o.w.cfg.Mounter.Recover(point) == nil {
			_ = os.Remove(point) // somebody may have put something there
		}
	}
}

func (o *Owner) addUser(m *mount, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.users += n
	if m.users == 0 && m.leaving != nil {
		close(m.leaving)
	}
}

// awaitUnused keeps commands from a mount and returns when the last of those that
// run in it has ended, or the mount has.
func (o *Owner) awaitUnused(m *mount) {
	o.mu.Lock()
	m.leaving = make(chan struct{})
	if m.users == 0 {
		close(m.leaving)
	}
	o.mu.Unlock()
	select {
	case <-m.leaving:
	case <-m.m.Done():
	}
}

// isOpen reports whether commands may use a mount.
func (o *Owner) isOpen(m *mount) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return m.leaving == nil
}

// openMounts lists the mounts that commands may use.
func (o *Owner) openMounts() []MountInfo {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]MountInfo, 0, len(o.mounts))
	for _, m := range o.mounts {
		if m.leaving == nil {
			list = append(list, m.info)
		}
	}
	return list
}

// MountFor says where a command in the vault would run now: in the mount that its
// live owner, if there is one, would choose, or else at MountPoint. It makes nothing
// and starts nobody. An owner that does not answer is no error here, since whoever
// runs a command asks it again.
func (w *Workspace) MountFor(ctx context.Context, vault string, how MountHow) string {
	if point, ok := chosenFor(w.liveMounts(ctx, vault), vault, how); ok {
		return point
	}
	return w.MountPoint(vault, how.ReadOnly)
}

// liveMounts lists the mounts of the store that a vault is in.
func (w *Workspace) liveMounts(ctx context.Context, vault string) []MountInfo {
	_, store, err := w.Locate(vault)
	if err != nil {
		return nil
	}
	w.mu.Lock()
	o := w.owners[store]
	w.mu.Unlock()
	if o != nil {
		return o.mountInfos()
	}
	info, _, err := w.ownerOf(ctx, store)
	if err != nil {
		return nil
	}
	return info.Mounts
}

// inUse reports whether commands run in a mount.
func (o *Owner) inUse(m *mount) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return m.users > 0
}

// mountInfos lists the mounts, by place.
func (o *Owner) mountInfos() []MountInfo {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]MountInfo, 0, len(o.mounts))
	for _, m := range o.mounts {
		list = append(list, m.info)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Mountpoint < list[j].Mountpoint })
	return list
}

// unmount ends a mount, found by its place.
func (o *Owner) unmount(ctx context.Context, point string, force bool) (MountInfo, error) {
	o.mounting.Lock()
	defer o.mounting.Unlock()
	m := o.mountOn(point)
	if m == nil {
		return MountInfo{}, &engine.Error{Kind: NotMounted, Op: "unmount", Path: point, Err: errors.New("no vault is mounted there")}
	}
	if !force && o.inUse(m) {
		return MountInfo{}, &engine.Error{Kind: engine.Busy, Op: "unmount", Path: point, Err: errors.New("a command runs in it")}
	}
	return m.info, o.unmountLocked(ctx, m, force)
}

// unmountLocked ends a mount, for a caller that holds mounting.
func (o *Owner) unmountLocked(ctx context.Context, m *mount, force bool) error {
	err := m.m.Unmount(ctx, force)
	if err == nil {
		o.forget(m)
	}
	return err
}

// unmountAll ends every mount, in use or not.
func (o *Owner) unmountAll(ctx context.Context) error {
	var errs []error
	for _, info := range o.mountInfos() {
		if _, err := o.unmount(ctx, info.Mountpoint, true); err != nil && engine.KindOf(err) != NotMounted {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// endIfIdle ends the mounts that were made for commands and, if nothing needs the
// owner still, has it take no more operations.
func (o *Owner) endIfIdle(ctx context.Context) bool {
	for _, info := range o.mountInfos() {
		if !info.Implicit {
			continue
		}
		_, err := o.unmount(ctx, info.Mountpoint, false)
		if err == nil || engine.KindOf(err) == NotMounted {
			continue
		}
		if !o.deleted() {
			return false // somebody has a foot in it, or what is pending cannot be saved
		}
		// What is pending has nowhere to go any more. The end of the owner takes the
		// mounts along, in use or not.
		o.close()
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = o.closing || o.busy == 0 && len(o.mounts) == 0
	return o.closing
}

// deleted reports whether somebody has removed the store.
func (o *Owner) deleted() bool {
	_, err := os.Lstat(o.path)
	return errors.Is(err, fs.ErrNotExist)
}

// closeIfIdle has the owner take no more operations, unless one is under way or a
// mount is needed.
func (o *Owner) closeIfIdle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.mounts {
		if !m.info.Implicit || m.users > 0 {
			return false
		}
	}
	o.closing = o.closing || o.busy == 0
	return o.closing
}

// close has the owner take no more operations.
func (o *Owner) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
}

// idleIn reports whether nothing needs this owner, no operation and no mount that
// somebody asked for, and how long it takes until that has been so for the linger.
func (o *Owner) idleIn(linger time.Duration) (wait time.Duration, idle bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy > 0 || o.tending != nil {
		return 0, false
	}
	for _, m := range o.mounts {
		if !m.info.Implicit || m.users > 0 {
			return 0, false
		}
	}
	return linger - time.Since(o.since), true
}

// begin and end frame an operation of the server. An owner that is about to end
// begins none.
func (o *Owner) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return false
	}
	o.busy++
	return true
}

func (o *Owner) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy--
	o.since = time.Now()
	o.signal()
}

// rest starts the idle clock, some time from now.
func (o *Owner) rest(extra time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Now().Add(extra)
}

// signal wakes who waits for the owner to become idle.
func (o *Owner) signal() {
	select {
	case o.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// absPoint is the one form in which mount points are compared: absolute, with the
// links of the directories above resolved.
func absPoint(point string) (string, error) {
	abs, err := filepath.Abs(point)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return abs, nil // the mount says what is wrong with it
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}
