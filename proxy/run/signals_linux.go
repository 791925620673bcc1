package run

import (
	"bytes"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// withDefaultSignals calls fork so that the child starts with no signal blocked
// or ignored. The Go runtime gives a child default dispositions only for signals
// that it handles itself: one that is ignored here, such as SIGHUP under nohup or
// SIGINT in a shell's background job, stays ignored in the child, and so does a
// blocked one stay blocked. So for the moment of the fork ignored signals get a
// handler, and this thread's mask is empty. Signals 32 and 33 belong to the C
// library and stay as they are. The caller serialises calls.
func withDefaultSignals(fork func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var none, old unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &old); err != nil {
		return os.NewSyscallError("sigprocmask", err)
	}
	ignored := ignoredSignals()
	if len(ignored) > 0 {
		c := make(chan os.Signal, 1)
		signal.Notify(c, ignored...)
		// Ignore and not Stop: Stop would leave the runtime's handler in place
		// for some signals, and signal.Ignored wrong for all.
		defer signal.Ignore(ignored...)
	}
	err := fork()
	if merr := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err == nil && merr != nil {
		return os.NewSyscallError("sigprocmask", merr)
	}
	return err
}

// ignoredSignals lists what this process ignores. The kernel's answer is
// complete, while package signal knows only what it has changed itself.
func ignoredSignals() []os.Signal {
	var buf [4096]byte
	text, err := readSmall("/proc/self/status", buf[:])
	if err != nil {
		return knownIgnored()
	}
	_, rest, _ := bytes.Cut(text, []byte("\nSigIgn:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, err := strconv.ParseUint(string(line), 16, 64)
	if err != nil {
		return knownIgnored()
	}
	var list []os.Signal
	for n := 1; mask != 0; n, mask = n+1, mask>>1 {
		if mask&1 != 0 {
			list = append(list, syscall.Signal(n))
		}
	}
	return list
}

func knownIgnored() []os.Signal {
	var list []os.Signal
	for n := 1; n < 65; n++ {
		if s := syscall.Signal(n); signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}
