package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// TestAnswerRoundTrip sends streams and results through frames, results longer
// than a frame in parts, because a listing of a large vault is one result.
func TestAnswerRoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, maxFrame - 2, maxFrame - 1, 2*maxFrame + 12345} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var wire bytes.Buffer
			a := &answer{w: &wire, flush: func() error { return nil }}
			if _, err := a.Write([]byte("output")); err != nil {
				t.Fatal(err)
			}
			a.progress(Progress{Files: 7})
			want := strings.Repeat("x", size)
			a.finish(want, nil)

			var out bytes.Buffer
			var files int64
			raw, err := readAnswer(&wire, Streams{Out: &out, Progress: func(p Progress) { files = p.Files }})
			var got string
			if err == nil {
				err = json.Unmarshal(raw, &got)
			}
			if err != nil || got != want {
				t.Errorf("%d bytes came back as %d: %v", len(want), len(got), err)
			}
			if out.String() != "output" || files != 7 {
				t.Errorf("the streams brought %q and %d files", out.String(), files)
			}
		})
	}
}

// TestAnswerCutShort tells an owner that died from an answer, at every byte.
func TestAnswerCutShort(t *testing.T) {
	var wire bytes.Buffer
	a := &answer{w: &wire, flush: func() error { return nil }}
	if _, err := a.Write([]byte("output")); err != nil {
		t.Fatal(err)
	}
	a.finish("result", nil)
	for n := range wire.Len() {
		if _, err := readAnswer(bytes.NewReader(wire.Bytes()[:n]), Streams{}); engine.KindOf(err) != OwnerLost {
			t.Errorf("the first %d bytes: %v, want OwnerLost", n, err)
		}
	}
}

// TestOutputFails tells a failure of the caller's output from one of the owner.
func TestOutputFails(t *testing.T) {
	var wire bytes.Buffer
	a := &answer{w: &wire, flush: func() error { return nil }}
	if _, err := a.Write([]byte("output")); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	if _, err := readAnswer(&wire, Streams{Out: failing{full}}); !errors.Is(err, full) {
		t.Errorf("%v, want the error of the output", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestFaultRoundTrip holds that an error keeps its kind, its sentence and its
// details on the way from an owner to a program.
func TestFaultRoundTrip(t *testing.T) {
	cause := &engine.Error{
		Kind: engine.Drift, Op: "undo", Path: "v", Err: errors.New("changed since: <a & b>"),
		Details: map[string]any{"paths": []string{"a", "b"}},
	}
	b, err := json.Marshal(NewFault(fmt.Errorf("wrapped: %w", cause)))
	if err != nil {
		t.Fatal(err)
	}
	var f Fault
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	if f.Kind != engine.Drift || f.Message != "wrapped: undo v: changed since: <a & b>" || len(f.Details["paths"].([]any)) != 2 {
		t.Errorf("%s came back as %+v", b, f)
	}
	if again := NewFault(f.Err()); again.Kind != f.Kind || again.Message != f.Message || len(again.Details) != 1 {
		t.Errorf("as an error it becomes %+v", again)
	}
}

// TestFaultKinds holds what is not an error of the engine to the right kind.
func TestFaultKinds(t *testing.T) {
	locked := NewFault(&kv.LockedError{Path: "/s", PID: 42})
	if locked.Kind != engine.Locked || locked.Details["pid"] != 42 || locked.Details["store"] != "/s" {
		t.Errorf("a locked store: %+v", locked)
	}
	if f := NewFault(io.ErrUnexpectedEOF); f.Kind != engine.Internal {
		t.Errorf("an unknown error: %+v", f)
	}
	if NewFault(nil) != nil {
		t.Error("no error is a fault")
	}
}

// TestPathRoundTrip holds that names travel as bytes.
func TestPathRoundTrip(t *testing.T) {
	for _, want := range []Path{"", "/a", "caf\u00e9", "caf\xe9", "\xff\x00", `{"b64":"x"}`, "a\nb", "\uFFFD"} {
		b, err := json.Marshal([]Path{want})
		if err != nil {
			t.Fatal(err)
		}
		var got []Path
		if err := json.Unmarshal(b, &got); err != nil || got[0] != want {
			t.Errorf("%q travels as %s and becomes %q: %v", string(want), b, got, err)
		}
	}
}
