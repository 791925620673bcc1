package storefile

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Try takes the lock if it is free. SQLite locks ranges of the file with fcntl
// (open file description locks); flock is another name space on Linux, and unlike
// them it leaves the holder's process id in /proc/locks.
func (l *Lock) Try() (bool, error) {
	for {
		switch err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		default:
			return false, &os.PathError{Op: "flock", Path: l.file.Name(), Err: err}
		}
	}
}

// Unlock gives the lock up; without holding it, it does nothing.
func (l *Lock) Unlock() error { return unix.Flock(int(l.file.Fd()), unix.LOCK_UN) }

// Holder returns the process that holds the lock on path, 0 when it is not known.
func Holder(path string) int {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer f.Close()
	// 1: FLOCK  ADVISORY  WRITE 1234 08:02:131 0 EOF
	exact := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	inode := fmt.Sprintf(":%d", st.Ino)
	guess := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" {
			continue
		}
		pid, err := strconv.Atoi(fields[4])
		if err != nil || pid <= 0 {
			continue // a process outside our name space
		}
		if fields[5] == exact {
			return pid
		}
		if strings.HasSuffix(fields[5], inode) {
			guess = pid // stacked file systems show another device here
		}
	}
	return guess
}
