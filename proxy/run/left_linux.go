package run

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// command describes the leader, which is not reaped.
func (k *kin) command(proc *os.Process) Command {
	c := Command{PID: proc.Pid}
	if p, err := readProcess(proc.Pid); err == nil {
		c.Start = p.start
	}
	if k.group != nil {
		c.Cgroup = k.group.path
	}
	return c
}

// End kills what is left of a run in a process that has died: the members of its
// cgroup and of its session, whatever has id as its IDVar in the environment, and
// the descendants and session mates of those. c is what Spec.Started was told, nil
// where that is not known. Only processes of this process's own user are ended, and
// none of its own session. It fails if something is alive after two seconds, or twenty
// while new processes appear.
func End(id string, c *Command) error {
	l := &left{marker: IDVar + "=" + id, command: c}
	if c != nil {
		l.group = ownedGroup(c.Cgroup)
	}
	pause, seen := killPause, map[int]bool{}
	last := time.Now().Add(forkLimit)
	for end := time.Now().Add(killLimit); ; pause = min(2*pause, pollMax) {
		list, err := l.find()
		if err != nil {
			return &Error{Op: "end", Err: err}
		}
		if len(list) == 0 {
			return l.done()
		}
		if time.Now().After(end) {
			return &Error{Op: "end", Path: shortName(list[0].pid), Err: fmt.Errorf("%d processes do not end", len(list))}
		}
		l.kill(list)
		fresh := false // what forks would win any pause
		for _, p := range list {
			fresh = fresh || !seen[p.pid]
			seen[p.pid] = true
		}
		if now := time.Now(); fresh && now.Before(last) {
			end = now.Add(killLimit)
			continue
		}
		time.Sleep(pause)
	}
}

// Alive reports whether there is a process of that number which has not ended.
func Alive(pid int) bool {
	p, err := readProcess(pid)
	return err == nil && !p.dead()
}

// left is what a process that has died left of a run.
type left struct {
	marker  string
	command *Command
	group   *cgroup // nil without
}

// ownedGroup is the cgroup at path, if it is one that a run may have made.
func ownedGroup(path string) *cgroup {
	mount, _ := cgroupMount()
	if path == "" || mount == "" || path != filepath.Clean(path) ||
		!strings.HasPrefix(path, mount+"/") || !strings.HasPrefix(filepath.Base(path), cgroupPrefix) {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil // it is gone, and what was in it
	}
	return &cgroup{path: path, dir: dir}
}

// find lists what is alive.
func (l *left) find() ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	mine, sids := map[int]process{}, map[int]bool{}
	own := ownSession()
	add := func(p process) {
		mine[p.pid] = p
		if p.sid != own {
			sids[p.sid] = true
		}
	}
	members, session := l.group.members(), l.session(all)
	for _, p := range all {
		if p.sid == 0 || p.dead() { // the kernel's own, or over
			continue
		}
		if members[p.pid] || session != 0 && p.sid == session || p.sid != own && ownUser(p.pid) && hasEnv(p.pid, l.marker) {
			add(p)
		}
	}
	closeOver(all, mine, sids, add)
	return slices.DeleteFunc(slices.Collect(maps.Values(mine)), func(p process) bool {
		return p.dead() || p.sid == own || !ownUser(p.pid)
	}), nil
}

// session is that of the leader, 0 if none is left of it: then its number may be
// another process's.
func (l *left) session(all []process) int {
	if l.command == nil || l.command.PID == 0 || l.command.Start == 0 {
		return 0
	}
	for _, p := range all {
		if p.pid == l.command.PID && p.start != l.command.Start {
			return 0
		}
	}
	return l.command.PID
}

// kill ends the cgroup at once, and the others one by one.
func (l *left) kill(list []process) {
	if l.group != nil && !l.group.members()[os.Getpid()] {
		_ = l.group.kill() // what does not end is found again
	}
	for _, p := range list {
		signalOne(p, unix.SIGKILL)
	}
}

// done removes the cgroup. One that is in use by now is left to who makes the next.
func (l *left) done() error {
	if l.group == nil {
		return nil
	}
	if err := l.group.remove(); err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, os.ErrPermission) {
		return &Error{Op: "end", Path: l.group.path, Err: err}
	}
	return nil
}

// ownUser reports whether a process belongs to the user of this one.
func ownUser(pid int) bool {
	var st unix.Stat_t
	return unix.Stat("/proc/"+strconv.Itoa(pid), &st) == nil && int(st.Uid) == os.Geteuid()
}
