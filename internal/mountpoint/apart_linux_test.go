package mountpoint

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// envDeaf makes this test binary mount a file system on the path in it that takes
// every request and answers none, and ask that mount something itself. envCall
// says what.
const (
	envDeaf = "AVFS_TEST_DEAF"
	envCall = "AVFS_TEST_CALL"
)

// ownCalls is what a process asks its own mounts.
var ownCalls = map[string]func(point string) error{"ask": Ask, "flush": Flush}

func TestMain(m *testing.M) {
	point := os.Getenv(envDeaf)
	if point == "" {
		os.Exit(m.Run())
	}
	if err := serveDeaf(point, ownCalls[os.Getenv(envCall)]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveDeaf speaks the kernel's protocol just far enough for the mount to be up.
func serveDeaf(point string, call func(point string) error) error {
	conn, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", conn)
	if err := unix.Mount("deaf", point, FSType, 0, options); err != nil {
		return err
	}
	request := make([]byte, 64<<10)
	if _, err := unix.Read(conn, request); err != nil { // FUSE_INIT
		return err
	}
	hello := make([]byte, 16+64)
	binary.NativeEndian.PutUint32(hello[0:], uint32(len(hello)))
	copy(hello[8:16], request[8:16]) // which request it answers
	binary.NativeEndian.PutUint32(hello[16:], 7)
	binary.NativeEndian.PutUint32(hello[20:], 31)
	binary.NativeEndian.PutUint32(hello[36:], 4096) // the longest write
	if _, err := unix.Write(conn, hello); err != nil {
		return err
	}
	go func() { // ends with the process: nobody answers
		_ = call(point)
	}()
	if _, err := unix.Read(conn, request); err != nil {
		return err
	}
	fmt.Println("asked")
	time.Sleep(time.Hour)
	return errors.New("nobody ended it")
}

// TestKilledWhileAsking kills processes that wait for an answer of their own
// mount. They must go, and let go of what they have locked.
func TestKilledWhileAsking(t *testing.T) {
	for name := range ownCalls {
		t.Run(name, func(t *testing.T) { killedWhile(t, name) })
	}
}

func killedWhile(t *testing.T, call string) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED, NOT PROVEN: mounting by hand takes root's rights")
	}
	if fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: /dev/fuse: %v", err)
	} else {
		_ = unix.Close(fd)
	}
	point := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envDeaf+"="+point, envCall+"="+call)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if kerr := cmd.Process.Kill(); kerr != nil {
		t.Error(kerr)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }() // ends with the process
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the killed process hangs")
		_ = unix.Unmount(point, unix.MNT_FORCE) // cuts the connection, which frees it
		<-gone
	}
	if line != "asked\n" {
		t.Errorf("the process said %q, %v", line, err)
	}
	if err := Recover(point); err != nil {
		t.Error(err)
	}
}
