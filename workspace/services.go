package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// Service is a command that was started to keep running: an exec whose caller stays in
// the background. It holds the mount of its vault and not the turn, so that other
// commands run beside it. What it writes is in the event of a command that runs at that
// time, or in one of the mount; its own event marks its end. A service ends with its owner, its
// caller or its vault. The newest of each name is kept in the store.
type Service struct {
	Name      string       `json:"name"`
	Vault     string       `json:"vault"`
	State     ServiceState `json:"state"`
	ExecID    string       `json:"exec_id"`
	Command   []string     `json:"command"`
	PID       int          `json:"pid"` // of its first process, running or not; 0: it has not started
	Process   *ExecCommand `json:"process,omitempty"`
	StartedAt time.Time    `json:"started_at"`
	EndedAt   *time.Time   `json:"ended_at,omitempty"`
	Status    string       `json:"status,omitempty"` // how it ended, as the audit says it
	ExitCode  *int         `json:"exit_code,omitempty"`
}

// ServiceState says what has become of a service.
type ServiceState string

// The states of a service.
const (
	ServiceRunning  ServiceState = "running"
	ServiceStopping ServiceState = "stopping"
	ServiceEnded    ServiceState = "ended" // by itself, or because it was stopped
	ServiceLost     ServiceState = "lost"  // the owner of the store died, and the service with it
)

// ServiceNotFound is the kind of the error of a service that does not exist, or runs no
// more.
const ServiceNotFound engine.Kind = "ServiceNotFound"

const noteService = "service"

// stopLimit is how long the caller of a service may take to end it. Then the owner
// does.
const stopLimit = 10 * time.Second

// service is one that was asked for or runs, at the owner.
type service struct {
	exec, vault string
	over        chan struct{} // closed when nothing of it is left

	mu       sync.Mutex // guards what follows, and is held while the caller is told
	doc      Service
	begun    bool // it does not wait for its turn any more
	stopping bool
	caller   *Streams // nil until it can be told
}

// execAsk is a line that the owner sends to the caller of an exec while its command
// runs.
type execAsk struct {
	Stop bool `json:"stop,omitempty"`
}

// CheckServiceName rejects what is no name of a service.
func CheckServiceName(name string) error {
	if err := engine.CheckVaultName(name); err != nil {
		return &engine.Error{Kind: engine.InvalidName, Op: "service name", Path: fmt.Sprintf("%q", name), Err: errors.Unwrap(err)}
	}
	return nil
}

// claimService takes the name of a service until it is over. For a command that is none
// there is nothing to take.
func (o *Owner) claimService(v *engine.Vault, req *ExecRequest) (*service, func(), error) {
	if req.Service == "" {
		return nil, func() {}, nil
	}
	if err := CheckServiceName(req.Service); err != nil {
		return nil, nil, err
	}
	key := sessionNote(v, req.Service)
	svc := &service{exec: req.ID, vault: req.Vault, over: make(chan struct{}), doc: Service{
		Name: req.Service, Vault: req.Vault, State: ServiceRunning, ExecID: req.ID, Command: secrets.Argv(req.Command), StartedAt: time.Now().UTC(),
	}}
	o.mu.Lock()
	defer o.mu.Unlock()
	if other := o.services[key]; other != nil {
		return nil, nil, &engine.Error{Kind: engine.Exists, Op: "start service", Path: req.Service,
			Err: fmt.Errorf("a service of this name runs in the vault, as exec %s", other.exec)}
	}
	o.services[key] = svc
	return svc, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.services, key)
		close(svc.over)
	}, nil
}

// begin notes that the service has had its turn.
func (s *service) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
}

// runs says where the caller of the service can be told to end it. Who asked for that
// before is heard now. A nil service does nothing.
func (s *service) runs(caller Streams) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caller = &caller
	if s.stopping {
		s.tellStop()
	}
}

// tellStop asks the caller to end the service. One that is gone ends it by that. The
// caller of tellStop holds mu.
func (s *service) tellStop() {
	line, err := json.Marshal(execAsk{Stop: true})
	if err == nil && s.caller != nil {
		_, _ = s.caller.out().Write(append(line, '\n'))
	}
}

// stop asks the service to end, once.
func (s *service) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.stopping = true
		s.tellStop()
	}
}

// now is the service as it is.
func (s *service) now() Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	doc := s.doc
	if s.stopping {
		doc.State = ServiceStopping
	}
	return doc
}

// waiting reports whether the service has not had its turn.
func (s *service) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.begun
}

// serviceStarted keeps what is known of a service whose command has started. Where that
// cannot be written, the service runs all the same.
func (o *Owner) serviceStarted(ctx context.Context, s *service, c ExecCommand) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.doc.PID, s.doc.Process = c.PID, &c
	doc := s.doc
	s.mu.Unlock()
	_ = o.keepService(ctx, &doc)
}

// serviceEnded keeps how a service has ended.
func (o *Owner) serviceEnded(ctx context.Context, s *service, outcome *ExecOutcome) error {
	if s == nil {
		return nil
	}
	now := time.Now().UTC()
	s.mu.Lock()
	s.doc.State, s.doc.EndedAt, s.doc.Status, s.doc.ExitCode, s.doc.Process = ServiceEnded, &now, outcome.Status, outcome.ExitCode, nil
	doc := s.doc
	s.mu.Unlock()
	return o.keepService(ctx, &doc)
}

