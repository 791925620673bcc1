//go:build linux || darwin

package run

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spawn starts the program at path, or has /bin/sh read it when it is a script
// without an interpreter line.
func (t *task) spawn(path string, p *pipes) (*os.Process, error) {
	argv := t.spec.Argv
	proc, err := t.startProcess(path, argv, p)
	if errors.Is(err, syscall.ENOEXEC) {
		if isBinary(path, t.spec.Dir) {
			return nil, &notStarted{code: ExitNotExecutable, path: argv[0], err: errBinary}
		}
		argv = append([]string{"sh", path}, argv[1:]...)
		proc, err = t.startProcess("/bin/sh", argv, p)
	}
	return proc, err
}

// startProcess forks and executes. A file that was just written can be busy for
// a moment because another fork still holds the writer's descriptor, so that
// error is tried again.
func (t *task) startProcess(path string, argv []string, p *pipes) (*os.Process, error) {
	attr := &os.ProcAttr{
		Dir:   t.spec.Dir,
		Env:   t.kin.mark(t.spec.Env),
		Files: p.child[:],
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	var proc *os.Process
	err := t.kin.fork(attr, func() (*os.Process, error) {
		var err error
		for pause := time.Millisecond; ; pause *= 4 {
			err = withDefaultSignals(func() (err error) {
				proc, err = os.StartProcess(path, argv, attr)
				return err
			})
			if !errors.Is(err, syscall.ETXTBSY) || pause > 100*time.Millisecond {
				return proc, err
			}
			time.Sleep(pause)
		}
	})
	return proc, err
}

// classify tells the command's own start errors from avfs's: a missing or
// unsuitable program from a system without room for another process.
func classify(path string, err error) error {
	var ns *notStarted
	if errors.As(err, &ns) {
		return err
	}
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
