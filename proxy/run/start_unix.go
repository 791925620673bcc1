//go:build linux || darwin

package run

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/proxy/run/internal/hop"
)

// spawn starts the program at path, or has a shell read it when it is a script
// without an interpreter line.
func (t *task) spawn(path string, p *pipes) (*os.Process, error) {
	attr := &os.ProcAttr{
		Dir:   t.spec.Dir,
		Env:   t.kin.mark(t.spec.Env),
		Files: p.child[:],
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	argv := t.spec.Argv
	if !t.spec.Elsewhere && needsHop(t.spec.Dir, path) {
		return t.spawnHop(path, attr)
	}
	proc, err := t.kin.fork(attr, path, argv)
	if errors.Is(err, syscall.ENOEXEC) && !hop.IsBinary(under(t.spec.Dir, path)) {
		proc, err = t.kin.fork(attr, hop.Shell, hop.ShellArgs(path, argv))
	}
	return proc, err
}

// spawnHop starts the program by way of package hop. The error that comes then
// comes through t.startup.
func (t *task) spawnHop(path string, attr *os.ProcAttr) (*os.Process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, &Error{Op: "open pipes", Err: err}
	}
	defer closeAll(w)
	args := hop.Args(attr.Dir, path, t.spec.Argv)
	attr.Dir = ""
	attr.Files = append(attr.Files, w)
	proc, err := t.kin.fork(attr, hop.Self, args)
	if err != nil {
		closeAll(r)
		return nil, &Error{Op: "start", Path: hop.Self, Err: err}
	}
	startup := make(chan error, 1)
	t.startup = startup
	go func() { // ends when the child has executed the program, or ended
		defer closeAll(r)
		text, err := io.ReadAll(r)
		if err == nil {
			err = hop.Parse(text)
		}
		startup <- err
	}()
	return proc, nil
}

// startProcess forks and executes with default signal dispositions.
func startProcess(path string, argv []string, attr *os.ProcAttr) (proc *os.Process, err error) {
	err = hop.Busy(func() error {
		return withDefaultSignals(func() error {
			proc, err = os.StartProcess(path, argv, attr)
			return err
		})
	})
	return proc, err
}

// classify tells the command's own start errors from avfs's: a missing or
// unsuitable program from a system without room for another process.
func classify(path string, err error) error {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return &Error{Op: "start", Path: path, Err: err}
	}
	switch no {
	case syscall.ENOENT, syscall.ENOTDIR:
		return &notStarted{code: ExitNotFound, path: path, err: no}
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ENOSYS:
		return &Error{Op: "start", Path: path, Err: no}
	default:
		return &notStarted{code: ExitNotExecutable, path: path, err: no}
	}
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	st, err := os.Stat(dir)
	if err == nil && !st.IsDir() {
		err = errNotDir
	}
	if err == nil {
		err = unix.Access(dir, unix.X_OK)
	}
	if err != nil {
		return &Error{Op: "working directory", Path: dir, Err: err}
	}
	return nil
}

// exitOf returns a shell's exit code for state and the name of the signal that
// ended the process, if one did.
func exitOf(state *os.ProcessState) (code int, signal string) {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return exitSignal + int(ws.Signal()), signalName(ws.Signal())
	}
	return state.ExitCode(), ""
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

func signalOf(sig os.Signal) syscall.Signal {
	if s, ok := sig.(syscall.Signal); ok {
		return s
	}
	return syscall.SIGTERM
}
