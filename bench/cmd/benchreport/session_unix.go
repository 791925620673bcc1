//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownSession has a server run in a session of its own, as those do that other mount
// programs start: Linux shares processors out by sessions, and a server in that of the
// workloads is woken sooner than others.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
