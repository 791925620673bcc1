package run_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/proxy/run"
)

// A command whose directory and program are in a FUSE file system that this very
// process serves must start even if the process has a single scheduler slot:
// with a plain vfork the server could not answer, and nothing would end that. And a
// command that even SIGKILL does not end, because a file system does not answer,
// does not hold the call.
func TestOwnFUSE(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting without a helper needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), helperVar+"=fuse", "GOMAXPROCS=1", "RUN_TEST_DIR="+dir)
	cmd.WaitDelay = time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if uerr := unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH); uerr != nil && !errors.Is(uerr, unix.EINVAL) {
		t.Error(uerr)
	}
	if err != nil {
		t.Fatalf("%v: %s %s", err, text, &stderr)
	}
	var got []string
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"completed 0 " + dir + "\n",
		"completed 3 ./script arg\n",
		"completed 3 " + dir + "/script arg\n",
		"failed_to_start 127 ",
		"failed_to_start 126 ",
		"failed_to_start 126 ",
		"timed_out 124 leaked cat hang",
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// helperFUSE serves a file system and runs commands in it.
func helperFUSE() error {
	dir := os.Getenv("RUN_TEST_DIR")
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	opts := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)
	if err := unix.Mount("test", dir, "fuse.test", unix.MS_NODEV, opts); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- serve(fd) }()
	var list []string
	for _, s := range []run.Spec{
		{Argv: []string{"pwd"}, Dir: dir},
		{Argv: []string{"./script", "arg"}, Dir: dir},
		{Argv: []string{dir + "/script", "arg"}, Dir: "/"},
		{Argv: []string{"./lost"}, Dir: dir},
		{Argv: []string{"./plain"}, Dir: dir},
		{Argv: []string{"./binary"}, Dir: dir},
		{Argv: []string{"cat", "hang"}, Dir: dir, Timeout: 100 * time.Millisecond, Grace: 50 * time.Millisecond},
	} {
		s.Env = env()
		r, err := run.Run(context.Background(), s)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s %d %s", r.Status, r.ExitCode, r.Stdout.Text)
		for _, l := range r.Leaked {
			text += "leaked " + l.Command
		}
		list = append(list, text)
	}
	if err := unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH); err != nil {
		return err
	}
	if err := <-failed; err != nil {
		return err
	}
	// The command that hung ends now, and Run's goroutine reaps it.
	for n := 0; hasChildren() && n < 200; n++ {
		time.Sleep(10 * time.Millisecond)
	}
	if hasChildren() {
		return errors.New("the abandoned command is still there")
	}
	return json.NewEncoder(os.Stdout).Encode(list)
}

func hasChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return !errors.Is(err, unix.ECHILD)
}

// The files of the test's file system; inode i+2 is file i.
var fuseFiles = []struct {
	name, text string
	mode       uint32
}{
	{"script", "echo $0 $1; exit 3\n", 0o755},
	{"plain", "x", 0o644},
	{"lost", "#!/no/such/interpreter\n", 0o755},
	{"binary", "\x00\x01\n", 0o755},
	{"hang", "reading it gets no answer", 0o644},
}

// serve answers as much of the FUSE protocol, version 7.31, as reading files takes.
// Its form is that of linux/fuse.h.
func serve(fd int) error {
	buf := make([]byte, 1<<20)
	le := binary.LittleEndian
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.ENODEV):
			return nil // unmounted
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOENT):
			continue
		case err != nil:
			return err
		}
		op, unique, node, body := le.Uint32(buf[4:]), le.Uint64(buf[8:]), le.Uint64(buf[16:]), buf[40:n]
		if op == 2 || op == 42 || op == 36 { // FORGET, BATCH_FORGET, INTERRUPT: no answer
			continue
		}
		if op == 15 && fuseFiles[node-2].name == "hang" {
			continue
		}
		out, no := answer(op, node, body)
		var b bytes.Buffer
		for _, v := range []any{uint32(16 + len(out)), -int32(no), unique, out} {
			if err := binary.Write(&b, le, v); err != nil {
				return err
			}
		}
		if _, err := unix.Write(fd, b.Bytes()); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
}

func answer(op uint32, node uint64, body []byte) ([]byte, unix.Errno) {
	le := binary.LittleEndian
	switch op {
	case 1: // LOOKUP: no entry or attribute is cached
		name, _, _ := strings.Cut(string(body), "\x00")
		for i, f := range fuseFiles {
			if f.name == name {
				out := make([]byte, 40)
				le.PutUint64(out, uint64(i+2))
				return append(out, attr(uint64(i+2))...), 0
			}
		}
		return nil, unix.ENOENT
	case 3: // GETATTR
		return append(make([]byte, 16), attr(node)...), 0
	case 14, 27: // OPEN, OPENDIR
		return make([]byte, 16), 0
	case 15: // READ
		text := fuseFiles[node-2].text
		return []byte(text[min(int(le.Uint64(body[8:])), len(text)):]), 0
	case 17: // STATFS
		return make([]byte, 80), 0
	case 18, 25, 29, 34: // RELEASE, FLUSH, RELEASEDIR, ACCESS
		return nil, 0
	case 26: // INIT
		out := make([]byte, 64)
		le.PutUint32(out, 7)
		le.PutUint32(out[4:], 31)
		le.PutUint32(out[20:], 64<<10)
		return out, 0
	}
	return nil, unix.ENOSYS
}

func attr(node uint64) []byte {
	le := binary.LittleEndian
	out := make([]byte, 88)
	le.PutUint64(out, node)
	mode, size := uint32(unix.S_IFDIR|0o755), 0
	if node >= 2 {
		f := fuseFiles[node-2]
		mode, size = unix.S_IFREG|f.mode, len(f.text)
	}
	le.PutUint64(out[8:], uint64(size))
	le.PutUint32(out[60:], mode)
	le.PutUint32(out[64:], 1)
	return out
}
