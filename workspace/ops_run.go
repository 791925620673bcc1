package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// MountRequest asks to make a vault visible at a place.
type MountRequest struct {
	Vault      string `json:"vault"`
	Mountpoint string `json:"mountpoint"`
	ReadOnly   bool   `json:"read_only,omitempty"`
	Driver     string `json:"driver,omitempty"` // to mount with; empty is any
}

func (r MountRequest) how() MountHow { return MountHow{ReadOnly: r.ReadOnly, Driver: r.Driver} }

// OpMount mounts a vault and returns when it is usable. A vault that is mounted
// there already is no error.
var OpMount = Op[MountRequest, MountInfo]{Name: "mount", Long: true,
	Run: func(ctx context.Context, o *Owner, req MountRequest, _ Streams) (MountInfo, error) {
		return o.mountAt(ctx, req)
	}}

// OpHoldMount mounts a vault, writes the MountInfo as a line of JSON to the output
// stream, and stays until the mount ends. When the caller goes away it ends the
// mount, as soon as no command runs in it any more.
var OpHoldMount = Op[MountRequest, MountInfo]{Name: "mount.hold", Long: true,
	Run: func(ctx context.Context, o *Owner, req MountRequest, s Streams) (MountInfo, error) {
		m, err := o.mountNew(ctx, req)
		if err != nil {
			return MountInfo{}, err
		}
		line, err := json.Marshal(m.info)
		if err == nil {
			_, err = s.out().Write(append(line, '\n'))
		}
		if err == nil && o.hold(ctx, m) {
			return m.info, nil
		}
		o.awaitUnused(m)
		_, uerr := o.unmount(context.WithoutCancel(ctx), req.Mountpoint, true)
		if engine.KindOf(uerr) == NotMounted {
			uerr = nil
		}
		return m.info, errors.Join(err, uerr)
	}}

// hold waits for the end of a mount or of ctx, and reports whether the mount has ended.
// The owner may tend the store meanwhile.
func (o *Owner) hold(ctx context.Context, m *mount) (ended bool) {
	o.addHolding(1)
	defer o.addHolding(-1)
	select {
	case <-m.m.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

func (o *Owner) addHolding(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holding += n
	o.since = time.Now()
}

// UnmountRequest names a mount by its place.
type UnmountRequest struct {
	Mountpoint string `json:"mountpoint"`
	Force      bool   `json:"force,omitempty"`
}

// OpUnmount ends a mount.
var OpUnmount = Op[UnmountRequest, MountInfo]{Name: "unmount",
	Run: func(ctx context.Context, o *Owner, req UnmountRequest, _ Streams) (MountInfo, error) {
		return o.unmount(ctx, req.Mountpoint, req.Force)
	}}

func runOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpExec)
	add(all, OpAuditNotRun)
	add(all, OpOutput)
	add(all, OpMount)
	add(all, OpHoldMount)
	add(all, OpUnmount)
	return all
}

// Mount makes a vault visible at a place; an empty vault is the current one.
func (w *Workspace) Mount(ctx context.Context, req MountRequest) (MountInfo, error) {
	point, err := absPoint(req.Mountpoint)
	if err != nil {
		return MountInfo{}, err
	}
	req.Mountpoint = point
	return CallVault(ctx, w, req.Vault, OpMount, func(v string) MountRequest { req.Vault = v; return req }, Streams{})
}

// HoldMount is Mount for as long as ctx and this process live. told is called once
// the vault is visible; an error of it ends the mount.
func (w *Workspace) HoldMount(ctx context.Context, req MountRequest, told func(MountInfo) error) error {
	point, err := absPoint(req.Mountpoint)
	if err != nil {
		return err
	}
	req.Mountpoint = point
	line := &mountLine{told: told}
	_, err = CallVault(ctx, w, req.Vault, OpHoldMount, func(v string) MountRequest { req.Vault = v; return req }, Streams{Out: line})
	if ctx.Err() != nil && line.passed {
		return nil // that is how a held mount ends
	}
	return err
}

// mountLine passes on the line that OpHoldMount writes.
type mountLine struct {
	told   func(MountInfo) error
	passed bool
}

