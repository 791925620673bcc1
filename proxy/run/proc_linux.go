package run

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var errStat = errors.New("unknown form of /proc/PID/stat")

// readProcess reads /proc/PID/stat.
func readProcess(pid int) (process, error) {
	var buf [1024]byte
	line, err := readSmall("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, line)
}

// parseStat takes the fields 3 to 6, 9 and 22. The second field, the name in
// parentheses, may hold anything.
func parseStat(pid int, line []byte) (process, error) {
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return process{}, errStat
	}
	f := bytes.Fields(line[end+1:])
	const first, flags, start = 3, 9, 22
	const pfExiting = 4 // PF_EXITING of linux/sched.h
	if len(f) <= start-first || len(f[0]) != 1 {
		return process{}, errStat
	}
	p := process{pid: pid, state: f[0][0]}
	for i, dst := range []*int{&p.ppid, &p.pgid, &p.sid} {
		n, err := strconv.Atoi(string(f[i+1]))
		if err != nil {
			return process{}, errStat
		}
		*dst = n
	}
	bits, err := strconv.ParseUint(string(f[flags-first]), 10, 64)
	if err != nil {
		return process{}, errStat
	}
	p.exiting = bits&pfExiting != 0
	if p.start, err = strconv.ParseUint(string(f[start-first]), 10, 64); err != nil {
		return process{}, errStat
	}
	return p, nil
}

// readSmall reads a file of /proc into buf. Package os would add an epoll
// registration attempt and a finalizer to each of many files.
func readSmall(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	n, err := unix.Read(fd, buf)
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// processes reads the whole process table. Processes that end meanwhile are left
// out.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer closeAll(dir)
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// ownChildren lists the children of this process's main thread, where the kernel
// puts every process that this one adopts. Children that other threads started
// are missing. It reads until two readings agree, because a child that is reaped
// during a reading can hide another.
func ownChildren() ([]int, error) {
	pid := strconv.Itoa(os.Getpid())
	path := "/proc/" + pid + "/task/" + pid + "/children"
	last, err := os.ReadFile(path)
	for tries := 0; err == nil && tries < 8; tries++ {
		var again []byte
		if again, err = os.ReadFile(path); bytes.Equal(last, again) {
			break
		}
		last = again
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, f := range bytes.Fields(last) {
		n, err := strconv.Atoi(string(f))
		if err != nil {
			return nil, err
		}
		pids = append(pids, n)
	}
	return pids, nil
}

// hasEnv reports whether the process was executed with the entry in its
// environment. A process that may not be inspected has not.
func hasEnv(pid int, entry string) bool {
	if entry == "" {
		return false
	}
	base := "/proc/" + strconv.Itoa(pid)
	var buf [16]byte
	for end := time.Now().Add(execLimit); ; time.Sleep(pollFirst) {
		env, err := os.ReadFile(base + "/environ")
		if err != nil {
			return false
		}
		if len(env) > 0 {
			return bytes.Contains(append([]byte{0}, env...), []byte("\x00"+entry+"\x00"))
		}
		// Neither environment nor arguments: it is just being executed, or it
		// is ending.
		args, err := readSmall(base+"/cmdline", buf[:])
		if err != nil || len(args) > 0 || time.Now().After(end) {
			return false
		}
		if p, err := readProcess(pid); err != nil || p.exiting {
			return false
		}
	}
}

// execLimit is how long a process may be without arguments until it counts as one
// that has erased them.
const execLimit = 200 * time.Millisecond

// ownPidfds lists the processes that this process holds a pidfd of. Package os
// holds one for every child that it will wait for.
func ownPidfds() (map[int]bool, error) {
	const dir = "/proc/self/fdinfo"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	held := map[int]bool{}
	var buf [2048]byte
	for _, e := range entries {
		text, err := readSmall(dir+"/"+e.Name(), buf[:])
		if err != nil {
			continue // closed meanwhile
		}
		if _, rest, ok := bytes.Cut(text, []byte("\nPid:\t")); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			if pid, err := strconv.Atoi(string(line)); err == nil {
				held[pid] = true
			}
		}
	}
	return held, nil
}

// describe is what a Leftover tells of a process.
func (k *kin) describe(pid int) string {
	if k.brief {
		return shortName(pid)
	}
	return commandOf(pid)
}

// shortName is the name that the kernel has for a process; empty if it is gone.
func shortName(pid int) string {
	var buf [64]byte
	text, err := readSmall("/proc/"+strconv.Itoa(pid)+"/comm", buf[:])
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(text)), "?")
}

// commandOf describes a process for people.
func commandOf(pid int) string {
	const limit = 200
	var buf [1024]byte
	base := "/proc/" + strconv.Itoa(pid)
	text, err := readSmall(base+"/cmdline", buf[:])
	if err != nil || len(text) == 0 {
		return shortName(pid)
	}
	s := strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
	if len(s) > limit {
		s = string(cutEnd([]byte(s[:limit])))
	}
	return strings.ToValidUTF8(s, "?")
}

// childrenOf lists the children of all threads of a process, as far as the kernel
// tells.
func childrenOf(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var pids []int
	for _, t := range threads {
		text, err := os.ReadFile(dir + "/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for _, f := range bytes.Fields(text) {
			if n, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}
