package proxy

import (
	"errors"
	"os"
	"slices"
	"syscall"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// checkService rejects a service that makes no sense.
func (req *Request) checkService() error {
	if req.Service == "" {
		return nil
	}
	if err := workspace.CheckServiceName(req.Service); err != nil {
		return err
	}
	var why string
	switch {
	case req.Session != "":
		why = "a service leaves nothing to a session"
	case req.Stdin != nil:
		why = "a service has no input"
	default:
		return nil
	}
	return &engine.Error{Kind: engine.Invalid, Op: "exec", Err: errors.New(why)}
}

// interrupts is what interrupts the command: the caller's signals, and for a service
// that the owner is asked to stop SIGTERM. The returned function has to be called when
// the command has ended; it reports whether it was asked to.
func (req *Request) interrupts(hold *workspace.Exec) (<-chan os.Signal, func() bool) {
	if req.Service == "" {
		return req.Interrupt, func() bool { return false }
	}
	signals := make(chan os.Signal, 1)
	quit, over := make(chan struct{}), make(chan struct{})
	stopped := false
	go func() { // ends when the command has ended
		defer close(over)
		stop, from := hold.Stop(), req.Interrupt
		for {
			var sig os.Signal
			select {
			case <-quit:
				return
			case <-stop:
				stop, stopped, sig = nil, true, syscall.SIGTERM
			case s, ok := <-from:
				if !ok {
					from = nil
					continue
				}
				sig = s
			}
			select {
			case signals <- sig:
			case <-quit:
				return
			}
		}
	}()
	return signals, func() bool {
		close(quit)
		<-over
		return stopped
	}
}

// running tells of a service that has started.
func (p *Proxy) running(env *Envelope, req *Request, pid int) {
	if req.Service == "" {
		return
	}
	env.Service = &ServiceDoc{Name: req.Service, PID: pid}
	if p.Running == nil {
		return
	}
	now := *env
	now.Status = StatusRunning
	now.Notes, now.LimitsHit = slices.Clone(env.Notes), slices.Clone(env.LimitsHit)
	now.RootAfter = env.RootBefore
	now.Isolation.Applied, now.Isolation.NotApplied = slices.Clone(env.Isolation.Applied), slices.Clone(env.Isolation.NotApplied)
	p.Running(&now)
}

// beside notes which services may change the vault while the command runs.
func (e *Envelope) beside(services []string, req *Request) {
	if req.ReadOnly || req.Service != "" {
		return
	}
	for _, name := range services {
		e.Notes = append(e.Notes, "service "+name+" runs in the vault: what it writes meanwhile is among the changes")
	}
}
