package run

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kin is the leader of one run and its descendants. It is used by the goroutine
// of Run only.
type kin struct {
	tracking Tracking
	limits   []string
	caps     []string // limits that are in force: none here

	marker string // the IDVar entry of the environment
	leader int
	since  uint64 // when the leader started
	proc   *os.Process

	known  map[int]uint64 // descendants seen so far, pid to start
	listed map[int]bool   // those reported as killed
}

func newKin(s *Spec) *kin {
	k := &kin{tracking: TrackTree, listed: map[int]bool{}}
	if id, ok := getenv(s.Env, IDVar); ok {
		k.marker = IDVar + "=" + id
	} else {
		k.marker = IDVar + "=run-" + rand.Text()
	}
	k.limit("a process that left the session and lost its parent between two looks is not found")
	return k
}

// fork starts the leader.
func (k *kin) fork(attr *os.ProcAttr, path string, argv []string) (*os.Process, error) {
	forks.Lock()
	defer forks.Unlock()
	proc, err := startProcess(path, argv, attr)
	if err != nil {
		return nil, err
	}
	k.proc, k.leader = proc, proc.Pid
	if p, err := readProcess(k.leader); err == nil {
		k.since = p.start
	}
	return proc, nil
}

// forks serialises forks, because signal dispositions belong to the process.
var forks sync.Mutex

// needsHop reports false: the child is a copy of this process here, which goes on
// meanwhile.
func needsHop(_, _ string) bool { return false }

// withDefaultSignals calls fork so that the child ignores no signal; see the Linux
// form. There is no access to the thread's mask here, so a signal that was blocked
// when this process started stays blocked.
func withDefaultSignals(fork func() error) error {
	var ignored []os.Signal
	for n := 1; n < 32; n++ {
		if s := syscall.Signal(n); signal.Ignored(s) {
			ignored = append(ignored, s)
		}
	}
	if len(ignored) > 0 {
		signal.Notify(make(chan os.Signal, 1), ignored...)
		defer signal.Ignore(ignored...)
	}
	return fork()
}

// watchLeader returns a channel that is closed when the process has ended. It
// leaves the process a zombie, so that its number stays taken.
func watchLeader(proc *os.Process) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		waitExit(proc.Pid)
		// The notice comes shortly before the process is a zombie, and there
		// may be none at all without descriptors.
		for {
			if p, err := readProcess(proc.Pid); err != nil || p.dead() {
				return
			}
			time.Sleep(pollMax)
		}
	}()
	return ended
}

// waitExit waits for the kernel's notice of the process's end. It returns early if
// there cannot be one.
func waitExit(pid int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(kq)
	ev := make([]unix.Kevent_t, 1)
	unix.SetKevent(&ev[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	ev[0].Fflags = unix.NOTE_EXIT
	for {
		if _, err := unix.Kevent(kq, ev, ev, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (k *kin) empty() bool { return len(k.live()) == 0 }

// look remembers descendants, so that they are known when they have lost their
// parent.
func (k *kin) look() { k.live() }

// live lists the living descendants without the leader.
func (k *kin) live() []process {
	all, err := processes()
	if err != nil {
		k.limit("the process table cannot be read: " + err.Error())
		return nil
	}
	mine := map[int]process{}
	sids := map[int]bool{}
	add := func(p process) {
		mine[p.pid] = p
		sids[p.sid] = true
	}
	for _, p := range all {
		start, seen := k.known[p.pid]
		if p.pid == k.leader || p.sid == k.leader || seen && start == p.start || k.marked(p) {
			add(p)
		}
	}
	closeOver(all, mine, sids, add)
	k.known = map[int]uint64{}
	var list []process
	for _, p := range mine {
		k.known[p.pid] = p.start
		if !p.dead() && p.pid != k.leader {
			list = append(list, p)
		}
	}
	return list
}

// marked reports whether an orphan has this run's entry in its environment.
func (k *kin) marked(p process) bool {
	if p.ppid != 1 || p.start < k.since {
		return false
	}
	args, err := unix.SysctlRaw("kern.procargs2", p.pid)
	return err == nil && bytes.Contains(args, []byte("\x00"+k.marker+"\x00"))
}

func (k *kin) killGroup() {}

// signalOne signals the process if it is still the one that was seen.
func signalOne(p process, sig syscall.Signal) {
	if now, err := readProcess(p.pid); err == nil && now.start == p.start {
		_ = unix.Kill(p.pid, sig)
	}
}

func (k *kin) wait() *os.ProcessState {
	state, err := k.proc.Wait()
	if err != nil {
		return nil
	}
	return state
}

// abandon leaves a leader that SIGKILL does not end to a goroutine that reaps it
// whenever it ends.
func (k *kin) abandon() {
	go func() { _, _ = k.proc.Wait() }()
}

func (k *kin) close() {}

const darwinStopped, darwinZombie = 4, 5 // SSTOP and SZOMB of sys/proc.h

func fromKinfo(kp *unix.KinfoProc) process {
	p := process{
		pid:   int(kp.Proc.P_pid),
		ppid:  int(kp.Eproc.Ppid),
		pgid:  int(kp.Eproc.Pgid),
		state: 'R',
		start: uint64(kp.Proc.P_starttime.Sec)*1e6 + uint64(kp.Proc.P_starttime.Usec),
	}
	switch kp.Proc.P_stat {
	case darwinStopped:
		p.state = 'T'
	case darwinZombie:
		p.state = 'Z'
	}
	// The table has no session numbers. On failure the process has ended.
	p.sid, _ = unix.Getsid(p.pid)
	return p
}

func processes() ([]process, error) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(table))
	for i := range table {
		all = append(all, fromKinfo(&table[i]))
	}
	// Process 0 is the parent of nothing of ours and would only confuse.
	return slices.DeleteFunc(all, func(p process) bool { return p.pid == 0 }), nil
}

func readProcess(pid int) (process, error) {
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return process{}, err
	}
	return fromKinfo(kp), nil
}

// describe is what a Leftover tells of a process: the short name, in any case.
func (k *kin) describe(pid int) string { return commandOf(pid) }

func commandOf(pid int) string {
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	name, _, _ := bytes.Cut(kp.Proc.P_comm[:], []byte{0})
	return strings.ToValidUTF8(string(name), "?")
}

func maxRSS(state *os.ProcessState) int64 {
	if ru, ok := state.SysUsage().(*syscall.Rusage); ok {
		return ru.Maxrss
	}
	return 0
}

// pending returns how many bytes wait in the pipe.
func pending(f *os.File) int {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	if raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), fionread) }) != nil || err != nil {
		return 0
	}
	return n
}

// fionread is FIONREAD of sys/filio.h, which x/sys lacks for this system.
const fionread = 0x4004667f

// widen does nothing: the kernel enlarges pipes by itself.
func widen(*os.File, int) {}
