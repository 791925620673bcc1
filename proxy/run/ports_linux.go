package run

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tcpListen is the state of a socket that listens, in /proc/PID/net/tcp.
const tcpListen = "0A"

// Ports lists the TCP ports that the processes of a run listen at, which may be in
// another process's run; they are found as End finds them. A process that ends meanwhile
// has none.
func Ports(id string, c *Command) ([]Port, error) {
	l := &left{marker: IDVar + "=" + id, command: c}
	if c != nil {
		l.group = ownedGroup(c.Cgroup)
	}
	if l.group != nil {
		defer closeAll(l.group.dir)
	}
	list, err := l.find()
	if err != nil {
		return nil, &Error{Op: "list ports", Err: err}
	}
	ports := []Port{}
	sockets := map[string]map[string]Port{} // by inode, of each network namespace
	for _, p := range list {
		dir := "/proc/" + strconv.Itoa(p.pid)
		space, err := os.Readlink(dir + "/ns/net")
		if err != nil {
			continue
		}
		if sockets[space] == nil {
			sockets[space] = listening(dir + "/net")
		}
		for _, inode := range socketsOf(dir) {
			if port, ok := sockets[space][inode]; ok {
				port.PID = p.pid
				ports = append(ports, port)
			}
		}
	}
	slices.SortFunc(ports, func(a, b Port) int {
		return cmp.Or(a.Port-b.Port, strings.Compare(a.Address, b.Address), a.PID-b.PID)
	})
	return slices.CompactFunc(ports, func(a, b Port) bool { return a.Port == b.Port && a.Address == b.Address }), nil
}

// listening reads the sockets that listen in a network namespace, by inode.
func listening(dir string) map[string]Port {
	found := map[string]Port{}
	for _, name := range []string{"tcp", "tcp6"} { // there may be no tcp6
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			const local, state, inode = 1, 3, 9
			f := strings.Fields(string(line))
			if len(f) <= inode || f[state] != tcpListen {
				continue
			}
			if port, err := parseSocket(f[local]); err == nil {
				found[f[inode]] = port
			}
		}
	}
	return found
}

var errSocket = errors.New("unknown form of /proc/PID/net/tcp")

// parseSocket reads ADDRESS:PORT in hexadecimal: the address is a sequence of words of
// 32 bits, each as this machine has them in memory, and the port a number.
func parseSocket(s string) (Port, error) {
	text, port, ok := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	raw, herr := hex.DecodeString(text)
	if !ok || err != nil || herr != nil || len(raw)%4 != 0 {
		return Port{}, errSocket
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return Port{}, errSocket
	}
	return Port{Port: int(n), Address: addr.Unmap().String()}, nil
}

// socketsOf lists the inodes of the sockets that a process has open.
func socketsOf(dir string) []string {
	fds, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return nil
	}
	var list []string
	for _, fd := range fds {
		to, err := os.Readlink(filepath.Join(dir, "fd", fd.Name()))
		if err != nil {
			continue
		}
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			list = append(list, strings.TrimSuffix(inode, "]"))
		}
	}
	return list
}
