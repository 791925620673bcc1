// Package proxy runs one command in a vault and tells exactly what happened: it
// judges the command, keeps the state before, makes the vault visible, runs the
// command to its end and reports what changed.
//
//	Validating -> Deciding -> Denied | ApprovalRequired
//	                       -> Preparing (turn, mount, checkpoint) -> Executing -> Reporting -> Completed | Failed
//
// Every end returns an Envelope. The decision comes before any work on the vault:
// a command that is denied never touches it; only the audit of its store notes it.
package proxy
