// Package run runs one child command to its end, with everything around a
// process done right: its own session, default signal dispositions, a timeout
// that reaches every descendant, output in bounded memory, and nothing left
// behind. It knows nothing of vaults, policies or mounts.
//
// # Descendants
//
// When Run returns, no process that the command started is alive, unless Result
// lists it as leaked. How descendants are found is told by Result.Tracking:
//
//   - TrackCgroup (Linux with a writable cgroup v2 directory): the command starts
//     in a cgroup of its own, so the kernel keeps the list and kills it whole.
//     Only a process that something moved to another cgroup escapes.
//   - TrackSubreaper (other Linux): while a run lasts, this process is the
//     subreaper of its descendants, so that a descendant is always below the
//     leader or adopted by this process. An adopted one is known by its session,
//     by having been seen below the leader before, by the session of another one
//     that is known, or by the AVFS_EXEC_ID in its environment. One that escaped
//     all four (it called setsid, its parent ended between two looks, and its
//     environment was wiped) is found only under Spec.Sole.
//   - TrackTree (macOS): like TrackSubreaper without adoption. A process that left
//     the session and lost its parent between two looks is not found.
//   - TrackJob (Windows): a job object. A process that the command starts before
//     it is put into the job escapes.
//
// Nothing of this survives SIGKILL of this process itself. Under Spec.Sole, on Linux,
// the leader then dies with it. End, called by another process, ends the rest.
//
// The leader stays a zombie until all others are gone, so the numbers of its
// process, group and session cannot mean another process meanwhile. Run reaps
// only processes that are its own by number, never "any child", so that os/exec
// works beside it, and concurrent runs do not touch each other's processes.
//
// # Commands in a FUSE file system
//
// On Linux a command whose directory or program is on FUSE is started by way of
// this program's own binary (/proc/self/exe), because this process may be the one
// that serves the file system; package internal/hop tells why. It costs the start
// of a Go program. A library loaded by a program in another language cannot do
// that, and must not serve what it runs commands in.
//
// # Order of the two streams
//
// Two pipes have no common order: whoever reads them sees when it read, not when
// the child wrote. With Spec.Combined the child therefore gets one pipe for both
// streams; Result.Combined has the exact order that a terminal would show, and
// Result.Stdout and Result.Stderr stay empty.
package run

import (
	"context"
	"io"
	"os"
	"strings"
	"time"
)

// Defaults of a Spec's zero fields.
const (
	DefaultGrace       = 2 * time.Second
	DefaultDrainWindow = 200 * time.Millisecond
	DefaultKeepBytes   = 64 << 10
)

