package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/proxy/run/internal/hop"
)

// cpuPeriod is over which the kernel shares out processor time, in microseconds.
const cpuPeriod = 100_000

// capGroup puts the limits on the cgroup of the run, before anything is in it, and
// keeps those that the kernel did not take for capLeader.
func (k *kin) capGroup(l Limits) {
	k.uncapped, k.wanted = l, l
	if k.group == nil || l == (Limits{}) {
		return
	}
	// The kernel lets children have limits only if their parent says so, which it
	// refuses to one with processes that is not the topmost.
	control := filepath.Join(filepath.Dir(k.group.path), "cgroup.subtree_control")
	for _, c := range []string{"+memory", "+pids", "+cpu"} {
		_ = os.WriteFile(control, []byte(c), 0) // whether it worked shows below
	}
	if l.MemoryBytes > 0 && k.group.set("memory.max", strconv.FormatInt(l.MemoryBytes, 10)) {
		_ = k.group.set("memory.swap.max", "0") // there may be none
		k.uncapped.MemoryBytes = 0
		k.capped(LimitMemory, "cgroup")
	}
	if l.Processes > 0 && k.group.set("pids.max", strconv.Itoa(l.Processes)) {
		k.uncapped.Processes = 0
		k.capped(LimitProcesses, "cgroup")
	}
	if l.CPUs > 0 && k.group.set("cpu.max", fmt.Sprintf("%d %d", int64(l.CPUs*cpuPeriod), cpuPeriod)) {
		k.uncapped.CPUs = 0
		k.capped(LimitCPU, "cgroup")
	}
}

// set writes a file of the cgroup and reports whether the kernel took it.
func (g *cgroup) set(file, value string) bool {
	f, err := os.OpenFile(filepath.Join(g.path, file), os.O_WRONLY, 0) // never to be made
	if err != nil {
		return false
	}
	_, err = f.WriteString(value)
	closeAll(f)
	return err == nil
}

func (k *kin) capped(limit, how string) { k.caps = append(k.caps, limit+" limit by "+how) }

// capsLeader reports whether capLeader may have anything to do: also where the kernel then
// refuses the cgroup.
func (k *kin) capsLeader() bool {
	l := k.wanted
	return l.FileBytes > 0 || l.MemoryBytes > 0 || l.Processes > 0
}

// capLeader puts limits of the process, which its descendants inherit, on the leader
// that has just been started and has done nothing yet: those that the cgroup does not hold.
// They count for each process by itself.
func (k *kin) capLeader(pid int, path string) {
	l := k.uncapped
	for _, c := range []struct {
		name     string
		resource int
		value    uint64
	}{{LimitFileSize, unix.RLIMIT_FSIZE, uint64(l.FileBytes)}, {LimitMemory, unix.RLIMIT_AS, uint64(l.MemoryBytes)}, {LimitProcesses, unix.RLIMIT_NPROC, uint64(l.Processes)}} {
		switch {
		case c.value == 0:
			continue
		case c.name == LimitMemory && path == hop.Self:
			k.limit("the memory limit is not applied: the command starts by way of another program")
			continue
		case c.name == LimitProcesses && os.Geteuid() == 0:
			k.limit("the processes limit is not applied: there is no cgroup for it, and no other for root")
			continue
		}
		if err := unix.Prlimit(pid, c.resource, &unix.Rlimit{Cur: c.value, Max: c.value}, nil); err != nil {
			k.limit("the " + c.name + " limit is not applied: " + err.Error())
			continue
		}
		k.capped(c.name, byProcess)
		if c.name == LimitMemory {
			k.limit("of the memory limit of each process only a breach by a command that failed with most of it in memory is seen")
		}
	}
	if l.CPUs > 0 {
		k.limit("the cpu limit is not applied: there is no cgroup for it")
	}
}

// memoryFailed reports whether a command that failed had so much in memory that it most
// likely ran into a limit of each process, which the kernel tells nobody of. One that
// asked for too much at once, or had it mapped and not in memory, is not seen; neither is
// what had in memory no more than this process, which a child counts as its own.
func (t *task) memoryFailed() bool {
	l := t.kin.uncapped.MemoryBytes
	if l == 0 || t.res.Status != Completed || t.res.LeaderCode <= 0 || !slices.Contains(t.kin.caps, LimitMemory+" limit by "+byProcess) {
		return false
	}
	var own unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &own) != nil || t.res.MaxRSS <= own.Maxrss<<10 {
		return false
	}
	return t.res.MaxRSS >= l/100*nearLimit
}

// nearLimit is how much of a limit of memory in use, in percent, is as good as all: the
// rest is of programs and libraries that are mapped and not in memory.
const nearLimit = 85

// byProcess is how a limit is applied that the cgroup does not hold.
const byProcess = "rlimit, of each process"

// breaches lists the limits that the command ran into, as far as the system tells.
func (k *kin) breaches() []string {
	var hit []string
	for _, c := range []struct{ name, file, key string }{
		{LimitMemory, "memory.events", "oom_kill"}, {LimitProcesses, "pids.events", "max"}, {LimitCPU, "cpu.stat", "nr_throttled"},
	} {
		if k.group != nil && k.group.counter(c.file, c.key) > 0 {
			hit = append(hit, c.name)
		}
	}
	return hit
}

// counter reads a number from a file of lines of a word and a number; 0 without.
func (g *cgroup) counter(file, key string) int64 {
	text, err := os.ReadFile(filepath.Join(g.path, file))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) == 2 && string(f[0]) == key {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}
