package workspace

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/agentvfs/avfs/engine"
)

// ExecRequest asks for a vault to run one command in.
type ExecRequest struct {
	ID         string   `json:"id"`
	Vault      string   `json:"vault"`
	Fork       string   `json:"fork,omitempty"` // make this fork and use it
	Command    []string `json:"command"`        // for the timeline
	Checkpoint bool     `json:"checkpoint"`     // keep the state before under a checkpoint
	ReadOnly   bool     `json:"read_only"`
	Driver     string   `json:"driver,omitempty"` // to mount with; empty is any
	Wait       bool     `json:"wait"`             // for another command in the vault; otherwise VaultBusy
	Limit      int      `json:"limit"`            // most changes to list

	Audit engine.AuditEntry `json:"audit"` // what the audit is to say, as far as it is known
}

// ExecOutcome says how the command of an exec ended, for the audit.
type ExecOutcome struct {
	Status     string `json:"status"`
	ExitCode   *int   `json:"exit_code"`
	DurationMS int64  `json:"duration_ms"`
}

// ExecBegun says where the command runs and what the state before is.
type ExecBegun struct {
	Vault      string `json:"vault"`
	Mountpoint string `json:"mountpoint"`
	Owner      int    `json:"owner"` // the process that serves the mount
	RootBefore string `json:"root_before"`
	Checkpoint string `json:"checkpoint,omitempty"`
}

// ExecEnded says what the command changed.
type ExecEnded struct {
	RootAfter   string              `json:"root_after"`
	Changes     []engine.FileChange `json:"changes"`
	Total       int                 `json:"total"`
	Event       uint64              `json:"event,omitempty"`
	Interrupted bool                `json:"interrupted,omitempty"` // the caller went away
	LimitsHit   []engine.Limit      `json:"limits_hit,omitempty"`  // of the quota, while the command ran
}

// OpExec holds a vault for one command. It writes an ExecBegun as a line of JSON
// to the output stream, waits for an ExecOutcome as a line on the input stream,
// which the caller sends when the command has ended, records it, and tells what
// changed. A caller that goes away has ended its command, too.
var OpExec = Op[ExecRequest, ExecEnded]{Name: "exec", Long: true, In: true, Run: runExec}

func runExec(ctx context.Context, o *Owner, req ExecRequest, s Streams) (ExecEnded, error) {
	if req.Fork != "" {
		if _, err := o.fork(ctx, ForkRequest{Vault: req.Vault, Name: req.Fork}); err != nil {
			return ExecEnded{}, err
		}
		req.Vault = req.Fork
	}
	v, err := o.vault(ctx, req.Vault)
	if err != nil {
		return ExecEnded{}, err
	}
	if !req.ReadOnly {
		done, err := o.turn(ctx, req.Vault, req.Wait, s.Exec)
		if err != nil {
			return ExecEnded{}, err
		}
		defer done()
		o.setTurn(o.turnOf(req.Vault), req.ID)
	}
	point, unuse, err := o.use(ctx, req.Vault, MountHow{ReadOnly: req.ReadOnly, Driver: req.Driver})
	if err != nil {
		return ExecEnded{}, err
	}
	defer unuse()
	if err := o.flush(ctx, req.Vault); err != nil {
		return ExecEnded{}, err
	}
	begun, before, err := begin(ctx, v, req)
	if err != nil {
		return ExecEnded{}, err
	}
	begun.Mountpoint, begun.Owner = point, pid()
	refused := v.Refusals()
	line, err := json.Marshal(begun)
	if err == nil {
		_, err = s.out().Write(append(line, '\n'))
	}
	if err != nil {
		v.Unpin(before)
		return ExecEnded{}, err
	}
	outcome := readOutcome(s.in())
	req.Audit.Vault, req.Audit.RootBefore = req.Vault, before.String()
	req.Audit.Status, req.Audit.ExitCode, req.Audit.DurationMS = outcome.Status, outcome.ExitCode, outcome.DurationMS
	ended, err := finish(context.WithoutCancel(ctx), o, v, req, before)
	ended.Interrupted = outcome.Status == interrupted
	ended.LimitsHit = v.Refusals().Since(refused)
	return ended, err
}

// interrupted is the status of an exec whose caller went away.
const interrupted = "interrupted"

// readOutcome waits until the caller says how the command ended, or goes away.
func readOutcome(in io.Reader) ExecOutcome {
	line, err := bufio.NewReader(in).ReadBytes('\n')
	outcome := ExecOutcome{Status: interrupted}
	if err != nil || json.Unmarshal(line, &outcome) != nil {
		return ExecOutcome{Status: interrupted}
	}
	return outcome
}

