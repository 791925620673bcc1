package proxy

import (
	"os"

	"github.com/agentvfs/avfs/proxy/run"
	"github.com/agentvfs/avfs/workspace"
)

// EndCommand is workspace.Config.EndCommand. A command is left alone while the
// process lives that owned its store: then the store that tells of it is a copy.
func EndCommand(left workspace.ExecLeft) error {
	if left.Owner != 0 && left.Owner != os.Getpid() && run.Alive(left.Owner) {
		return nil
	}
	var c *run.Command
	if left.Command != nil {
		c = &run.Command{PID: left.Command.PID, Start: left.Command.Start, Cgroup: left.Command.Cgroup}
	}
	return run.End(left.ID, c)
}
