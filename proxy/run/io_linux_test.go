package run_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agentvfs/avfs/proxy/run"
)

// X07: without input the child sees the end of file at once.
func TestNoStdin(t *testing.T) {
	within(t, 2*time.Second, func() {
		r := must(t, sh("cat; readlink /proc/self/fd/0"))
		if r.ExitCode != 0 || r.Stdout.Text != "/dev/null\n" {
			t.Errorf("%+v", r)
		}
	})
}

// X07: input is forwarded with its end, from files and other readers.
func TestStdin(t *testing.T) {
	data := strings.Repeat("0123456789abcde\n", 20000)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(data); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]io.Reader{"file": file, "reader": strings.NewReader(data)} {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		s := sh("wc -c")
		s.Stdin = in
		if r := must(t, s); strings.TrimSpace(r.Stdout.Text) != "320000" || r.StdinError != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// X07: neither an input that never ends nor a child that does not read it holds
// the call, and a file is not read beyond what the child took.
func TestEndlessStdin(t *testing.T) {
	leaks(t, func() {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		for _, script := range []string{"echo done", "head -c 3; echo; echo done", "exec <&-; echo done"} {
			s := sh(script)
			s.Stdin = r
			if strings.HasPrefix(script, "head") {
				if _, err := w.WriteString("abc"); err != nil {
					t.Fatal(err)
				}
			}
			within(t, 2*time.Second, func() {
				if res := must(t, s); !strings.HasSuffix(res.Stdout.Text, "done\n") || res.Stderr.Text != "" {
					t.Errorf("%+v", res)
				}
			})
		}
		if _, err := w.WriteString("kept"); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 8)
		if n, err := r.Read(buf); string(buf[:n]) != "kept" || err != nil {
			t.Errorf("the caller's input was taken: %q %v", buf[:n], err)
		}
		s := sh("sleep .1; echo done") // the pipe fills up and blocks the feed
		s.Stdin = zeros{}
		if res := must(t, s); res.Stdout.Text != "done\n" || res.StdinError != nil {
			t.Errorf("%+v", res)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A failing input is the caller's affair and told as such.
func TestStdinError(t *testing.T) {
	s := sh("cat")
	s.Stdin = io.MultiReader(strings.NewReader("part"), failing{})
	if r := must(t, s); r.Stdout.Text != "part" || !errors.Is(r.StdinError, errTest) || r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
}

var errTest = errors.New("test")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errTest }

// X13: much output costs bounded memory, head and tail are kept, and the child
// finishes.
func TestMuchOutput(t *testing.T) {
	r := must(t, sh("yes | head -c 300000000; echo end"))
	if r.Stdout.Bytes != 300000004 || !r.Stdout.Truncated || r.ExitCode != 0 {
		t.Fatalf("%+v %v", r.Stdout.Bytes, r.ExitCode)
	}
	if !strings.HasPrefix(r.Stdout.Text, "y\ny\n") || !strings.HasSuffix(r.Stdout.Text, "y\nend\n") {
		t.Error("head or tail missing")
	}
	if r.Stdout.Omitted != 300000004-2*run.DefaultKeepBytes || !strings.Contains(r.Stdout.Text, " bytes omitted ") {
		t.Error(r.Stdout.Omitted)
	}
}

// X15: the cut never splits a character, also in one endless line.
func TestCutBetweenCharacters(t *testing.T) {
	s := sh("yes '\u20ac' | head -n 100000 | tr -d '\\n'")
	s.HeadBytes, s.TailBytes = 1000, 1001
	r := must(t, s)
	if !utf8.ValidString(r.Stdout.Text) || strings.Contains(r.Stdout.Text, "\uFFFD") || r.Stdout.Base64 != "" {
		t.Error("split character")
	}
	if r.Stdout.Seam != 999 || r.Stdout.Omitted != 300000-999*2 || r.Stdout.Bytes != 300000 {
		t.Errorf("%+v", r.Stdout)
	}
}

func TestBinaryOutput(t *testing.T) {
	r := must(t, sh(`printf '\377\376\000ok'`))
	raw, err := base64.StdEncoding.DecodeString(r.Stdout.Base64)
	if err != nil || string(raw) != "\xff\xfe\x00ok" || r.Stdout.Text != "\uFFFD\x00ok" {
		t.Errorf("%+v %v", r.Stdout, err)
	}
}

// X17: the combined capture has the order of writing.
func TestCombined(t *testing.T) {
	var teed bytes.Buffer
	s := sh("i=0; while [ $i -lt 200 ]; do echo $i; echo $i >&2; i=$((i+1)); done")
	s.Combined = true
	s.Stdout = func(p []byte) { teed.Write(p) }
	var want strings.Builder
	for i := range 200 {
		n := itoa(i)
		want.WriteString(n + "\n" + n + "\n")
	}
	r := must(t, s)
	if r.Combined.Text != want.String() || teed.String() != want.String() || r.Stdout.Text != "" || r.Stderr.Text != "" {
		t.Errorf("%+v", r)
	}
}

// The tee and the sink get everything in order; a failing sink harms nothing.
func TestTeeAndSink(t *testing.T) {
	var out, errs bytes.Buffer
	var mu sync.Mutex
	full := map[run.Stream]*bytes.Buffer{run.StreamOut: {}, run.StreamErr: {}}
	s := sh("yes out | head -c 3000000; yes err | head -c 2000000 >&2")
	s.Stdout = func(p []byte) { out.Write(p) }
	s.Stderr = func(p []byte) { errs.Write(p) }
	s.Sink = func(stream run.Stream, p []byte) error {
		mu.Lock()
		defer mu.Unlock()
		full[stream].Write(p)
		return nil
	}
	r := must(t, s)
	if out.Len() != 3000000 || errs.Len() != 2000000 || r.SinkError != nil || r.Stderr.Bytes != 2000000 {
		t.Errorf("%d %d %v", out.Len(), errs.Len(), r.SinkError)
	}
	if !bytes.Equal(full[run.StreamOut].Bytes(), out.Bytes()) || !bytes.Equal(full[run.StreamErr].Bytes(), errs.Bytes()) {
		t.Error("the sink got something else")
	}
	calls := atomic.Int32{}
	s.Sink = func(run.Stream, []byte) error { calls.Add(1); return errTest }
	r = must(t, s)
	if !errors.Is(r.SinkError, errTest) || r.ExitCode != 0 || r.Stdout.Bytes != 3000000 || calls.Load() != 2 {
		t.Errorf("%v %v calls", r, calls.Load())
	}
}

// What the leader wrote before its end is never lost, however slow the reader.
func TestSlowReader(t *testing.T) {
	s := sh("sleep 31337 & head -c 1000000 /dev/zero; echo end >&2")
	s.DrainWindow = time.Millisecond
	s.Stdout = func([]byte) { time.Sleep(20 * time.Millisecond) }
	if r := must(t, s); r.Stdout.Bytes != 1000000 || r.Stderr.Text != "end\n" {
		t.Errorf("%d %q", r.Stdout.Bytes, r.Stderr.Text)
	}
}

// A process outside the run that got hold of the pipe cannot hold the call.
func TestForeignHolder(t *testing.T) {
	dir := t.TempDir()
	ready := make(chan struct{})
	var held *os.File
	s := sh("echo $$; while [ ! -e " + dir + "/go ]; do sleep .01; done")
	s.Stdout = func(p []byte) {
		var err error
		held, err = os.OpenFile("/proc/"+strings.TrimSpace(string(p))+"/fd/1", os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
		}
		close(ready)
	}
	go func() {
		<-ready
		if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
			t.Error(err)
		}
	}()
	within(t, 2*time.Second, func() {
		if r := must(t, s); r.ExitCode != 0 || r.Killed != nil || r.Stdout.Text == "" {
			t.Errorf("%+v", r)
		}
	})
	<-ready
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}