func begin(ctx context.Context, v *engine.Vault, req ExecRequest) (ExecBegun, engine.Root, error) {
	begun := ExecBegun{Vault: req.Vault}
	before, err := v.Pin(ctx)
	if err != nil {
		return begun, before, err
	}
	begun.RootBefore = before.String()
	if req.Checkpoint {
		cp, err := v.Checkpoint(ctx, engine.CheckpointOptions{Message: "before exec " + req.ID, Auto: true})
		if err != nil {
			v.Unpin(before)
			return begun, before, err
		}
		begun.Checkpoint = cp.ID
	}
	return begun, before, nil
}

// finish records what the command did. A read-only one did nothing. The record is
// made even if a mount could not be flushed, which is an error all the same: what
// the command changed may be missing from it.
func finish(ctx context.Context, o *Owner, v *engine.Vault, req ExecRequest, before engine.Root) (ExecEnded, error) {
	ended := ExecEnded{RootAfter: before.String(), Changes: []engine.FileChange{}}
	if req.ReadOnly {
		v.Unpin(before)
		req.Audit.RootAfter = before.String()
		_, err := o.store.AppendAudit(ctx, req.Audit)
		return ended, err
	}
	flushed := o.flush(ctx, req.Vault)
	ev, err := v.Record(ctx, engine.Event{Cause: engine.CauseExec, ID: req.ID, Command: req.Command, Before: before}, req.Audit)
	if err != nil {
		v.Unpin(before)
		return ended, errors.Join(err, flushed)
	}
	ended.RootAfter, ended.Event = ev.After.String(), ev.Seq
	ended.Changes, ended.Total, err = o.store.Diff(ctx, before, ev.After, &engine.DiffOptions{Limit: req.Limit})
	return ended, errors.Join(err, flushed)
}

// Exec is a vault held for one command.
type Exec struct {
	ExecBegun
	in   *io.PipeWriter
	done chan execDone
}

type execDone struct {
	ended ExecEnded
	err   error
}

// BeginExec holds a vault for one command and returns when it can run. An empty
// vault is the current one. End must follow.
func (w *Workspace) BeginExec(ctx context.Context, req ExecRequest) (*Exec, error) {
	name, store, err := w.Locate(req.Vault)
	if err != nil {
		return nil, err
	}
	req.Vault = name
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	x := &Exec{in: inW, done: make(chan execDone, 1)}
	// Once the command runs, only End ends the operation.
	opCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	go func() { // ends with the operation, which End or the caller's death ends
		defer cancel()
		ended, err := Call(opCtx, w, store, OpExec, req, Streams{In: inR, Out: outW})
		closing := err
		if closing == nil {
			closing = io.EOF
		}
		_ = outW.CloseWithError(closing) // never fails
		_ = inR.CloseWithError(closing)  // never fails
		x.done <- execDone{ended, err}
	}()
	line, err := bufio.NewReader(outR).ReadBytes('\n')
	if err != nil {
		if d := <-x.done; d.err != nil {
			err = d.err
		}
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, outR) }() // nothing more comes
	if err := json.Unmarshal(line, &x.ExecBegun); err != nil {
		return nil, errors.Join(err, inW.Close())
	}
	return x, nil
}

// End says how the command has ended and returns what it changed.
func (x *Exec) End(outcome ExecOutcome) (ExecEnded, error) {
	line, err := json.Marshal(outcome)
	if err == nil {
		_, err = x.in.Write(append(line, '\n'))
	}
	if err != nil {
		d := <-x.done
		if d.err == nil {
			d.err = err
		}
		return d.ended, d.err
	}
	d := <-x.done
	return d.ended, d.err
}

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
// mount.
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
		if err == nil {
			select {
			case <-m.m.Done():
				return m.info, nil
			case <-ctx.Done():
			}
		}
		_, uerr := o.unmount(context.WithoutCancel(ctx), req.Mountpoint, true)
		if engine.KindOf(uerr) == NotMounted {
			uerr = nil
		}
		return m.info, errors.Join(err, uerr)
	}}

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
		r := dial(ctx, store)
		if r == nil {
			continue
		}
		info, err := r.info(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

// Unmount ends the mount at a place, or the only mount of the vault of that name.
// A mount that a dead owner left is cleared away.
func (w *Workspace) Unmount(ctx context.Context, place string, force bool) (MountInfo, error) {
	point, err := absPoint(place)
	if err != nil {
		return MountInfo{}, err
	}
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
		return w.unmountDead(point, place)
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

// isDead reports whether a mount has lost its server. The kernel answers a stat
// all the same, if it still has what the server said.
func isDead(point string) bool {
	dir, err := os.Open(point)
	if err == nil {
		_ = dir.Close() // nothing was read
	}
	return errors.Is(err, syscall.ENOTCONN)
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
