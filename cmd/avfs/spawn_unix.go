//go:build unix

package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// detached gives a child a session of its own, so that no terminal's signals
// reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// leaveStdout lets go of standard output, which somebody may be waiting to see
// closed. The descriptor stays taken, so that no other file gets its number.
func leaveStdout() {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		_ = os.Stdout.Close() // the wait ends all the same
		return
	}
	_ = unix.Dup2(int(null.Fd()), 1) // fails for no reason that could be helped
	_ = null.Close()
}
