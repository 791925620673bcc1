// Command avfs keeps versioned workspaces for coding agents: it forks them,
// checkpoints them, runs commands in them and tells exactly what changed.
//
// This package parses the command line, calls the packages that do the work and
// prints what they return, for people or as JSON. It decides nothing else.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the program as the process was started and returns its exit code.
func mainCode() int {
	// First of all: a lock or a pipe of the caller's is no business of the commands.
	if err := closeInheritedOnExec(); err != nil {
		fmt.Fprintln(os.Stderr, "avfs: keep what is open from commands:", err)
		return exitFailure
	}
	if path, ok := ownerArgs(os.Args[1:]); ok {
		return ownStore(path)
	}
	if code, ok := takeTerminal(os.Args[1:]); ok {
		return code
	}
	ctx, stop := signalContext(context.Background())
	defer stop()
	return newApp(ctx).run(os.Args[1:])
}

// newApp is a run of the program with the streams and variables of the process.
func newApp(ctx context.Context) *app {
	return &app{
		started: time.Now(), ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, lookupEnv: os.LookupEnv,
		door: "cli",
	}
}

// app is one run of the program.
type app struct {
	ctx            context.Context // ends with the first signal; the run is over soon after
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	lookupEnv      func(string) (string, bool)
	started        time.Time
	flags          globals
	command        string           // that was parsed, such as "vault create"
	args           []string         // as they were given
	keeper         bool             // this process keeps a service running for another one
	fault          *workspace.Fault // why it failed, once it has
	door           string           // by which whoever asks has come in: cli, or a server's
	inner          bool             // this process does other things at the same time: see innerCall

	events func(proxy.Event)        // of an inner run; may be nil
	watch  func(workspace.Progress) // of an inner run; may be nil
}

// run parses and executes a command line and returns the exit code.
func (a *app) run(args []string) int {
	a.args = args
	if len(args) > 0 && args[0] == keeperCommand && !a.inner {
		a.keeper, args = true, args[1:]
	}
	a.flags.JSON, a.flags.JSONErrors = wantsJSON(args), wantsFlag(args, "--json-errors")
	cmd, err := a.parse(args)
	if err == nil && cmd != nil {
		err = cmd.run(a)
	}
	return a.finish(err)
}
