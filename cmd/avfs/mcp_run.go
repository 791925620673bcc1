package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

type execArgs struct {
	inVault
	Command        string            `json:"command,omitempty" jsonschema:"a shell script to run; give this or argv"`
	Argv           []string          `json:"argv,omitempty" jsonschema:"a program with its arguments, without a shell"`
	Cwd            string            `json:"cwd,omitempty" jsonschema:"the working directory in the vault; by default the top, or the session's"`
	Env            map[string]string `json:"env,omitempty" jsonschema:"variables to set"`
	Stdin          string            `json:"stdin,omitempty" jsonschema:"what the command reads from standard input"`
	TimeoutSeconds float64           `json:"timeout_seconds,omitempty" jsonschema:"end the command after this time; 300 by default"`
	Session        string            `json:"session,omitempty" jsonschema:"a name: begin where the last command of this session has ended, with what it has exported"`
}

type outputArgs struct {
	inVault
	Exec   string `json:"exec,omitempty" jsonschema:"the id of the exec; by default the newest of the vault"`
	Stream string `json:"stream,omitempty" jsonschema:"stdout, the default, or stderr"`
	From   int64  `json:"from,omitempty" jsonschema:"the first byte to read, counted from 0"`
	Tail   int64  `json:"tail,omitempty" jsonschema:"read only so many of the last bytes instead"`
}

func (s *mcpServer) addRunTools() {
	addTool(s, mcpTool{"avfs_exec", "Run a command", "Run a command in the vault. The policy judges it first; the state before is kept where the policy says so; " +
		"the result tells how it ended, what it printed and which files it changed. It has no terminal, and what it leaves running is ended.", "exec", hints{reachesOut: true}}, execArgs.line, sayExec)
	addTool(s, mcpTool{"avfs_output", "Read the output of a command", "Read what a command has printed, in parts, also what the result of avfs_exec had to leave out.", "output", hints{reads: true}},
		outputArgs.line, sayOutput)
}

func (in execArgs) line() (mcpLine, error) {
	if (in.Command == "") == (len(in.Argv) == 0) {
		return mcpLine{}, errArguments("give either command or argv")
	}
	args := []string{"exec", fmt.Sprintf("--changes=%d", listedFiles)}
	option := func(name, value string) {
		if value != "" {
			args = append(args, name+"="+value)
		}
	}
	option("--shell", in.Command)
	option("--cwd", in.Cwd)
	option("--session", in.Session)
	for name, value := range in.Env {
		if name == "" || strings.Contains(name, "=") {
			return mcpLine{}, errArguments("%q is no name of a variable", name)
		}
		option("--env", name+"="+value)
	}
	if in.TimeoutSeconds < 0 || in.TimeoutSeconds > maxTimeout.Seconds() {
		return mcpLine{}, errArguments("timeout_seconds is above 0 and at most %d", int(maxTimeout.Seconds()))
	}
	if in.TimeoutSeconds > 0 {
		option("--timeout", time.Duration(in.TimeoutSeconds*float64(time.Second)).String())
	}
	if in.Stdin != "" {
		args = append(args, "--stdin")
	}
	if len(in.Argv) > 0 {
		args = append(append(args, "--"), in.Argv...)
	}
	return mcpLine{args: args, stdin: in.Stdin}, nil
}

const (
	// listedFiles is how many changed files an exec lists.
	listedFiles = 200
	// maxTimeout is the longest time that a command may be given.
	maxTimeout = 24 * time.Hour
	// shownOutput is how much of each stream of a command a model is shown, in bytes.
	shownOutput = 12 << 10
)

// execFailed reports whether a command did not run to its end. One that ended with a
// code that is not 0 did: the code may be its answer.
func execFailed(env *proxy.Envelope) bool {
	switch env.Status {
	case proxy.StatusCompleted, proxy.StatusRunning, proxy.StatusStopped:
		return false
	}
	return true
}

