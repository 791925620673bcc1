package run

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// TestParseSocket holds the two forms of an address, as a little-endian machine has them.
func TestParseSocket(t *testing.T) {
	for text, want := range map[string]Port{
		"0100007F:1F90":                         {Port: 8080, Address: "127.0.0.1"},
		"00000000:0016":                         {Port: 22, Address: "0.0.0.0"},
		"00000000000000000000000001000000:1F91": {Port: 8081, Address: "::1"},
		"0000000000000000FFFF00000100007F:0050": {Port: 80, Address: "127.0.0.1"},
	} {
		if got, err := parseSocket(text); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0100007F", "0100007F:1F90F", "01:1F90", "zz00007F:0050"} {
		if got, err := parseSocket(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// TestPorts finds the port of a process by its mark, and no other's.
func TestPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = []*os.File{f}
	cmd.Env = append(os.Environ(), IDVar+"=ports-test")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	want := Port{Port: l.Addr().(*net.TCPAddr).Port, Address: "127.0.0.1", PID: cmd.Process.Pid}
	for id, ports := range map[string][]Port{"ports-test": {want}, "another": {}} {
		got, err := Ports(id, nil)
		if err != nil || !slices.Equal(got, ports) {
			t.Errorf("%s: %v, %v; want %v", id, got, err, ports)
		}
	}
}
