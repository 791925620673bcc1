package run

import (
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/proxy/run/internal/hop"
)

// kin is the leader of one run and its descendants. It is used by the goroutine
// of Run; what other runs may look at is guarded by host.mu.
type kin struct {
	tracking Tracking
	limits   []string

	marker string // the IDVar entry of the environment; guarded by host.mu
	leader int    // 0 before the start and after the leader was reaped; guarded by host.mu
	proc   *os.Process
	group  *cgroup // nil without

	caps     []string // limits that are in force, and how
	uncapped Limits   // those that the cgroup does not hold
	wanted   Limits   // all
	sole     bool
	brief    bool // see Spec.ShortNames

	orphaned bool // orphans go to another process than this one
	dying    bool // the last look saw processes that will soon have to be reaped

	before map[int]uint64 // children that this process had before, pid to start; only for sole
	known  map[int]uint64 // descendants seen so far, pid to start
	others map[int]uint64 // adopted processes without this run's mark
	listed map[int]bool   // those reported as killed
}

func newKin(s *Spec) *kin {
	k := &kin{tracking: TrackSubreaper, sole: s.Sole, brief: s.ShortNames, others: map[int]uint64{}, listed: map[int]bool{}}
	if id, ok := getenv(s.Env, IDVar); ok {
		k.marker = IDVar + "=" + id
	} else {
		k.marker = IDVar + "=run-" + rand.Text()
	}
	if s.NoCgroup {
		return k
	}
	if g, err := newCgroup(); err == nil {
		k.group, k.tracking = g, TrackCgroup
	}
	return k
}

// fork starts the leader and registers it.
func (k *kin) fork(attr *os.ProcAttr, path string, argv []string) (*os.Process, error) {
	if err := host.enter(k); err != nil {
		k.orphaned = true
		k.limit("orphans cannot be adopted: " + err.Error())
	}
	host.mu.Lock()
	defer host.mu.Unlock()
	if host.shares(k) {
		k.marker = ""
	}
	if k.sole {
		k.before = childrenNow()
		// The kernel goes by the thread that forks. Those of a Go program stay, unless
		// mountpoint.OnOwnThread takes them, but an embedder's may end.
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	if k.group != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, k.group.fd()
	}
	traced := k.capsLeader()
	if traced { // by this thread, which has to let it go too
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		attr.Sys.Ptrace = true
	}
	proc, err := startProcess(path, argv, attr)
	if errors.Is(err, syscall.EPERM) && traced {
		traced, attr.Sys.Ptrace = false, false
		if proc, err = startProcess(path, argv, attr); err == nil {
			k.limit("the command cannot be held while its limits are set: what it starts at once may be without")
		}
	}
	if err != nil && k.group != nil {
		// The kernel may refuse the cgroup and not the program; the errors of
		// the two look the same.
		attr.Sys.UseCgroupFD = false
		if proc, err = startProcess(path, argv, attr); err == nil {
			k.dropGroup("the cgroup was refused")
		}
	}
	if err != nil {
		return nil, err
	}
	k.proc, k.leader = proc, proc.Pid
	if traced {
		awaitStop(proc.Pid)
	}
	k.capLeader(proc.Pid, path)
	if traced {
		// Of a process that has ended meanwhile there is nothing to let go.
		_ = unix.PtraceDetach(proc.Pid)
	}
	return proc, nil
}