// Exit codes that are not the child's own.
const (
	ExitTimeout       = 124
	ExitNotExecutable = 126
	ExitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

// IDVar is the environment variable that marks the descendants of a run. Run
// adds it with a value of its own when Spec.Env has none.
const IDVar = "AVFS_EXEC_ID"

// Stream names one of the child's output streams.
type Stream uint8

// The streams. StreamBoth is the shared pipe of Spec.Combined.
const (
	StreamOut Stream = iota + 1
	StreamErr
	StreamBoth
)

func (s Stream) String() string {
	switch s {
	case StreamOut:
		return "stdout"
	case StreamErr:
		return "stderr"
	case StreamBoth:
		return "combined"
	}
	return "unknown"
}

// Filter changes a stream on its way.
type Filter interface {
	Write(p []byte) []byte
	Close() []byte
}

// Spec says what to run. Only Argv is required.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked up
	// in Env's PATH; an empty or relative element of PATH, and a relative name
	// with a slash, are relative to Dir. A file that the kernel cannot execute
	// and that is text is run by /bin/sh, as a shell does.
	Argv []string

	// Dir is the child's working directory; empty means this process's own.
	Dir string

	// Env is the child's complete environment, except for IDVar. Of several
	// entries with one name the last counts.
	Env []string

	// Stdin is forwarded to the child, then closed; nil is an empty input. An
	// *os.File on Linux is not read further once Run has returned. A Read of any
	// other reader may still be waiting then, and what it returns is lost.
	Stdin io.Reader

	// Timeout ends the run when positive: SIGTERM to everything, SIGKILL to what
	// is left after Grace.
	Timeout time.Duration
	Grace   time.Duration

	// DrainWindow is how long after the leader's end Run waits for descendants to
	// end by themselves and for the pipes to close.
	DrainWindow time.Duration

	// Stdout and Stderr get the output as it comes, each from one goroutine, and
	// not after Run has returned. With Combined, Stdout gets both. p is valid
	// during the call only. A call that blocks holds the child back, and holds
	// Run back after the child has ended.
	Stdout, Stderr func(p []byte)

	// Ending, if not nil, is called once when the command has ended and Run is about to
	// read the last of its output: at most what its pipes hold. Whoever makes Stdout and
	// Stderr wait for something can stop doing so then.
	Ending func()

	// HeadBytes and TailBytes bound what is kept of each stream. Zero is
	// DefaultKeepBytes, negative is none.
	HeadBytes, TailBytes int

	// Sink gets the full streams under the same rules as Stdout; with two streams
	// it is called by two goroutines. After an error it is not called again for
	// that stream, and the run goes on.
	Sink func(stream Stream, p []byte) error

	// Filter, if not nil, makes what every stream goes through before anything else
	// sees it: of what it is given, Write returns what may be passed on by now, and
	// Close the rest. Both are called by one goroutine.
	Filter func() Filter

	// Combined asks for one capture in the order of writing; see the package
	// comment.
	Combined bool

	// ShortNames has Leftovers told by their short names where there are such: a command
	// line may hold, or be cut within, what nobody is to see.
	ShortNames bool

	// Started is told what was started as soon as it is, by the goroutine of Run; may
	// be nil. It must not block.
	Started func(Command)

	// Abort kills everything at once when it is closed; nil never does.
	Abort <-chan struct{}

	// Interrupt delivers the caller's signals. The first is passed on to the
	// leader's process group; any but SIGINT also starts Grace. The second kills.
	Interrupt <-chan os.Signal

	// Sole promises that this process starts no detached process (own session,
	// released or started outside package os) while the run lasts. Then whatever
	// this process adopts meanwhile is the run's, however well it hid.
	Sole bool

	// Elsewhere promises that another process serves the file systems that Dir and
	// the program are in, and that it waits for nothing of this one. Then a start
	// in a FUSE file system needs no detour, which costs a few milliseconds.
	Elsewhere bool

	// Limits bound what the command may use. Which could be applied, and how, is in
	// the Result.
	Limits Limits

	// NoCgroup keeps the run out of a cgroup of its own.
	NoCgroup bool
}

// Status says how a run ended.
type Status string

// The states a run can end in.
const (
	Completed     Status = "completed"
	TimedOut      Status = "timed_out"
	FailedToStart Status = "failed_to_start"
	Interrupted   Status = "interrupted"
)

// Tracking says how descendants were found; see the package comment.
type Tracking string

// The ways of finding descendants.
const (
	TrackCgroup    Tracking = "cgroup"
	TrackSubreaper Tracking = "subreaper"
	TrackTree      Tracking = "tree"
	TrackJob       Tracking = "job"
)

// Output is what was kept of a stream.
type Output struct {
	// Text is the kept bytes with a line between head and tail that tells how
	// much is missing. Bytes that are not UTF-8 are replaced by U+FFFD here.
	Text string

	// Base64 holds the kept bytes, head and tail without a line between them. It
	// is set only if they are not valid UTF-8.
	Base64 string

	Bytes     int64 // written by the child
	Truncated bool
	Omitted   int64 // bytes missing between head and tail
	Seam      int   // length of the head in the kept bytes, when truncated
}

// Leftover is a descendant that Run had to deal with.
type Leftover struct {
	PID     int
	Command string // its command line, shortened, or its short name
}

