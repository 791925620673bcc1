package run

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Times of the supervision that no caller needs to choose.
const (
	restGrace = 200 * time.Millisecond // for descendants that outlive the leader, after SIGTERM
	killLimit = 2 * time.Second        // how long SIGKILL may take to work before a process counts as leaked
	forkLimit = 10 * killLimit         // the same while new processes appear
	killPause = 5 * time.Millisecond
	pollFirst = 500 * time.Microsecond
	pollMax   = 20 * time.Millisecond
	lookFirst = 20 * time.Millisecond
	lookMax   = time.Second
)

// sigXFSZ is the signal of a process that writes a file beyond its limit.
const sigXFSZ = 25

// task is one run. All but the drains and the stdin feed happens on the
// goroutine that called Run.
type task struct {
	spec *Spec
	res  *Result

	kin   *kin
	ended <-chan struct{} // closed when the leader has ended; it is not reaped then
	// startup delivers why the program could not be executed after all, or nil;
	// it is nil itself when that is known.
	startup <-chan error
	drains  []*drain
	dry     chan struct{} // closed when all drains have ended
	feed    *feed         // nil without stdin

	cancelled  <-chan struct{}
	abort      <-chan struct{}
	interrupts <-chan os.Signal
	presses    int            // interruptions so far
	passed     syscall.Signal // the first one
}

// failed turns an error of start into Run's: a program that cannot be started is
// the command's failure and goes into the result.
func (t *task) failed(err error) error {
	var ns *notStarted
	if !errors.As(err, &ns) {
		return err
	}
	t.res.Status = FailedToStart
	t.res.ExitCode = ns.code
	t.res.StartError = &Error{Op: "start", Path: ns.path, Err: ns.err}
	return nil
}

// supervise follows a started command to its end and fills in the result. Its
// errors are those of start.
func (t *task) supervise() error {
	t.drain()
	t.watch()
	t.settle()
	t.collect()
	t.conclude()
	t.res.LimitsHit = t.kin.breaches()
	if t.spec.Limits.FileBytes > 0 && (t.res.Signal == "SIGXFSZ" || t.res.LeaderCode == exitSignal+sigXFSZ) {
		t.res.LimitsHit = append(t.res.LimitsHit, LimitFileSize)
	}
	if t.memoryFailed() {
		t.res.LimitsHit = append(t.res.LimitsHit, LimitMemory)
	}
	t.res.LimitsApplied = t.kin.caps
	t.kin.close()
	t.res.Tracking = t.kin.tracking
	t.res.Limits = append(t.res.Limits, t.kin.limits...)
	if t.startup == nil || !t.over() || t.res.Status != Completed {
		return nil
	}
	if err := <-t.startup; err != nil {
		t.res.LeaderCode = -1
		return t.startError(err)
	}
	return nil
}

// drain starts reading the child's output.
func (t *task) drain() {
	t.dry = make(chan struct{})
	var open atomic.Int32
	open.Store(int32(len(t.drains)))
	for _, d := range t.drains {
		go func() {
			d.run()
			if open.Add(-1) == 0 {
				close(t.dry)
			}
		}()
	}
}

