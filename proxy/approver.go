package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/workspace"
)

const (
	approverTimeout = time.Minute
	approverPoll    = 50 * time.Millisecond
	approverKill    = time.Second // for the pipes of a program that is ended
	maxMessage      = 1 << 10     // bytes of an answer that are kept
)

// askApprover asks who the policy names. One that does not answer in time, or cannot,
// has not answered: the question stays open.
func askApprover(ctx context.Context, who *policy.Approver, a *workspace.Approval) Verdict {
	timeout := approverTimeout
	if who.TimeoutSeconds > 0 {
		timeout = time.Duration(who.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	question, err := json.Marshal(a)
	if err != nil {
		return Verdict{}
	}
	if who.Dir != "" {
		return askDir(ctx, who.Dir, a.ID, question)
	}
	return askCommand(ctx, who.Command, question)
}

// askCommand runs a program that answers by its exit code.
func askCommand(ctx context.Context, argv []string, question []byte) Verdict {
	v := Verdict{By: "approver " + filepath.Base(argv[0])}
	var out message
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(question), &out, io.Discard
	cmd.WaitDelay = approverKill
	err := cmd.Run()
	v.Message = out.String()
	var ended *exec.ExitError
	switch {
	case err == nil:
		v.Answered, v.Approve = true, true
	case errors.As(err, &ended) && ended.ExitCode() == 1 && ctx.Err() == nil:
		v.Answered = true
	}
	return v
}

// askDir puts the question into a directory, and looks for the answer. Both go when it
// is over.
func askDir(ctx context.Context, dir, id string, question []byte) Verdict {
	v := Verdict{By: "approver " + dir}
	base := filepath.Join(dir, id)
	tmp := base + ".tmp"
	err := os.WriteFile(tmp, append(question, '\n'), 0o600)
	if err == nil {
		err = os.Rename(tmp, base+".json")
	}
	if err != nil {
		return v
	}
	defer func() {
		for _, end := range []string{".json", ".yes", ".no"} {
			_ = os.Remove(base + end) // who has answered may have removed them
		}
	}()
	for {
		for _, end := range []string{".no", ".yes"} { // a no counts more
			text, err := os.ReadFile(base + end)
			if err != nil {
				continue
			}
			var m message
			_, _ = m.Write(text) // never fails
			v.Answered, v.Approve, v.Message = true, end == ".yes", m.String()
			return v
		}
		select {
		case <-ctx.Done():
			return v
		case <-time.After(approverPoll):
		}
	}
}

// message keeps the beginning of what an approver says.
type message struct{ b []byte }

// Write never fails.
func (m *message) Write(p []byte) (int, error) {
	m.b = append(m.b, p[:min(len(p), max(maxMessage-len(m.b), 0))]...)
	return len(p), nil
}

func (m *message) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(m.b), "\uFFFD"))
}
