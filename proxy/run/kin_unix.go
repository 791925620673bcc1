//go:build linux || darwin

package run

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is one line of the process table.
type process struct {
	pid, ppid, pgid, sid int
	state                byte // as in proc(5): R, S, D, T, Z ...
	exiting              bool
	start                uint64 // when it started, in units of the system; with pid it names one process for ever
}

// ending reports whether the process is on its way out: it has no memory any more,
// and so no environment to be known by.
func (p process) ending() bool { return p.exiting && !p.dead() }

// dead reports whether the process has ended and only waits to be reaped.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

func (p process) stopped() bool { return p.state == 'T' || p.state == 't' }

// mark returns env with the entry that marks this run.
func (k *kin) mark(env []string) []string {
	if slices.Contains(env, k.marker) {
		return env
	}
	return append(slices.Clip(env), k.marker)
}

// limit notes once what could not be done.
func (k *kin) limit(text string) {
	if !slices.Contains(k.limits, text) {
		k.limits = append(k.limits, text)
	}
}

// closeOver adds the children and the session mates of mine until there are no
// more.
func closeOver(all []process, mine map[int]process, sids map[int]bool, add func(process)) {
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if _, ok := mine[p.pid]; ok {
				continue
			}
			if _, ok := mine[p.ppid]; ok || sids[p.sid] {
				add(p)
				grown = true
			}
		}
	}
}

// signalGroup signals the leader's process group.
func (k *kin) signalGroup(sig syscall.Signal) {
	// ESRCH cannot be, since the leader is not reaped. EPERM means that all of
	// the group has changed its user; it is found alive later.
	_ = unix.Kill(-k.leader, sig)
}

// ask sends SIGTERM to the leader and all descendants, wakes those that are
// stopped, and adds the descendants to list.
func (k *kin) ask(list []Leftover) []Leftover {
	return k.signalAll(list, unix.SIGTERM)
}

// killSweeps bounds how often kill looks again at a time.
const killSweeps = 20

// kill sends SIGKILL to the leader and all descendants. While it finds some that were
// not there before it goes on at once, as what forks would win any pause.
func (k *kin) kill(list []Leftover) []Leftover {
	for range killSweeps {
		before := len(list)
		list = k.signalAll(list, unix.SIGKILL)
		k.killGroup()
		if len(list) == before {
			break
		}
	}
	return list
}

func (k *kin) signalAll(list []Leftover, sig syscall.Signal) []Leftover {
	all := k.live()
	for _, p := range all {
		if !k.listed[p.pid] {
			k.listed[p.pid] = true
			list = append(list, Leftover{PID: p.pid, Command: k.describe(p.pid)})
		}
	}
	k.signalGroup(sig)
	for _, p := range all {
		if p.pgid != k.leader {
			signalOne(p, sig)
		}
		if p.stopped() && sig != unix.SIGKILL {
			signalOne(p, unix.SIGCONT)
		}
	}
	if sig != unix.SIGKILL {
		k.signalGroup(unix.SIGCONT)
	}
	return list
}

// leaked lists what is still alive, with the leader if that is.
func (k *kin) leaked(leaderEnded bool) []Leftover {
	var list []Leftover
	if !leaderEnded {
		list = append(list, Leftover{PID: k.leader, Command: k.describe(k.leader)})
	}
	for _, p := range k.live() {
		list = append(list, Leftover{PID: p.pid, Command: k.describe(p.pid)})
	}
	return list
}
