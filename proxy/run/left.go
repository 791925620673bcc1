package run

// Command is what a run has started, for whoever has to end it when this process
// has died; see End.
type Command struct {
	PID    int    // of the leader; also its process group and session
	Start  uint64 // when it started, in units of the system; 0 where unknown
	Cgroup string // the directory of its own cgroup; empty without
}
