package mountpoint

import (
	"golang.org/x/sys/unix"
)

// apart runs fn on a thread that holds no connection to the kernel's FUSE.
//
// A thread that waits for the answer to a request cannot be killed once the server
// has read the request; only the end of the connection wakes it, which comes with
// its last descriptor. So a process that serves a mount and asks it something could
// not die at that moment: its own waiting thread would keep the connection open,
// and with it everything that the process has locked.
//
// fn makes system calls and nothing else. Where the system does not let a thread
// have descriptors of its own, fn runs all the same.
func apart(fn func()) {
	OnOwnThread(unix.CLONE_FILES, func(unshared error) {
		if unshared == nil {
			dropConnections()
		}
		fn()
	})
}

// dropConnections closes this thread's copies of descriptors that somebody waits
// to see closed. The Go runtime keeps what it waits with, which is of no such kind.
func dropConnections() {
	dir, err := unix.Open("/proc/thread-self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // no /proc: as if the thread shared its descriptors
	}
	defer unix.Close(dir)
	var fds []int
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil || n <= 0 {
			break
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if fd, ok := number(name); ok && fd != dir {
				fds = append(fds, fd)
			}
		}
	}
	for _, fd := range fds {
		if isConnection(fd) {
			_ = unix.Close(fd) // the process still has it
		}
	}
}

// number reads the name of a descriptor.
func number(name string) (int, bool) {
	n := 0
	for _, c := range []byte(name) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, name != ""
}

// fuseDevice is the device number of /dev/fuse on every Linux.
var fuseDevice = unix.Mkdev(10, 229)

// isConnection reports whether fd is /dev/fuse, a socket or a pipe.
func isConnection(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK, unix.S_IFIFO:
		return fd > 2
	case unix.S_IFCHR:
		return uint64(st.Rdev) == fuseDevice
	}
	return false
}
