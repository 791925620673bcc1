package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// detached gives a child no console and a process group of its own.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}

// leaveStdout lets go of standard output, which somebody may be waiting to see
// closed.
func leaveStdout() { _ = os.Stdout.Close() } // the wait ends in any case

// closeInheritedOnExec has nothing to do: a child gets the handles that it is
// given.
func closeInheritedOnExec() error { return nil }
