package run

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// host is what all runs of this process share. It is package state because the
// thing it describes, this process's children and its being a subreaper, exists
// once per process.
var host = &hostState{runs: map[*kin]bool{}}

type hostState struct {
	// mu guards all below, and is held while a child is started and while
	// children are looked through and reaped: a child cannot be seen before it
	// is known whose it is, and what is seen dead stays so until it is reaped.
	mu        sync.Mutex
	runs      map[*kin]bool
	wasReaper bool
}

// enter registers a run that is about to start. From then on this process adopts
// orphans.
func (h *hostState) enter(k *kin) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.runs) == 0 {
		h.wasReaper = isSubreaper()
		if err := setSubreaper(true); err != nil {
			return err
		}
	}
	h.runs[k] = true
	return nil
}

// leave ends a run's registration. The last one restores what the process was,
// since an embedder that adopts orphans without knowing it collects zombies.
func (h *hostState) leave(k *kin) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.runs[k] {
		return nil
	}
	delete(h.runs, k)
	if len(h.runs) == 0 && !h.wasReaper {
		return setSubreaper(false)
	}
	return nil
}

// isLeader reports whether pid is the leader of a run. The caller holds mu.
func (h *hostState) isLeader(pid int) bool {
	for k := range h.runs {
		if k.leader == pid {
			return true
		}
	}
	return false
}

// shares reports whether another run has the same mark. The caller holds mu.
func (h *hostState) shares(k *kin) bool {
	for other := range h.runs {
		if other != k && other.marker == k.marker {
			return true
		}
	}
	return false
}

func setSubreaper(on bool) error {
	var v uintptr
	if on {
		v = 1
	}
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, v, 0, 0, 0))
}

func isSubreaper() bool {
	var v int32
	_, _, no := unix.Syscall(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&v)), 0)
	return no == 0 && v != 0
}