// awaitStop waits until a traced child has executed its program, before that has done
// anything.
func awaitStop(pid int) {
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &status, unix.WALL, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func childrenNow() map[int]uint64 {
	m := map[int]uint64{}
	all, err := processes()
	if err != nil {
		return m
	}
	for _, p := range all {
		if p.ppid == os.Getpid() {
			m[p.pid] = p.start
		}
	}
	return m
}

func (k *kin) dropGroup(why string) {
	k.tracking = TrackSubreaper
	k.caps, k.uncapped = nil, k.wanted // until here only the cgroup held any
	k.limits = append(k.limits, why)
	if err := k.group.remove(); err != nil {
		k.limits = append(k.limits, "cgroup not removed: "+err.Error())
	}
	k.group = nil
}

// watchLeader returns a channel that is closed when the process has ended. It
// leaves the process a zombie, so that its number stays taken. The goroutine ends
// with the process.
func watchLeader(proc *os.Process) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			err := unix.Waitid(unix.P_PID, proc.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return ended
}

// empty reports whether no descendant is alive beside the leader, which must have
// ended: then every descendant is below one that this process has adopted.
func (k *kin) empty() bool {
	pids, err := ownChildren()
	if err != nil || k.orphaned {
		return len(k.live()) == 0
	}
	host.mu.Lock()
	own := ownSession()
	others := slices.DeleteFunc(pids, func(pid int) bool {
		if host.isLeader(pid) {
			return true
		}
		p, err := readProcess(pid)
		return err != nil || p.sid == own
	})
	host.mu.Unlock()
	return len(others) == 0 || len(k.live()) == 0 && !k.dying
}

// live lists the living descendants without the leader, and reaps dead ones.
func (k *kin) live() []process {
	all, err := processes()
	if err != nil {
		k.limit("the process table cannot be read: " + err.Error())
		return nil
	}
	// The lock comes after the reading: whatever child the reading saw is
	// registered by now if it is the leader of a run.
	host.mu.Lock()
	defer host.mu.Unlock()
	mine := k.claim(all)
	k.known = map[int]uint64{}
	var list []process
	for _, p := range mine {
		k.known[p.pid] = p.start
		if !p.dead() && p.pid != k.leader {
			list = append(list, p)
		}
	}
	k.dying = k.dying || k.anyToAdopt(mine)
	k.reap(all, mine)
	return list
}

// anyToAdopt reports whether a dead process was seen below a parent that has ended
// as well, and will be this process's to reap in a moment.
func (k *kin) anyToAdopt(mine []process) bool {
	for _, p := range mine {
		if p.dead() && p.pid != k.leader && slices.ContainsFunc(mine, func(q process) bool { return q.pid == p.ppid }) {
			return true
		}
	}
	return false
}

// claim finds this run's processes in the table, the leader included. A process
// that is not the leader's is one with a parent, a session or a past that is, and
// the kernel lets no process enter another's session. The caller holds host.mu.
func (k *kin) claim(all []process) []process {
	mine := map[int]process{}
	sids := map[int]bool{}
	add := func(p process) {
		mine[p.pid] = p
		sids[p.sid] = true
	}
	strange := k.seed(all, add)
	for _, p := range strange {
		if start, looked := k.others[p.pid]; looked && start == p.start {
			continue
		}
		if hasEnv(p.pid, k.marker) {
			add(p)
		} else {
			k.others[p.pid] = p.start
		}
	}
	closeOver(all, mine, sids, add)
	strange = slices.DeleteFunc(strange, func(p process) bool { return mine[p.pid].pid == p.pid })
	k.dying = k.anyDying(strange)
	for _, p := range k.strays(strange) {
		add(p)
	}
	closeOver(all, mine, sids, add)
	return slices.Collect(maps.Values(mine))
}

// seed adds what is this run's by itself, and returns the children of this
// process that nothing is known about.
func (k *kin) seed(all []process, add func(process)) (strange []process) {
	self, own := os.Getpid(), ownSession()
	members := k.group.members()
	for _, p := range all {
		start, seen := k.known[p.pid]
		switch {
		case p.pid == self:
		case p.pid == k.leader, p.sid == k.leader, members[p.pid], seen && start == p.start:
			add(p)
		case p.ppid == self && p.sid != own && !host.isLeader(p.pid) && !p.dead():
			strange = append(strange, p)
		}
	}
	return strange
}

// anyDying reports whether a process of unknown origin is ending that nobody but
// reap will wait for. The caller holds host.mu.
func (k *kin) anyDying(strange []process) bool {
	if !slices.ContainsFunc(strange, process.ending) {
		return false
	}
	held, err := ownPidfds()
	return err == nil && held[k.leader] && slices.ContainsFunc(strange, func(p process) bool {
		return p.ending() && !held[p.pid]
	})
}

// strays picks, from children of unknown origin, those that can only have been
// adopted from this run. The caller holds host.mu.
func (k *kin) strays(strange []process) []process {
	if !k.sole || len(host.runs) != 1 || len(strange) == 0 {
		return nil
	}
	held, err := ownPidfds()
	if err != nil || !held[k.leader] {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(strange), func(p process) bool {
		start, old := k.before[p.pid]
		return held[p.pid] || old && start == p.start
	})
}

// reap reaps dead children that nobody else will wait for: this run's, and
// adopted ones of unknown origin. A child that package os will wait for has a
// pidfd here, and one that this process started without package os is in its own
// session. The caller holds host.mu, so a dead child stays dead meanwhile.
func (k *kin) reap(all, mine []process) {
	own := ownSession()
	var held map[int]bool
	for _, p := range all {
		if p.ppid != os.Getpid() || !p.dead() || p.sid == own || host.isLeader(p.pid) {
			continue
		}
		if !slices.ContainsFunc(mine, func(m process) bool { return m.pid == p.pid }) {
			if held == nil {
				var err error
				if held, err = ownPidfds(); err != nil || !held[k.leader] {
					return // no pidfds on this system
				}
			}
			if held[p.pid] {
				continue
			}
		}
		reapOne(p)
	}
}

func reapOne(p process) {
	now, err := readProcess(p.pid)
	if err != nil || now.start != p.start || !now.dead() {
		return
	}
	// ECHILD, the only error possible, means that it is reaped.
	_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
}

// look is called now and then while the leader runs. It remembers descendants, so
// that they are known when they have lost their parent, and reaps adopted ones.
func (k *kin) look() {
	pids, err := ownChildren()
	if err != nil {
		return // look only helps; the end of the run does without
	}
	if len(pids) > 1 {
		k.live()
		return
	}
	if k.group != nil {
		return
	}
	known := map[int]uint64{}
	for queue := []int{k.leader}; len(queue) > 0; queue = queue[1:] {
		p, err := readProcess(queue[0])
		if err != nil {
			continue
		}
		if _, again := known[p.pid]; !again {
			known[p.pid] = p.start
			queue = append(queue, childrenOf(p.pid)...)
		}
	}
	for pid, start := range k.known {
		known[pid] = start
	}
	k.known = known
}

// killGroup ends the cgroup at once, with what was forked since the last look.
func (k *kin) killGroup() {
	if k.group == nil {
		return
	}
	if err := k.group.kill(); err != nil && !errors.Is(err, os.ErrNotExist) {
		k.limit("cgroup not killed: " + err.Error())
	}
}

// signalOne signals exactly the process that was seen: the pidfd pins its number
// while the start time is compared. What cannot be signalled is found alive later.
func signalOne(p process, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			_ = unix.Kill(p.pid, sig)
		}
		return
	}
	defer unix.Close(fd)
	if now, err := readProcess(p.pid); err == nil && now.start == p.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// wait reaps the leader, which has ended. It returns nil if somebody else did.
