package proxy

import (
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/proxy/run"
	"github.com/agentvfs/avfs/workspace"
)

// Schema names the version of the envelope. Fields are added within a version,
// never changed or removed.
const Schema = "avfs.exec/v1"

// Status says how an execution ended.
type Status string

// The statuses. In all but StatusCompleted, StatusTimedOut, StatusInterrupted,
// StatusRunning and StatusStopped the command did not run, or avfs cannot say how it
// ended.
const (
	StatusCompleted        Status = "completed"         // the command ended by itself, well or not
	StatusTimedOut         Status = "timed_out"         // it was ended at the timeout
	StatusInterrupted      Status = "interrupted"       // the caller ended it
	StatusRunning          Status = "running"           // it is a service, and goes on
	StatusStopped          Status = "stopped"           // it was a service, which somebody has stopped
	StatusDenied           Status = "denied"            // the policy forbids it
	StatusApprovalRequired Status = "approval_required" // the policy wants a person to agree first
	StatusFailedToStart    Status = "failed_to_start"   // there is no such program, or it cannot be executed
	StatusError            Status = "error"             // avfs itself failed; Error says how
)

// Envelope is the result of an execution, in every case.
type Envelope struct {
	Schema   string          `json:"schema"`
	ID       string          `json:"id"`
	Vault    string          `json:"vault"`
	Status   Status          `json:"status"`
	DryRun   bool            `json:"dry_run,omitempty"` // the policy was asked, and nothing was to run
	Command  CommandDoc      `json:"command"`
	Decision policy.Decision `json:"decision"`
	Approval *ApprovalDoc    `json:"approval,omitempty"` // that the command needs, or had

	Checkpoint string `json:"checkpoint"` // the state before, where one was kept; else empty

	ExitCode *int    `json:"exit_code"` // null: the command did not run
	Signal   *string `json:"signal"`    // that ended the command, such as "SIGKILL"; null: none

	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	Output          string `json:"output,omitempty"`        // both in true order, with combined; then stdout and stderr are empty
	StdoutBytes     int64  `json:"stdout_bytes"`            // as written, kept or not
	StderrBytes     int64  `json:"stderr_bytes"`            //
	OutputBytes     int64  `json:"output_bytes,omitempty"`  //
	StdoutTruncated bool   `json:"stdout_truncated"`        // the middle is left out
	StderrTruncated bool   `json:"stderr_truncated"`        //
	OutputTruncated bool   `json:"output_truncated"`        //
	StdoutBase64    string `json:"stdout_base64,omitempty"` // the kept bytes, where they are not UTF-8
	StderrBase64    string `json:"stderr_base64,omitempty"` //
	OutputBase64    string `json:"output_base64,omitempty"` //

	Service *ServiceDoc `json:"service,omitempty"` // that the command is, once it has started

	OutputKept *KeptOutput `json:"output_kept,omitempty"` // of the full streams, for avfs output

	DurationMS int64 `json:"duration_ms"`
	TimedOut   bool  `json:"timed_out"`

	ChangedFiles []engine.FileChange `json:"changed_files"`
	ChangedTotal int                 `json:"changed_total"` // all, listed or not
	RootBefore   string              `json:"root_before"`
	RootAfter    string              `json:"root_after"`

	LimitsHit       []string  `json:"limits_hit"`       // "timeout", and the limits of the quota that refused something
	EndedProcesses  []Process `json:"ended_processes"`  // descendants that outlived the command and were ended
	LeakedProcesses []Process `json:"leaked_processes"` // those that could not be ended
	Isolation       Isolation `json:"isolation"`

	Notes []string         `json:"notes,omitempty"` // what else is worth knowing, a sentence each
	Error *workspace.Fault `json:"error,omitempty"`

	session *workspace.Session // what the command leaves

	policy string // the digest of the policy that decided, for the audit
}

// ServiceDoc is the handle of a command that keeps running.
type ServiceDoc struct {
	Name string `json:"name"`
	PID  int    `json:"pid"` // of its first process
}

