package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// FanoutSchema names the version of the document about a fan-out.
const FanoutSchema = "avfs.fanout/v1"

// MaxFanout is how many forks one fan-out may make.
const MaxFanout = 1000

// FanoutRequest is one command to run in several forks of a vault.
type FanoutRequest struct {
	Request         // of each; Fork, Stdin, live output and Events are not used
	Count    int    // of the forks
	Parallel int    // how many run at a time; 0 is the number of processors
	Name     string // of the forks, before "-" and the index; empty: that of the vault and "-fan", with a number where forks of an earlier one stay
	// KeepFirst keeps the fork in which the command succeeds first, ends the others,
	// and drops their forks. KeepIndex, if not nil, keeps that one.
	KeepFirst bool
	KeepIndex *int
	Drop      bool // drop all forks in the end
	// Ran is told of each envelope as it comes, one at a time; may be nil.
	Ran func(FanoutRun)
}

// Fanout is the result of a fan-out.
type Fanout struct {
	Schema   string        `json:"schema"`
	Vault    string        `json:"vault"` // that was forked
	Runs     []FanoutRun   `json:"runs"`  // one for each fork, in the order of their indexes; none if the policy refused
	Groups   []FanoutGroup `json:"groups"`
	Kept     *int          `json:"kept"`              // the index of the fork that was chosen; null: none was
	Refused  *Envelope     `json:"refused,omitempty"` // the policy let nothing run, or the request was wrong
	Problems []string      `json:"problems"`          // what went wrong besides the commands, such as a fork that could not be dropped
	Stopped  bool          `json:"stopped"`           // it was interrupted

	DurationMS int64 `json:"duration_ms"`
}

// FanoutRun is what happened in one fork.
type FanoutRun struct {
	Index      int       `json:"index"`
	Vault      string    `json:"vault"` // the fork
	Status     Status    `json:"status"`
	ExitCode   *int      `json:"exit_code"`
	DurationMS int64     `json:"duration_ms"`
	Changed    int       `json:"changed_total"`
	Group      int       `json:"group"`   // index in groups; -1: the command did not run to its end
	Dropped    bool      `json:"dropped"` // the fork is gone, or was not made
	Envelope   *Envelope `json:"envelope"`

	made bool // the fork is there
}

// Succeeded reports whether the command ended by itself with code 0.
func (r *FanoutRun) Succeeded() bool {
	return r.Status == StatusCompleted && r.ExitCode != nil && *r.ExitCode == 0
}

// FanoutGroup lists the forks that are equal in the end: in what they hold, not in
// times.
type FanoutGroup struct {
	Indexes  []int `json:"indexes"`
	ExitCode *int  `json:"exit_code"` // where all have the same; else null
	Changed  int   `json:"changed_total"`
}

// errNotNeeded is why a command was ended or did not begin.
var errNotNeeded = errors.New("another fork has succeeded first")

// Fanout forks a vault several times, runs a command in each fork, and compares. The
// policy is asked before anything is made, and one approval, where it wants one, is for
// the command in so many forks of the vault; what fails in one fork stops no other.
// Cancelling ctx ends everything, and drops the forks.
func (p *Proxy) Fanout(ctx context.Context, req FanoutRequest) *Fanout {
	start := time.Now()
	out := &Fanout{Schema: FanoutSchema, Vault: req.Vault, Runs: []FanoutRun{}, Groups: []FanoutGroup{}, Problems: []string{}}
	defer func() { out.DurationMS = time.Since(start).Milliseconds() }()
	out.Refused = p.refusesFanout(ctx, &req)
	if out.Vault = req.Vault; out.Refused != nil {
		return out
	}
	f := &fanout{p: p, req: req, out: out}
	f.run(ctx)
	out.Stopped = ctx.Err() != nil
	cleanup := context.WithoutCancel(ctx)
	if !out.Stopped {
		f.compare(cleanup)
	}
	f.choose(cleanup)
	return out
}

// refusesFanout completes the request, and asks the policy. It is nil if the command
// may run; else the envelope says why not, and the audit tells of it.
func (p *Proxy) refusesFanout(ctx context.Context, req *FanoutRequest) *Envelope {
	req.Fork, req.Stdin, req.Stdout, req.Stderr, req.Events, req.Interrupt = "", nil, nil, nil, nil, nil
	if req.Parallel <= 0 {
		req.Parallel = runtime.NumCPU()
	}
	dry := req.Request
	dry.DryRun = true
	env := p.Exec(ctx, dry)
	env.DryRun = false
	req.Vault = env.Vault
	switch env.Status {
	case StatusDenied:
		p.refused(ctx, env, &req.Request)
		return env
	case StatusApprovalRequired, StatusCompleted:
	default:
		return env
	}
	if req.Name == "" {
		req.Name = p.freeName(req)
	}
	if err := p.checkFanout(req); err != nil {
		return p.failed(env, err)
	}
	if env.Status == StatusApprovalRequired && !p.approveFanout(ctx, env, req) {
		return env
	}
	return nil
}

