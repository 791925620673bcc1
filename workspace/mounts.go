package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// mount is one place where a vault of the store is visible.
type mount struct {
	info  MountInfo
	m     Mounted
	users int // commands that run in it
}

// MountInfo describes a mount.
type MountInfo struct {
	Vault      string    `json:"vault"`
	Mountpoint string    `json:"mountpoint"`
	ReadOnly   bool      `json:"read_only"`
	Implicit   bool      `json:"implicit"` // made for commands; ends when none needs it
	Since      time.Time `json:"since"`
	PID        int       `json:"pid"` // the process that serves it
}

// mountAt mounts a vault at a place that somebody chose.
func (o *Owner) mountAt(ctx context.Context, vault, point string, readOnly, implicit bool) (*mount, error) {
	if o.w.cfg.Mounter == nil {
		return nil, &engine.Error{Kind: NoMounter, Op: "mount", Path: vault, Err: errors.New("this build cannot mount")}
	}
	v, err := o.vault(ctx, vault)
	if err != nil {
		return nil, err
	}
	m, err := o.w.cfg.Mounter.Mount(ctx, v, point, readOnly)
	if err != nil {
		return nil, err
	}
	entry := &mount{m: m, info: MountInfo{
		Vault: vault, Mountpoint: point, ReadOnly: readOnly, Implicit: implicit, Since: time.Now().UTC(), PID: pid(),
	}}
	o.mu.Lock()
	o.mounts[point] = entry
	o.mu.Unlock()
	go func() { // ends with the mount
		<-m.Done()
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.mounts[point] == entry {
			delete(o.mounts, point)
		}
	}()
	return entry, nil
}

// use finds or makes a mount of the vault for a command. The returned function
// gives it back.
func (o *Owner) use(ctx context.Context, vault string, readOnly bool) (point string, done func(), err error) {
	o.mu.Lock()
	for _, m := range o.mounts {
		if m.info.Vault == vault && m.info.ReadOnly == readOnly {
			m.users++
			o.mu.Unlock()
			return m.info.Mountpoint, func() { o.unuse(m) }, nil
		}
	}
	o.mu.Unlock()
	place := o.w.MountPoint(vault, readOnly)
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return "", nil, err
	}
	m, err := o.mountAt(ctx, vault, place, readOnly, true)
	if err != nil {
		return "", nil, err
	}
	o.mu.Lock()
	m.users++
	o.mu.Unlock()
	return m.info.Mountpoint, func() { o.unuse(m) }, nil
}

func (o *Owner) unuse(m *mount) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.users--
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
	o.mu.Lock()
	m := o.mounts[point]
	o.mu.Unlock()
	if m == nil {
		return MountInfo{}, &engine.Error{Kind: NotMounted, Op: "unmount", Path: point, Err: errors.New("no vault is mounted there")}
	}
	if err := m.m.Unmount(ctx, force); err != nil {
		return MountInfo{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mounts[point] == m {
		delete(o.mounts, point)
	}
	return m.info, nil
}

// unmountAll ends every mount, in use or not, and forgets those that are gone.
func (o *Owner) unmountAll(ctx context.Context) error {
	var errs []error
	for _, info := range o.mountInfos() {
		if _, err := o.unmount(ctx, info.Mountpoint, true); err != nil && engine.KindOf(err) != NotMounted {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// idle reports whether nothing needs this owner: no operation and no mount that
// somebody asked for.
func (o *Owner) idle() (since time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy > 0 {
		return time.Time{}, false
	}
	for _, m := range o.mounts {
		if !m.info.Implicit || m.users > 0 {
			return time.Time{}, false
		}
	}
	return o.since, true
}

// begin and end frame an operation of the server.
func (o *Owner) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy++
}

func (o *Owner) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy--
	o.since = time.Now()
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