// watch returns when the leader has ended, or when the run was stopped. What comes
// when the leader has ended comes too late to count.
func (t *task) watch() {
	look := time.NewTimer(lookFirst)
	defer look.Stop()
	pause := lookFirst
	var timeout, force <-chan time.Time
	if t.spec.Timeout > 0 {
		timer := time.NewTimer(t.spec.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		select {
		case <-t.ended:
			return
		case <-timeout:
			if !t.over() {
				t.res.Status, t.res.TimedOut = TimedOut, true
				t.stop(t.spec.Grace)
			}
			return
		case <-force:
			t.stop(t.spec.Grace)
			return
		case <-t.abort:
			t.abort = nil
			t.pass(syscall.SIGKILL, false)
			t.kill()
			return
		case <-t.cancelled:
			t.cancelled = nil
			force = t.pass(syscall.SIGINT, true)
		case sig, ok := <-t.interrupts:
			if !ok {
				t.interrupts = nil
				continue
			}
			s := signalOf(sig)
			force = t.pass(s, s != syscall.SIGINT)
		case <-look.C:
			t.kin.look()
			pause = min(2*pause, lookMax)
			look.Reset(pause)
		}
		if t.presses > 1 {
			t.kill()
			return
		}
	}
}

// pass hands the first interruption to the leader's group. With force, the
// returned channel delivers when the leader has had its grace.
func (t *task) pass(sig syscall.Signal, force bool) <-chan time.Time {
	if t.over() {
		return nil
	}
	t.presses++
	if t.presses > 1 {
		return nil
	}
	t.res.Status, t.passed = Interrupted, sig
	t.kin.signalGroup(sig)
	if !force {
		return nil
	}
	return time.After(t.spec.Grace)
}

// settle lets what outlived the leader end by itself for a moment, then ends it.
func (t *task) settle() {
	if len(t.res.Leaked) > 0 {
		return // not even SIGKILL helped
	}
	window := t.spec.DrainWindow
	if t.res.Status != Completed {
		window = 0
	}
	start := time.Now()
	t.await(window, t.dry, func() bool { return closed(t.dry) && t.kin.empty() })
	if !t.kin.empty() {
		t.stop(restGrace)
	}
	t.await(window-time.Since(start), t.dry, func() bool { return closed(t.dry) })
}

// stop asks everything to end, and kills what has not when grace is over. The
// leader's end does not shorten the grace of the others.
func (t *task) stop(grace time.Duration) {
	t.res.Killed = t.kin.ask(t.res.Killed)
	if t.await(grace, t.ended, t.gone) {
		return
	}
	t.kill()
}

// kill ends everything, again and again until nothing is found: what forks while
// it is looked for is found the next time.
func (t *task) kill() {
	pause := killPause
	last := time.Now().Add(forkLimit)
	for end := time.Now().Add(killLimit); time.Now().Before(end); pause = min(2*pause, pollMax) {
		before := len(t.res.Killed)
		t.res.Killed = t.kin.kill(t.res.Killed)
		if now := time.Now(); len(t.res.Killed) > before && now.Before(last) {
			end = now.Add(killLimit)
		}
		if t.await(pause, t.ended, t.gone) {
			return
		}
	}
	t.res.Leaked = t.kin.leaked(t.over())
}

// over reports whether the leader has ended.
func (t *task) over() bool { return closed(t.ended) }

func (t *task) gone() bool { return t.over() && t.kin.empty() }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// await waits until cond holds and reports whether it does. It looks again when
// wake is closed, and polls. It gives up after d, at the abort, and at an interruption
// by a caller that has grown impatient.
func (t *task) await(d time.Duration, wake <-chan struct{}, cond func() bool) bool {
	end := time.Now().Add(d)
	pause := pollFirst
	for {
		if cond() {
			return true
		}
		rest := time.Until(end)
		if rest <= 0 {
			return false
		}
		timer := time.NewTimer(min(pause, rest))
		select {
		case <-timer.C:
		case <-wake:
			wake = nil
			timer.Stop()
			continue
		case <-t.abort:
			t.abort = nil
			timer.Stop()
			return false
		case <-t.cancelled:
			t.cancelled = nil
			t.presses++
			timer.Stop()
			return false
		case _, ok := <-t.interrupts:
			timer.Stop()
			if !ok {
				t.interrupts = nil
				continue
			}
			t.presses++
			return false
		}
		pause = min(2*pause, pollMax)
	}
}

// collect ends the drains and takes what they kept.
func (t *task) collect() {
	if t.spec.Ending != nil {
		t.spec.Ending()
	}
	if t.feed != nil {
		t.res.StdinError = t.feed.stop()
	}
	for _, d := range t.drains {
		if !closed(d.done) {
			d.cut()
		}
	}
	var sinkErrs []error
	for _, d := range t.drains {
		<-d.done
		closeAll(d.pipe)
		sinkErrs = append(sinkErrs, d.sinkErr)
		switch d.stream {
		case StreamOut:
			t.res.Stdout = d.keep.output()
		case StreamErr:
			t.res.Stderr = d.keep.output()
		case StreamBoth:
			t.res.Combined = d.keep.output()
		}
	}
	t.res.SinkError = errors.Join(sinkErrs...)
}

// conclude reaps the leader and decides the exit code.
func (t *task) conclude() {
	if t.over() {
		// Nobody is in the group any more, unless the process table could not
		// be read.
		t.kin.signalGroup(syscall.SIGKILL)
		t.leaderEnded(t.kin.wait())
	} else {
		t.kin.abandon()
	}
	switch t.res.Status {
	case TimedOut:
		t.res.ExitCode = ExitTimeout
	case Interrupted:
		t.res.ExitCode = exitSignal + int(t.passed)
	default:
		t.res.ExitCode = t.res.LeaderCode
	}
}

// leaderEnded reads the leader's state. A nil state means that somebody else in
// this process waited for it.
func (t *task) leaderEnded(state *os.ProcessState) {
	if state == nil {
		t.res.Limits = append(t.res.Limits, "the exit code was lost: other code in this process waited for the command")
		return
	}
	t.res.LeaderCode, t.res.Signal = exitOf(state)
	t.res.UserCPU, t.res.SysCPU = state.UserTime(), state.SystemTime()
	t.res.MaxRSS = maxRSS(state)
}