// freeName is the first name of which no fork is there.
func (p *Proxy) freeName(req *FanoutRequest) string {
	named := *req
	for n := 1; ; n++ {
		named.Name = req.Vault + "-fan"
		if n > 1 {
			named.Name += strconv.Itoa(n)
		}
		taken := false
		for i := range min(req.Count, MaxFanout) {
			_, _, err := p.Workspace.Locate(named.fork(i))
			taken = taken || err == nil
		}
		if !taken {
			return named.Name
		}
	}
}

// approveFanout asks for one approval of the command in all forks, and takes it. If it
// cannot, the envelope says why.
func (p *Proxy) approveFanout(ctx context.Context, env *Envelope, req *FanoutRequest) bool {
	all := req.Request
	if err := p.validate(&all); err != nil {
		p.failed(env, err)
		return false
	}
	all.forks = req.Count
	all.binding = p.binding(&all)
	if !p.needsApproval(ctx, env, &all) {
		return false
	}
	a, err := workspace.CallVault(ctx, p.Workspace, all.Vault, workspace.OpApprovalUse, func(v string) workspace.ApprovalUse {
		return workspace.ApprovalUse{Vault: v, ID: env.Approval.ID, Binding: all.binding, Exec: env.ID}
	}, workspace.Streams{})
	if err != nil { // another one was faster
		p.failed(env, err)
		if engine.KindOf(err) == workspace.ApprovalInvalid {
			env.Status = StatusApprovalRequired
		}
		return false
	}
	env.Approval.State = a.State
	req.granted = env.Approval
	return true
}

// checkFanout rejects what cannot work before anything is made.
func (p *Proxy) checkFanout(req *FanoutRequest) error {
	invalid := func(format string, args ...any) error {
		return &engine.Error{Kind: engine.Invalid, Op: "fan out", Err: fmt.Errorf(format, args...)}
	}
	switch {
	case req.Count < 1 || req.Count > MaxFanout:
		return invalid("the number of forks is 1 to %d, not %d", MaxFanout, req.Count)
	case req.KeepIndex != nil && (*req.KeepIndex < 0 || *req.KeepIndex >= req.Count):
		return invalid("there is no fork %d to keep: they are 0 to %d", *req.KeepIndex, req.Count-1)
	case req.Drop && (req.KeepFirst || req.KeepIndex != nil), req.KeepFirst && req.KeepIndex != nil:
		return invalid("keep the first, keep one or drop all: only one of these can be done")
	}
	for i := range req.Count {
		name := req.fork(i)
		if err := engine.CheckVaultName(name); err != nil {
			return err
		}
		if _, _, err := p.Workspace.Locate(name); err == nil {
			return &engine.Error{Kind: engine.VaultExists, Op: "fan out", Path: name, Err: errors.New("a vault of this name exists: choose another name for the forks, or delete it")}
		}
	}
	return nil
}

func (req *FanoutRequest) fork(index int) string { return req.Name + "-" + strconv.Itoa(index) }

// fanout is a fan-out on its way.
type fanout struct {
	p   *Proxy
	req FanoutRequest
	out *Fanout

	mu    sync.Mutex // guards what follows, and out.Runs
	first int        // that succeeded; -1: none yet
}

// run runs the command in every fork, some at a time, and returns when all have ended.
func (f *fanout) run(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.first = -1
	f.out.Runs = make([]FanoutRun, f.req.Count)
	turns := make(chan int)
	var wg sync.WaitGroup
	for range min(f.req.Parallel, f.req.Count) {
		wg.Go(func() {
			for i := range turns {
				f.done(f.one(ctx, i), cancel)
			}
		})
	}
	for i := range f.req.Count {
		turns <- i
	}
	close(turns)
	wg.Wait()
}

// one makes one fork and runs the command in it.
func (f *fanout) one(ctx context.Context, index int) FanoutRun {
	name := f.req.fork(index)
	req := f.req.Request
	req.Env = append([]string{"AVFS_FANOUT_INDEX=" + strconv.Itoa(index), "AVFS_FANOUT_COUNT=" + strconv.Itoa(f.req.Count)}, req.Env...)
	err := context.Cause(ctx)
	if err == nil {
		// Not to be cut short: then nobody would know whether the fork is there.
		_, err = f.p.Workspace.Fork(context.WithoutCancel(ctx), workspace.ForkRequest{Vault: req.Vault, Name: name})
	} else {
		err = &engine.Error{Kind: engine.Interrupted, Op: "fan out", Path: name, Err: err}
	}
	made := err == nil
	req.Vault = name
	var env *Envelope
	if made {
		env = f.exec(ctx, req)
	} else {
		env = newEnvelope(ulid.Make().String(), &req)
		env.fail(err)
	}
	return FanoutRun{
		Index: index, Vault: name, Status: env.Status, ExitCode: env.ExitCode, DurationMS: env.DurationMS, Changed: env.ChangedTotal,
		Group: -1, Envelope: env, made: made, Dropped: !made,
	}
}