// KeptOutput says what of the full output of a command is kept in the store.
type KeptOutput struct {
	Streams []engine.StreamOutput `json:"streams"`
	Cut     string                `json:"cut,omitempty"` // why not all is kept; empty: all is
}

// CommandDoc is the command as it was asked for.
type CommandDoc struct {
	Argv  []string `json:"argv,omitempty"`
	Shell string   `json:"shell,omitempty"`
	Cwd   string   `json:"cwd"` // in the vault
}

// Process is one process.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

// Isolation says what really confined the command.
type Isolation struct {
	Boundary   string   `json:"boundary"`    // none: the command itself is the boundary
	Applied    []string `json:"applied"`     // such as "session", "environment"
	NotApplied []string `json:"not_applied"` // what this system could not do, a sentence each
}

func processes(list []run.Leftover) []Process {
	docs := make([]Process, 0, len(list))
	for _, l := range list {
		docs = append(docs, Process{PID: l.PID, Command: l.Command})
	}
	return docs
}

// newEnvelope is an envelope in which nothing has happened yet. Lists are never
// null.
func newEnvelope(id string, req *Request) *Envelope {
	return &Envelope{
		Schema: Schema, ID: id, Vault: req.Vault, Status: StatusError, DryRun: req.DryRun,
		Command:         CommandDoc{Argv: req.Argv, Shell: req.Shell, Cwd: req.Cwd},
		Decision:        policy.Decision{Segments: []policy.Segment{}},
		ChangedFiles:    []engine.FileChange{},
		LimitsHit:       []string{},
		EndedProcesses:  []Process{},
		LeakedProcesses: []Process{},
		Isolation:       Isolation{Boundary: "none", Applied: []string{}, NotApplied: []string{}},
	}
}

// toTake is the id of the approval that the command is to use up; empty without.
func (e *Envelope) toTake(req *Request) string {
	if e.Approval == nil || req.granted != nil {
		return ""
	}
	return e.Approval.ID
}

// fail notes a failure of avfs itself.
func (e *Envelope) fail(err error) {
	e.Status = StatusError
	e.Error = workspace.NewFault(err)
}

// ran takes over how the command went.
func (e *Envelope) ran(res run.Result) {
	code := res.ExitCode
	e.ExitCode = &code
	if res.Signal != "" {
		e.Signal = &res.Signal
	}
	e.Stdout, e.StdoutBytes, e.StdoutTruncated, e.StdoutBase64 = res.Stdout.Text, res.Stdout.Bytes, res.Stdout.Truncated, res.Stdout.Base64
	e.Stderr, e.StderrBytes, e.StderrTruncated, e.StderrBase64 = res.Stderr.Text, res.Stderr.Bytes, res.Stderr.Truncated, res.Stderr.Base64
	e.Output, e.OutputBytes, e.OutputTruncated, e.OutputBase64 = res.Combined.Text, res.Combined.Bytes, res.Combined.Truncated, res.Combined.Base64
	e.DurationMS = res.Duration.Milliseconds()
	e.TimedOut = res.TimedOut
	e.EndedProcesses, e.LeakedProcesses = processes(res.Killed), processes(res.Leaked)
	e.Isolation.Applied = append(e.Isolation.Applied, "descendants found by "+string(res.Tracking))
	e.Isolation.Applied = append(e.Isolation.Applied, res.LimitsApplied...)
	e.LimitsHit = append(e.LimitsHit, res.LimitsHit...)
	e.Isolation.NotApplied = append(e.Isolation.NotApplied, res.Limits...)
	switch res.Status {
	case run.TimedOut:
		e.Status = StatusTimedOut
		e.LimitsHit = append(e.LimitsHit, "timeout")
	case run.Interrupted:
		e.Status = StatusInterrupted
	case run.FailedToStart:
		e.Status = StatusFailedToStart
		if res.StartError != nil {
			e.Error = &workspace.Fault{Kind: "FailedToStart", Message: res.StartError.Error()}
		}
	default:
		e.Status = StatusCompleted
	}
}