func (k *kin) wait() *os.ProcessState {
	host.mu.Lock()
	defer host.mu.Unlock()
	k.leader = 0
	state, err := k.proc.Wait()
	if err != nil {
		return nil
	}
	return state
}

// abandon leaves a leader that SIGKILL does not end, such as one in a hung file
// system, to a goroutine that reaps it whenever it ends.
func (k *kin) abandon() {
	go func() {
		_, _ = k.proc.Wait()
		if k.group != nil {
			// Else the next process that uses cgroups sweeps it.
			_ = k.group.removeTree()
		}
	}()
}

// close ends the tracking.
func (k *kin) close() {
	if k.group != nil {
		if err := k.group.remove(); err != nil {
			k.limit("cgroup not removed: " + err.Error())
		}
	}
	if err := host.leave(k); err != nil {
		k.limit("this process still adopts orphans: " + err.Error())
	}
}

func ownSession() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return 0
	}
	return sid
}

func maxRSS(state *os.ProcessState) int64 {
	if ru, ok := state.SysUsage().(*syscall.Rusage); ok {
		return ru.Maxrss << 10
	}
	return 0
}

// needsHop reports whether the child's directory or program is in a FUSE file
// system, which this process may serve; see package hop.
func needsHop(dir, path string) bool {
	return (dir != "" && onFUSE(dir) || onFUSE(under(dir, path))) && hop.Able()
}

func onFUSE(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.FUSE_SUPER_MAGIC
}