// exec runs the command in a fork. The end of ctx interrupts it, and kills it if it
// goes on after that.
func (f *fanout) exec(ctx context.Context, req Request) *Envelope {
	stop := make(chan os.Signal, 2)
	req.Interrupt = stop
	defer context.AfterFunc(ctx, func() {
		stop <- os.Interrupt
		stop <- os.Kill
	})()
	p := *f.p
	p.Sole, p.Observe = false, nil
	return p.Exec(ctx, req)
}

// done takes over how one ended.
func (f *fanout) done(r FanoutRun, cancel context.CancelCauseFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out.Runs[r.Index] = r
	if r.Succeeded() && f.first < 0 {
		f.first = r.Index
		if f.req.KeepFirst {
			cancel(errNotNeeded)
		}
	}
	if f.req.Ran != nil {
		f.req.Ran(r)
	}
}

// compare puts the forks into groups that are equal.
func (f *fanout) compare(ctx context.Context) {
	for i := range f.out.Runs {
		r := &f.out.Runs[i]
		if r.made && (r.Status == StatusCompleted || r.Status == StatusTimedOut) {
			f.group(ctx, r)
		}
	}
}

func (f *fanout) group(ctx context.Context, r *FanoutRun) {
	for g := range f.out.Groups {
		group := &f.out.Groups[g]
		same, err := f.equal(ctx, r, &f.out.Runs[group.Indexes[0]])
		if err != nil {
			f.problem("compare %s: %v", r.Vault, err)
			return
		}
		if same {
			group.Indexes = append(group.Indexes, r.Index)
			if group.ExitCode != nil && (r.ExitCode == nil || *r.ExitCode != *group.ExitCode) {
				group.ExitCode = nil
			}
			r.Group = g
			return
		}
	}
	r.Group = len(f.out.Groups)
	f.out.Groups = append(f.out.Groups, FanoutGroup{Indexes: []int{r.Index}, ExitCode: r.ExitCode, Changed: r.Changed})
}

// equal reports whether nothing but times differs between two forks.
func (f *fanout) equal(ctx context.Context, a, b *FanoutRun) (bool, error) {
	if a.Changed != b.Changed {
		return false, nil
	}
	if a.Changed == 0 {
		return true, nil
	}
	diff, err := workspace.CallVault(ctx, f.p.Workspace, a.Vault, workspace.OpDiff, func(v string) workspace.DiffRequest {
		return workspace.DiffRequest{Vault: v, From: "vault:" + b.Vault, Limit: 1}
	}, workspace.Streams{})
	return diff.Total == 0, err
}

func (f *fanout) problem(format string, args ...any) {
	f.out.Problems = append(f.out.Problems, fmt.Sprintf(format, args...))
}

// choose keeps the fork that is wanted and drops the others. Where none succeeded that
// could be kept, and nobody gave up, all stay.
func (f *fanout) choose(ctx context.Context) {
	keep := -1
	switch {
	case f.out.Stopped || f.req.Drop:
	case f.req.KeepIndex != nil:
		keep = *f.req.KeepIndex
	case f.req.KeepFirst && f.first >= 0:
		keep = f.first
	default:
		return
	}
	if keep >= 0 && f.out.Runs[keep].made {
		f.out.Kept = &keep
	}
	for i := range f.out.Runs {
		r := &f.out.Runs[i]
		if i == keep || !r.made {
			continue
		}
		if err := f.drop(ctx, r.Vault); err != nil {
			f.problem("drop %s: %v", r.Vault, err)
			continue
		}
		r.made, r.Dropped = false, true
	}
}

// dropWait is how long the end of a command that was interrupted may take until its
// fork can be dropped.
const dropWait = 10 * time.Second

func (f *fanout) drop(ctx context.Context, vault string) error {
	for deadline := time.Now().Add(dropWait); ; time.Sleep(50 * time.Millisecond) {
		_, err := f.p.Workspace.DeleteVault(ctx, vault)
		kind := engine.KindOf(err)
		if kind != workspace.VaultBusy && kind != engine.Busy || time.Now().After(deadline) {
			return err
		}
	}
}
