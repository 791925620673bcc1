package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/proxy/run"
	"github.com/agentvfs/avfs/workspace"
)

// innerCall is one command line for a process that runs many, such as a server.
type innerCall struct {
	args           []string  // without the name of the program
	door           string    // what whoever decides about an approval is called, such as api
	stdin          io.Reader // nil is empty
	stdout, stderr io.Writer // nil is nowhere

	events   func(proxy.Event)        // told what happens during an exec; may be nil
	progress func(workspace.Progress) // told how far an import or an export is; may be nil
}

// do runs the command line in this process and returns its exit code. Any number may run
// at the same time. What would be a signal elsewhere is the end of ctx here. The
// environment is that of the process; host paths have to be absolute, because whoever
// asks does not know the working directory.
func (c innerCall) do(ctx context.Context) int {
	code, _ := c.outcome(ctx)
	return code
}

// outcome is do, and says why there is no result, if there is none.
func (c innerCall) outcome(ctx context.Context) (code int, fault *workspace.Fault) {
	a := &app{
		started: time.Now(), ctx: ctx, stdin: c.stdin, stdout: c.stdout, stderr: c.stderr, getenv: os.Getenv, lookupEnv: os.LookupEnv, inner: true, door: c.door,
		events: c.events, watch: c.progress,
	}
	if a.stdin == nil {
		a.stdin = bytes.NewReader(nil)
	}
	if a.stdout == nil {
		a.stdout = io.Discard
	}
	if a.stderr == nil {
		a.stderr = io.Discard
	}
	code = a.run(c.args)
	return code, a.fault
}

// relay is newRelay for this run. Where others run beside it, signals are none of its
// business, and the end of its context comes instead of one.
func (a *app) relay() (context.Context, *relay) {
	if !a.inner {
		return newRelay(a.ctx)
	}
	ctx, cancel := context.WithCancel(a.ctx)
	return ctx, &relay{forward: make(chan os.Signal, 4), quit: make(chan struct{}), cancel: cancel}
}

// hostPath is a path of the host as it was given, made absolute.
func (a *app) hostPath(path string) (string, error) {
	if a.inner && !filepath.IsAbs(path) {
		return "", usageError("a path of the host has to be absolute here, not %q", path)
	}
	return filepath.Abs(path)
}

// hostPaths takes an argument that is a path of the host, or one more of several.
func (a *app) hostPaths(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("path")
	if err != nil {
		return err
	}
	path, err := a.hostPath(fmt.Sprint(t.Value))
	if err != nil {
		return err
	}
	if target.Kind() == reflect.Slice {
		target.Set(reflect.Append(target, reflect.ValueOf(path)))
	} else {
		target.SetString(path)
	}
	return nil
}

// surviveBrokenPipe is the function of that name where it is needed: only standard
// output and standard error, which are not those of an inner run, kill a process.
func (a *app) surviveBrokenPipe() {
	if !a.inner {
		surviveBrokenPipe()
	}
}

// insideRun is the exec that whoever asks is part of, as run.InsideRun tells it.
func (a *app) insideRun() string {
	if by, ok := engine.ActorIn(a.ctx); ok {
		return by.Exec
	}
	return run.InsideRun()
}
