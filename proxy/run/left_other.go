//go:build !linux

package run

import "os"

func (k *kin) command(proc *os.Process) Command { return Command{PID: proc.Pid} }

// End ends nothing here: this system tells nobody but a parent for certain which
// process is which.
func End(string, *Command) error { return nil }