// sayExec tells a model how an execution went.
func sayExec(w io.Writer, in execArgs, env proxy.Envelope) {
	switch env.Status {
	case proxy.StatusDenied:
		fmt.Fprintf(w, "denied by the policy: %s (rule %s)\n", env.Decision.Reason, env.Decision.Rule)
		sayToken(w, env.Decision)
		fmt.Fprintln(w, "The command did not run. Do not try to do the same in another way: say that it is not allowed, or do without it.")
		return
	case proxy.StatusApprovalRequired:
		sayApproval(w, &env)
		return
	case proxy.StatusError:
		if env.Error != nil {
			fmt.Fprintf(w, "avfs could not run the command: %s\n", faultText(env.Error))
			return
		}
	}
	fmt.Fprintln(w, execLine(&env))
	if env.Error != nil {
		fmt.Fprintln(w, env.Error.Message)
	}
	for _, n := range env.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	sayStream(w, "stdout", env.Stdout, env.StdoutBytes, env.ID)
	sayStream(w, "stderr", env.Stderr, env.StderrBytes, env.ID)
	if len(env.ChangedFiles) > 0 {
		fmt.Fprintln(w, "changed files:")
		changeLines(w, env.ChangedFiles, shownFiles, env.ChangedTotal)
	}
	for _, l := range env.LimitsHit {
		fmt.Fprintln(w, "ran into the limit:", l)
	}
	for _, p := range env.EndedProcesses {
		fmt.Fprintf(w, "left running, and ended: %s\n", safe(p.Command))
	}
}

// shownFiles is how many changed files a model is shown.
const shownFiles = 100

func sayToken(w io.Writer, d policy.Decision) {
	if d.Token != "" {
		fmt.Fprintf(w, "because of: %s\n", d.Token)
	}
}

func sayApproval(w io.Writer, env *proxy.Envelope) {
	fmt.Fprintf(w, "a person has to approve this command: %s (rule %s)\n", env.Decision.Reason, env.Decision.Rule)
	sayToken(w, env.Decision)
	ap := env.Approval
	switch {
	case ap == nil:
	case ap.State == workspace.ApprovalDenied:
		fmt.Fprintf(w, "It was denied by %s. %s\nDo not ask for it again.\n", safe(ap.By), safe(ap.Message))
	default:
		fmt.Fprintf(w, "The command did not run. Ask the person to run\n  avfs approvals approve %s\nand then call this tool again with the same arguments. You cannot approve it yourself.\n", ap.ID)
	}
}

func sayStream(w io.Writer, name, text string, total int64, exec string) {
	if total == 0 {
		return
	}
	fmt.Fprintf(w, "%s:\n%s", name, shorten(text, shownOutput))
	if !strings.HasSuffix(text, "\n") {
		fmt.Fprintln(w)
	}
	if total > shownOutput {
		fmt.Fprintf(w, "[%s of %s; read the rest with avfs_output, exec %q, stream %q]\n", size(total), name, exec, name)
	}
}

func (in outputArgs) line() (mcpLine, error) {
	args := []string{"output"}
	switch in.Stream {
	case "", workspace.StreamStdout:
	case workspace.StreamStderr:
		args = append(args, "--stderr")
	default:
		return mcpLine{}, errArguments("stream is stdout or stderr, not %q", in.Stream)
	}
	if in.From < 0 || in.Tail < 0 {
		return mcpLine{}, errArguments("from and tail are 0 or more")
	}
	if in.Tail > 0 {
		args = append(args, fmt.Sprintf("--tail=%d", min(in.Tail, maxReadBytes)))
	} else {
		args = append(args, fmt.Sprintf("--range=%d-%d", in.From, in.From+maxReadBytes-1))
	}
	if in.Exec != "" {
		args = append(args, "--", in.Exec)
	}
	return mcpLine{args: args}, nil
}

func sayOutput(w io.Writer, _ outputArgs, doc outputDoc) {
	switch {
	case doc.Text != nil:
		fmt.Fprint(w, *doc.Text)
	case doc.Base64 != nil:
		fmt.Fprintf(w, "no text; in base64: %s", *doc.Base64)
	}
	if doc.To < doc.Kept {
		fmt.Fprintf(w, "\n[bytes %d to %d of %d: go on with from %d]", doc.From, doc.To, doc.Kept, doc.To)
	} else if doc.From == doc.To {
		fmt.Fprintf(w, "[nothing; the stream has %d bytes]", doc.Bytes)
	}
}
