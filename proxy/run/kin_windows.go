package run

import (
	"os"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// killedCode is the exit code that ended processes get, as after SIGKILL.
const killedCode = exitSignal + 9

// kin is the job object of one run. It is used by the goroutine of Run only.
type kin struct {
	tracking Tracking
	limits   []string
	caps     []string // limits that are in force: none here

	job    windows.Handle
	leader int
	proc   *os.Process
	listed map[int]bool
}

func newKin(*Spec) *kin {
	return &kin{tracking: TrackJob, listed: map[int]bool{}}
}

// mark returns env: a job needs no mark.
func (k *kin) mark(env []string) []string { return env }

// adopt puts the suspended leader into a job that dies with this process, and
// lets it run.
func (k *kin) adopt(proc *os.Process) error {
	var err error
	if k.job, err = windows.CreateJobObject(nil, nil); err != nil {
		return os.NewSyscallError("CreateJobObject", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(k.job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return os.NewSyscallError("SetInformationJobObject", err)
	}
	herr := proc.WithHandle(func(h uintptr) {
		err = os.NewSyscallError("AssignProcessToJobObject", windows.AssignProcessToJobObject(k.job, windows.Handle(h)))
	})
	if herr != nil {
		return herr
	}
	if err != nil {
		return err
	}
	k.proc, k.leader = proc, proc.Pid
	return resume(proc.Pid)
}

// watchLeader returns a channel that is closed when the process has ended.
func watchLeader(proc *os.Process) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// On failure the wait at the end of the run does the waiting.
		_ = proc.WithHandle(func(h uintptr) {
			_, _ = windows.WaitForSingleObject(windows.Handle(h), windows.INFINITE)
		})
	}()
	return ended
}

// pidList is JOBOBJECT_BASIC_PROCESS_ID_LIST with room for many processes.
type pidList struct {
	assigned, listed uint32
	pids             [4096]uintptr
}

// live lists the processes in the job without the leader.
func (k *kin) live() []int {
	list := new(pidList)
	err := windows.QueryInformationJobObject(k.job, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(list)), uint32(unsafe.Sizeof(*list)), nil)
	if err != nil && err != windows.ERROR_MORE_DATA {
		k.limit("the job cannot be listed: " + err.Error())
		return nil
	}
	var pids []int
	for _, pid := range list.pids[:min(int(list.listed), len(list.pids))] {
		if int(pid) != k.leader {
			pids = append(pids, int(pid))
		}
	}
	return pids
}

func (k *kin) limit(text string) {
	if !slices.Contains(k.limits, text) {
		k.limits = append(k.limits, text)
	}
}

func (k *kin) empty() bool { return len(k.live()) == 0 }

func (k *kin) look() {}

// signalGroup sends the one thing that Windows has like a signal, Ctrl-Break. It
// needs a console that both processes share.
func (k *kin) signalGroup(sig syscall.Signal) {
	if sig == syscall.SIGKILL {
		return // that is for the job to do
	}
	if err := windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(k.leader)); err != nil {
		k.limit("the command could not be asked to end: " + err.Error())
	}
}

func (k *kin) ask(list []Leftover) []Leftover {
	list = k.list(list)
	k.signalGroup(syscall.SIGTERM)
	return list
}

func (k *kin) kill(list []Leftover) []Leftover {
	list = k.list(list)
	if err := windows.TerminateJobObject(k.job, killedCode); err != nil {
		k.limit("the job could not be ended: " + err.Error())
	}
	return list
}

// list adds the living descendants to list, each once.
func (k *kin) list(list []Leftover) []Leftover {
	for _, pid := range k.live() {
		if !k.listed[pid] {
			k.listed[pid] = true
			list = append(list, Leftover{PID: pid, Command: commandOf(pid)})
		}
	}
	return list
}

func (k *kin) leaked(leaderEnded bool) []Leftover {
	var list []Leftover
	if !leaderEnded {
		list = append(list, Leftover{PID: k.leader, Command: commandOf(k.leader)})
	}
	for _, pid := range k.live() {
		list = append(list, Leftover{PID: pid, Command: commandOf(pid)})
	}
	return list
}

func (k *kin) wait() *os.ProcessState {
	state, err := k.proc.Wait()
	if err != nil {
		return nil
	}
	return state
}

// abandon leaves a leader that would not die to a goroutine.
func (k *kin) abandon() {
	go func() { _, _ = k.proc.Wait() }()
}

// close closes the job, which ends what is still in it.
func (k *kin) close() {
	if k.job == 0 {
		return
	}
	if err := windows.CloseHandle(k.job); err != nil {
		k.limit("the job was not closed: " + err.Error())
	}
	k.job = 0
}

func commandOf(pid int) string {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	buf := make([]uint16, 1024)
	n := uint32(len(buf))
	if windows.QueryFullProcessImageName(h, 0, &buf[0], &n) != nil {
		return ""
	}
	return windows.UTF16ToString(buf[:n])
}

func maxRSS(*os.ProcessState) int64 { return 0 }

// pending returns 0: a pipe without deadlines is closed by a cut.
func pending(*os.File) int { return 0 }

func widen(*os.File, int) {}
