package httpapi

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerOf is the process that made a connection to a Unix socket.
func peerOf(c net.Conn) (p Peer) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return p
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return p
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			p = Peer{Known: true, UID: int(cred.Uid), PID: int(cred.Pid)}
		}
	})
	if err != nil {
		return Peer{}
	}
	return p
}
