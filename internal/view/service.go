package view

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/agentvfs/avfs/engine"
)

// Service lets operations reach a vault until it is shut, and gathers what went
// wrong where no program could be told.
type Service struct {
	vault  *engine.Vault
	gate   sync.RWMutex // held shared by every operation; guards ended
	ended  bool         // nothing may touch the vault any more
	faults faults
}

// NewService serves v.
func NewService(v *engine.Vault) *Service { return &Service{vault: v} }

// Enter begins an operation, which ends with Leave. It is false once the service
// has ended; then there is nothing to leave, and the answer is ENOTCONN.
func (s *Service) Enter() bool {
	s.gate.RLock()
	if s.ended {
		s.gate.RUnlock()
		return false
	}
	return true
}

// Leave ends an operation.
func (s *Service) Leave() { s.gate.RUnlock() }

// Fault notes what no program can be told; nil is nothing.
func (s *Service) Fault(err error) {
	if err != nil {
		s.faults.add(err)
	}
}

// Panicked notes that an operation panicked with r, which would be lost: FUSE
// libraries turn it into EIO at best. The mount goes on and reports it at the end.
// It is called where the panic is recovered.
func (s *Service) Panicked(op string, r any) {
	s.faults.add(fmt.Errorf("%s: panic: %v\n%s", op, r, debug.Stack()))
}

// Shut ends all service: later operations are refused, the files that drain
// returns, which the kernel has not given back, are closed, and everything is
// committed durably. Further calls only report again.
func (s *Service) Shut(drain func() []*engine.File) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.ended {
		return s.faults.err()
	}
	s.ended = true
	for _, file := range drain() {
		s.Fault(file.Close())
	}
	_, err := s.vault.Commit(context.Background(), true)
	s.Fault(err)
	return s.faults.err()
}

// maxFaults bounds what a mount that lives long remembers.
const maxFaults = 16

// faults gathers what went wrong and could not be told to any program.
type faults struct {
	mu    sync.Mutex // guards first
	first []error
}

func (f *faults) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.first) < maxFaults {
		f.first = append(f.first, err)
	}
}

func (f *faults) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.first...)
}
