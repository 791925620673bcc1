package mountpoint

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A process that serves a mount can be killed and not end. A thread of it that tells
// the kernel what to forget may wait, inside the kernel, for a program that waits for an
// answer of the process. Then everybody waits for ever, and the files of the process
// stay open, its connection to the kernel among them. Cutting that connection sets
// them all free. Newer versions of Linux say which process serves which connection.

// FreeKilled cuts every connection that the process serves, if it was killed and has
// not ended, and reports whether there was one.
func FreeKilled(pid int) (freed bool, err error) {
	leader := "/proc/" + strconv.Itoa(pid)
	if !strings.HasPrefix(field(leader+"/status", "State"), "Z") && !wasKilled(leader) {
		return false, nil // it lives, which is the rule
	}
	minors := servedByKilled(strconv.Itoa(pid))
	for minor := range minors {
		err = errors.Join(err, Abort("0:"+minor))
	}
	return len(minors) > 0 && err == nil, err
}

// freeKilledServer cuts the connection of the mount with a device number if a process
// serves it that was killed.
func freeKilledServer(device string) error {
	_, minor, _ := strings.Cut(device, ":")
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, p := range procs {
		if _, err := strconv.Atoi(p.Name()); err == nil && servedByKilled(p.Name())[minor] {
			return Abort(device)
		}
	}
	return nil
}

// servedByKilled is the set of connections, by their minor device number, that threads
// of a process have open which were killed. A thread that is about to end has its files
// still; its process may not say so any more. What cannot be seen is not there.
func servedByKilled(pid string) map[string]bool {
	minors := map[string]bool{}
	threads, err := filepath.Glob("/proc/" + pid + "/task/*")
	if err != nil {
		return minors
	}
	for _, thread := range threads {
		if !wasKilled(thread) {
			continue
		}
		files, err := os.ReadDir(thread + "/fd")
		if err != nil {
			continue
		}
		for _, f := range files {
			if target, err := os.Readlink(thread + "/fd/" + f.Name()); err == nil && target == "/dev/fuse" {
				if minor := field(thread+"/fdinfo/"+f.Name(), "fuse_connection"); minor != "" {
					minors[minor] = true
				}
			}
		}
	}
	return minors
}

// wasKilled reports whether a thread has been sent SIGKILL and has not ended.
func wasKilled(thread string) bool {
	for _, name := range []string{"SigPnd", "ShdPnd"} {
		pending, err := strconv.ParseUint(field(thread+"/status", name), 16, 64)
		if err == nil && pending&(1<<(unix.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

// field is what a file of /proc says of a name; empty where it says nothing.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
