package main

import (
	"fmt"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// Exit codes. This is the one place that chooses them; the help and the README
// print the same table.
const (
	exitOK        = 0
	exitFailure   = 1
	exitUsage     = 2
	exitNotFound  = 3
	exitConflict  = 4
	exitNoSpace   = 5
	exitDamaged   = 6
	exitLocked    = 7
	exitNotStore  = 8
	exitDenied    = 77
	exitApproval  = 78
	exitTimeout   = 124
	exitExecError = 125
	exitSignal    = 128
)

// exitTable says what the codes mean, for people.
var exitTable = [...]struct {
	code string
	text string
}{
	{"0", "done"},
	{"1", "failed, or grep or search found nothing"},
	{"2", "wrong usage"},
	{"3", "not found: vault, checkpoint, event, path, mount, text to edit"},
	{"4", "conflict: exists already, busy, drift, a merge's conflicts, not empty"},
	{"5", "no space left, or over a quota"},
	{"6", "damaged"},
	{"7", "the store is locked by another process"},
	{"8", "not a store"},
	{"77", "the policy denies the command"},
	{"78", "the policy wants approval first"},
	{"124", "exec: the command timed out"},
	{"125", "exec: avfs itself failed"},
	{"126, 127", "exec: the program cannot be executed, is not found"},
	{"128+n", "ended by signal n"},
}

// exitHelp is the table as text.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes (an exec ends with the command's own):")
	for _, row := range exitTable {
		fmt.Fprintf(&b, "\n  %-8s  %s", row.code, row.text)
	}
	return b.String()
}

var exitByKind = map[engine.Kind]int{
	kindUsage:                  exitUsage,
	engine.Invalid:             exitUsage,
	engine.InvalidName:         exitUsage,
	engine.NameTooLong:         exitUsage,
	engine.NotFound:            exitNotFound,
	engine.VaultNotFound:       exitNotFound,
	engine.CheckpointNotFound:  exitNotFound,
	engine.EventNotFound:       exitNotFound,
	engine.NothingToUndo:       exitNotFound,
	engine.NothingToRedo:       exitNotFound,
	engine.NoAttribute:         exitNotFound,
	workspace.NotMounted:       exitNotFound,
	workspace.SessionNotFound:  exitNotFound,
	workspace.ServiceNotFound:  exitNotFound,
	workspace.ApprovalNotFound: exitNotFound,
	workspace.ApprovalInvalid:  exitConflict,
	workspace.TextNotFound:     exitNotFound,
	workspace.TextNotUnique:    exitConflict,
	engine.Exists:              exitConflict,
	engine.VaultExists:         exitConflict,
	engine.CheckpointExists:    exitConflict,
	engine.Busy:                exitConflict,
	workspace.VaultBusy:        exitConflict,
	engine.Drift:               exitConflict,
	engine.Conflict:            exitConflict,
	engine.NoAncestor:          exitConflict,
	engine.NotEmpty:            exitConflict,
	engine.NoSpace:             exitNoSpace,
	engine.QuotaExceeded:       exitNoSpace,
	engine.FileTooLarge:        exitNoSpace,
	engine.Corrupt:             exitDamaged,
	engine.NotStore:            exitNotStore,
	kindDamaged:                exitDamaged,
	engine.Locked:              exitLocked,
	engine.Interrupted:         exitSignal + sigINT,
}

// sigINT is the number of SIGINT on every system that has signals.
const sigINT = 2

// exitOf is the code for a failure.
func exitOf(kind engine.Kind) int {
	if code, ok := exitByKind[kind]; ok {
		return code
	}
	return exitFailure
}

// exitOfExec is the code for an execution.
func exitOfExec(env *proxy.Envelope) int {
	switch env.Status {
	case proxy.StatusDenied:
		return exitDenied
	case proxy.StatusApprovalRequired:
		return exitApproval
	case proxy.StatusTimedOut:
		return exitTimeout
	case proxy.StatusError:
		if env.Error != nil && env.Error.Kind == engine.Interrupted {
			return exitOf(engine.Interrupted)
		}
		return exitExecError
	}
	if env.ExitCode != nil {
		return *env.ExitCode
	}
	return exitOK
}

// exitOfDecision is the code for a judgement that nothing was run for.
func exitOfDecision(action policy.Action) int {
	switch {
	case action.Allows():
		return exitOK
	case action == policy.RequireApproval:
		return exitApproval
	}
	return exitDenied
}