func (o *Owner) keepService(ctx context.Context, doc *Service) error {
	v, err := o.vault(ctx, doc.Vault)
	if err != nil {
		return err
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = o.store.ChangeNote(ctx, noteService, sessionNote(v, doc.Name), nil, func(*engine.Note) (*engine.Note, error) {
		return &engine.Note{Vault: doc.Vault, VaultID: v.Info().ID, Body: body}, nil
	})
	return err
}

// servicesBeside names the services that run in the vault of an exec.
func (o *Owner) servicesBeside(req *ExecRequest) []string {
	var names []string
	for _, s := range o.servicesOf(req.Vault) {
		if s.exec != req.ID {
			names = append(names, s.doc.Name)
		}
	}
	slices.Sort(names)
	return names
}

// servicesOf lists the services that run in a vault.
func (o *Owner) servicesOf(vault string) []*service {
	o.mu.Lock()
	var list []*service
	for _, s := range o.services {
		if s.vault == vault {
			list = append(list, s)
		}
	}
	o.mu.Unlock()
	return slices.DeleteFunc(list, (*service).waiting)
}

// ServiceRequest names a service of a vault.
type ServiceRequest struct {
	Vault string `json:"vault"`
	Name  string `json:"name"`
}

// OpServices lists the services of a vault by name: those that run, and the last of each
// other name. Those whose note is damaged are not among them; a check names it.
var OpServices = Op[InVault, []Service]{Name: "service.list",
	Run: func(ctx context.Context, o *Owner, req InVault, _ Streams) ([]Service, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return nil, err
		}
		notes, _, err := o.store.Notes(ctx, noteService)
		if err != nil {
			return nil, err
		}
		list := []Service{}
		for i := range notes {
			if !strings.HasPrefix(notes[i].Name, sessionNote(v, "")) {
				continue
			}
			s, err := o.serviceOf(&notes[i])
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
		return list, nil
	}}

// serviceOf is the service of a note.
func (o *Owner) serviceOf(n *engine.Note) (Service, error) {
	var doc Service
	if err := json.Unmarshal(n.Body, &doc); err != nil {
		return doc, &engine.Error{Kind: engine.Corrupt, Op: "read service", Path: n.Name, Err: err}
	}
	o.mu.Lock()
	s := o.services[n.Name]
	o.mu.Unlock()
	switch {
	case s != nil && s.exec == doc.ExecID:
		return s.now(), nil
	case doc.EndedAt == nil:
		doc.State, doc.Status, doc.Process = ServiceLost, ownerLost, nil
	}
	return doc, nil
}

// OpService gives a service.
var OpService = Op[ServiceRequest, Service]{Name: "service.show",
	Run: func(ctx context.Context, o *Owner, req ServiceRequest, _ Streams) (Service, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return Service{}, err
		}
		n, err := o.store.Note(ctx, noteService, sessionNote(v, req.Name))
		if err == nil && n == nil {
			err = noService("show service", req.Name, "no such service")
		}
		if err != nil {
			return Service{}, err
		}
		return o.serviceOf(n)
	}}

func noService(op, name, why string) error {
	return &engine.Error{Kind: ServiceNotFound, Op: op, Path: name, Err: errors.New(why)}
}

// OpServiceStop ends a service and returns when nothing of it is left. It goes on if its
// caller goes away.
var OpServiceStop = Op[ServiceRequest, Service]{Name: "service.stop",
	Run: func(ctx context.Context, o *Owner, req ServiceRequest, st Streams) (Service, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return Service{}, err
		}
		o.mu.Lock()
		s := o.services[sessionNote(v, req.Name)]
		o.mu.Unlock()
		if s == nil {
			return Service{}, noService("stop service", req.Name, "no such service runs")
		}
		if err := o.stopService(ctx, s, st.Exec); err != nil {
			return Service{}, err
		}
		doc := s.now()
		doc.State = ServiceEnded
		return doc, nil
	}}

// stopServices ends every service of a vault.
func (o *Owner) stopServices(ctx context.Context, vault, caller string) error {
	for _, s := range o.servicesOf(vault) {
		if err := o.stopService(ctx, s, caller); err != nil {
			return err
		}
	}
	return nil
}

// stopService ends a service: its caller does, or the owner if that takes too long. A
// service cannot wait for its own end.
func (o *Owner) stopService(ctx context.Context, s *service, caller string) error {
	if caller == s.exec {
		return &engine.Error{Kind: VaultBusy, Op: "stop service", Path: s.now().Name, Err: errors.New("the service itself asks")}
	}
	s.stop()
	if err := s.await(ctx); err == nil || ctx.Err() != nil {
		return err
	}
	if err := o.w.endCommand(ExecLeft{ID: s.exec, Command: s.now().Process}); err != nil {
		return err
	}
	return s.await(ctx)
}

// await returns when nothing is left of the service. It is Busy if that takes too long.
func (s *service) await(ctx context.Context) error {
	late := time.NewTimer(stopLimit)
	defer late.Stop()
	select {
	case <-s.over:
		return nil
	case <-late.C:
		return &engine.Error{Kind: engine.Busy, Op: "stop service", Path: s.now().Name, Err: fmt.Errorf("it has not ended within %v", stopLimit)}
	case <-ctx.Done():
		return ctx.Err()
	}
}

func serviceOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpServices)
	add(all, OpService)
	add(all, OpServiceStop)
	return all
}