// Result tells how a run went. It is complete for every Status.
type Result struct {
	Status Status

	// ExitCode is the leader's own, 128+n when signal n ended it, 124 when timed
	// out, 128+n when interrupted by signal n, 126 or 127 when the program could
	// not be started. LeaderCode is what the leader itself ended with in all
	// cases, -1 if it never ran or could not be killed.
	ExitCode   int
	LeaderCode int
	Signal     string // of the leader's death, such as "SIGKILL"

	Stdout, Stderr, Combined Output

	Started  time.Time
	Duration time.Duration
	TimedOut bool

	// Killed lists the descendants, without the leader, that Run had to end.
	// Leaked lists what would not die, with the leader.
	Killed, Leaked []Leftover

	StartError error // why the program could not be started; a *Error
	StdinError error // reading Spec.Stdin failed; the child saw an early end
	SinkError  error // what Spec.Sink returned

	// UserCPU, SysCPU and MaxRSS cover the leader and the descendants that it
	// waited for. MaxRSS is in bytes, 0 where unknown; on Linux it is never less
	// than what this process had in memory when it forked.
	UserCPU, SysCPU time.Duration
	MaxRSS          int64

	// LimitsApplied says which limits were in force, and how; LimitsHit which of them
	// the command ran into, as far as the system tells.
	LimitsApplied, LimitsHit []string

	// Tracking is how descendants were found, Limits what this run could not do
	// on this system, one sentence each.
	Tracking Tracking
	Limits   []string
}

// Run runs the command of s to its end. It returns an error, a *Error, only if
// avfs itself failed; whatever the command did is in the Result.
//
// Cancelling ctx interrupts the run: SIGINT to the leader's process group, and
// after Grace what is left is ended. A signal on s.Interrupt after that kills at
// once. The Result is complete in either case.
func Run(ctx context.Context, s Spec) (Result, error) {
	if err := s.check(); err != nil {
		return Result{}, err
	}
	s.defaults()
	res := Result{Status: Completed, LeaderCode: -1, Started: time.Now()}
	if ctx.Err() != nil {
		return Result{}, &Error{Op: "start", Err: context.Cause(ctx)}
	}
	t := &task{spec: &s, res: &res, cancelled: ctx.Done(), abort: s.Abort, interrupts: s.Interrupt}
	err := t.start()
	if err == nil {
		err = t.supervise()
	}
	res.Duration = time.Since(res.Started)
	if err != nil {
		return res, t.failed(err)
	}
	return res, nil
}

// check rejects a Spec that no system could run.
func (s *Spec) check() error {
	if len(s.Argv) == 0 {
		return &Error{Op: "start", Err: errNoArgv}
	}
	for _, list := range [][]string{s.Argv, s.Env, {s.Dir}} {
		for _, v := range list {
			if strings.IndexByte(v, 0) >= 0 {
				return &Error{Op: "start", Err: errNUL}
			}
		}
	}
	return checkDir(s.Dir)
}

func (s *Spec) defaults() {
	if s.Grace <= 0 {
		s.Grace = DefaultGrace
	}
	if s.DrainWindow <= 0 {
		s.DrainWindow = DefaultDrainWindow
	}
	s.HeadBytes = keepBytes(s.HeadBytes)
	s.TailBytes = keepBytes(s.TailBytes)
	s.Env = lastWins(s.Env)
}

func keepBytes(n int) int {
	if n == 0 {
		return DefaultKeepBytes
	}
	return max(n, 0)
}

// lastWins drops the entries of env that a later one with the same name
// replaces, in a new slice.
func lastWins(env []string) []string {
	last := make(map[string]int, len(env))
	for i, e := range env {
		last[envName(e)] = i
	}
	out := make([]string, 0, len(env)+1)
	for i, e := range env {
		if last[envName(e)] == i {
			out = append(out, e)
		}
	}
	return out
}

// getenv returns the value of name in env.
func getenv(env []string, name string) (string, bool) {
	for _, e := range env {
		if envName(e) == envKey(name) {
			return e[len(name)+1:], true
		}
	}
	return "", false
}

// envName returns an entry's name as the system compares it. A leading "=" is
// part of the name, as in Windows's "=C:=C:\dir".
func envName(entry string) string {
	if entry == "" {
		return ""
	}
	i := strings.IndexByte(entry[1:], '=')
	if i < 0 {
		return entry
	}
	return envKey(entry[:i+1])
}
