package run

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// spawn starts the program suspended, puts it into the job, and lets it go.
func (t *task) spawn(path string, p *pipes) (*os.Process, error) {
	proc, err := os.StartProcess(path, t.spec.Argv, &os.ProcAttr{
		Dir:   t.spec.Dir,
		Env:   t.kin.mark(t.spec.Env),
		Files: p.child[:],
		Sys: &syscall.SysProcAttr{
			HideWindow:    true,
			CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP,
		},
	})
	if err != nil {
		return nil, err
	}
	if err := t.kin.adopt(proc); err != nil {
		return nil, &Error{Op: "job", Path: path, Err: errors.Join(err, proc.Kill(), proc.Release())}
	}
	return proc, nil
}

// classify tells the command's own start errors from avfs's.
func classify(path string, err error) error {
	var no syscall.Errno
	switch {
	case !errors.As(err, &no):
	case errors.Is(no, windows.ERROR_FILE_NOT_FOUND), errors.Is(no, windows.ERROR_PATH_NOT_FOUND):
		return &notStarted{code: ExitNotFound, path: path, err: no}
	case errors.Is(no, windows.ERROR_BAD_EXE_FORMAT), errors.Is(no, windows.ERROR_ACCESS_DENIED),
		errors.Is(no, windows.ERROR_ELEVATION_REQUIRED), errors.Is(no, windows.ERROR_FILENAME_EXCED_RANGE):
		return &notStarted{code: ExitNotExecutable, path: path, err: no}
	}
	return &Error{Op: "start", Path: path, Err: err}
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	st, err := os.Stat(dir)
	if err == nil && !st.IsDir() {
		err = errNotDir
	}
	if err != nil {
		return &Error{Op: "working directory", Path: dir, Err: err}
	}
	return nil
}

// exitOf returns the exit code. Windows knows no death by signal.
func exitOf(state *os.ProcessState) (code int, signal string) { return state.ExitCode(), "" }

func signalOf(sig os.Signal) syscall.Signal {
	if s, ok := sig.(syscall.Signal); ok {
		return s
	}
	return syscall.SIGTERM
}

// resume lets the threads of a suspended process run.
func resume(pid int) error {
	snap, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer windows.CloseHandle(snap)
	e := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snap, &e); err == nil; err = windows.Thread32Next(snap, &e) {
		if int(e.OwnerProcessID) != pid {
			continue
		}
		if err := resumeThread(e.ThreadID); err != nil {
			return err
		}
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return os.NewSyscallError("Thread32Next", err)
	}
	return nil
}

func resumeThread(id uint32) error {
	h, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, id)
	if err != nil {
		return os.NewSyscallError("OpenThread", err)
	}
	defer windows.CloseHandle(h)
	_, err = windows.ResumeThread(h)
	return os.NewSyscallError("ResumeThread", err)
}
