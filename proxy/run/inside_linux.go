package run

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// InsideRun is the value of IDVar of the run that this process is a part of; empty if
// it is of none, as far as can be seen: in the environment that it or one of its
// ancestors was started with, or as "unknown" in its cgroup. A process that wiped its
// environment, lost its ancestors and is in no cgroup of its own is not recognised.
func InsideRun() string {
	if id := os.Getenv(IDVar); id != "" {
		return id
	}
	return Inside(os.Getpid())
}

// Inside is InsideRun for another process of this machine, which may have ended: then it
// is empty.
func Inside(process int) string {
	for pid := process; pid > 1; {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err == nil {
			if _, rest, ok := bytes.Cut(append([]byte{0}, env...), []byte("\x00"+IDVar+"=")); ok {
				id, _, _ := bytes.Cut(rest, []byte{0})
				return string(id)
			}
		}
		p, err := readProcess(pid)
		if err != nil {
			break
		}
		pid = p.ppid
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(process) + "/cgroup")
	if err == nil && strings.Contains(string(text), "/"+cgroupPrefix) {
		return "unknown"
	}
	return ""
}