// Write takes the whole line at once.
func (m *mountLine) Write(line []byte) (int, error) {
	var info MountInfo
	if err := json.Unmarshal(line, &info); err != nil {
		return 0, err
	}
	m.passed = true
	return len(line), m.told(info)
}

// Owners asks every live owner in the workspace who it is.
func (w *Workspace) Owners(ctx context.Context) ([]OwnerInfo, error) {
	stores, err := w.Stores()
	if err != nil {
		return nil, err
	}
	list := []OwnerInfo{}
	for _, store := range stores {
		info, ok, err := w.ownerOf(ctx, store)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, info)
		}
	}
	return list, nil
}

// ownerOf asks the owner of a store in another process who it is; ok says that there is
// one. One that ends while it is asked is asked again, until it is gone or another
// answers.
func (w *Workspace) ownerOf(ctx context.Context, store string) (info OwnerInfo, ok bool, err error) {
	deadline := time.Now().Add(w.cfg.LockWait)
	for {
		r := w.dial(ctx, store)
		if r == nil {
			return OwnerInfo{}, false, nil
		}
		if info, err = r.info(ctx); err == nil {
			return info, true, nil
		}
		if perr := pause(ctx, deadline, store); perr != nil {
			return OwnerInfo{}, false, errors.Join(err, perr)
		}
	}
}

// Unmount ends the mount at a place, or the only mount of the vault of that name.
// A mount that a dead owner left is cleared away.
func (w *Workspace) Unmount(ctx context.Context, place string, force bool) (MountInfo, error) {
	point, err := absPoint(place)
	if err != nil {
		return MountInfo{}, err
	}
	m, err := w.unmountLive(ctx, place, point, force)
	if engine.KindOf(err) == NotMounted { // also if the owner has died since it was asked
		return w.unmountDead(point, place)
	}
	return m, err
}

// unmountLive is Unmount for a mount that has an owner.
func (w *Workspace) unmountLive(ctx context.Context, place, point string, force bool) (MountInfo, error) {
	owners, err := w.Owners(ctx)
	if err != nil {
		return MountInfo{}, err
	}
	var ofVault []MountInfo
	stores := map[string]string{}
	for _, o := range owners {
		for _, m := range o.Mounts {
			stores[m.Mountpoint] = o.Store
			if m.Mountpoint == point {
				return Call(ctx, w, o.Store, OpUnmount, UnmountRequest{Mountpoint: point, Force: force}, Streams{})
			}
			if m.Vault == place {
				ofVault = append(ofVault, m)
			}
		}
	}
	m, err := onlyMount(place, ofVault)
	if err != nil {
		return MountInfo{}, err
	}
	if m == "" {
		return MountInfo{}, &engine.Error{Kind: NotMounted, Op: "unmount", Path: place, Err: errors.New("no vault is mounted there")}
	}
	return Call(ctx, w, stores[m], OpUnmount, UnmountRequest{Mountpoint: m, Force: force}, Streams{})
}

// onlyMount chooses the place that is meant by the name of a vault: the one that
// somebody chose, or else the one made for commands. It is empty if there is none.
func onlyMount(vault string, mounts []MountInfo) (point string, err error) {
	var chosen []string
	for _, m := range mounts {
		if m.Implicit {
			point = m.Mountpoint
		} else {
			chosen = append(chosen, m.Mountpoint)
		}
	}
	switch len(chosen) {
	case 0:
		return point, nil
	case 1:
		return chosen[0], nil
	}
	return "", &engine.Error{Kind: engine.Invalid, Op: "unmount", Path: vault,
		Err: fmt.Errorf("the vault is mounted at %s; name one of them", strings.Join(chosen, " and "))}
}

// unmountDead clears a mount away whose owner has died.
func (w *Workspace) unmountDead(point, place string) (MountInfo, error) {
	if w.cfg.Mounter != nil && isDead(point) {
		if err := w.cfg.Mounter.Recover(point); err != nil {
			return MountInfo{}, err
		}
		return MountInfo{Mountpoint: point}, nil
	}
	return MountInfo{}, &engine.Error{Kind: NotMounted, Op: "unmount", Path: place, Err: errors.New("no vault is mounted there")}
}
