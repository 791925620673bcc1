package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// keeperCommand is the hidden first argument of the process that keeps a service
// running. The others are those of the exec that has started it: it is the caller of
// that exec, in a session of its own. When it dies, its command dies.
const keeperCommand = "__keep"

// keepSettle is how long a service has to run before it counts as started: one that
// cannot work mostly ends at once, and then its envelope says how.
const keepSettle = 200 * time.Millisecond

// keepRunning is a flag with or without a name.
type keepRunning struct {
	set  bool
	name string
}

// IsBool lets the flag stand alone.
func (k *keepRunning) IsBool() bool { return true }

// Decode takes the name, which is only there behind "=".
func (k *keepRunning) Decode(ctx *kong.DecodeContext) error {
	k.set = true
	if t := ctx.Scan.Peek(); t.Type == kong.FlagValueToken {
		k.name = fmt.Sprint(ctx.Scan.Pop().Value)
		if k.name == "" {
			return errors.New("the name is empty")
		}
	}
	return nil
}

// service turns the flag into the name of a service.
func (c *execCmd) service(req *proxy.Request) error {
	if !c.KeepRunning.set {
		return nil
	}
	if c.Events || c.Stdin {
		return usageError("a service has neither --stdin nor --events")
	}
	req.Service = c.KeepRunning.name
	if req.Service != "" {
		return nil
	}
	req.Service = "shell"
	if len(req.Argv) > 0 {
		req.Service = strings.ToLower(filepath.Base(req.Argv[0]))
	}
	if workspace.CheckServiceName(req.Service) != nil {
		req.Service = "service"
	}
	return nil
}

// execService starts a service, by way of a process that keeps it running, and reports
// the envelope that says so. In that process it runs the service to its end.
func (a *app) execService(req proxy.Request, fork string) error {
	if a.keeper {
		return a.keep(req, fork)
	}
	doc, err := a.startKeeper()
	if err != nil {
		return err
	}
	env := &proxy.Envelope{}
	if err := json.Unmarshal(doc, env); err != nil {
		return err
	}
	if a.flags.JSON {
		return a.endExec(env, a.printJSON(json.RawMessage(doc)))
	}
	a.summarise(env)
	return a.endExec(env, nil)
}

// startKeeper starts the keeper and returns its line. It lets the keeper go once the
// service runs; until then what ends this process ends the keeper.
func (a *app) startKeeper() ([]byte, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := closeInheritedOnExec(); err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, append([]string{keeperCommand}, a.args...)...)
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = detached()
	if log := a.keeperLog(); log != nil {
		cmd.Stderr = log
		defer log.Close()
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the keeper of the service: %w", err)
	}
	stop := context.AfterFunc(a.ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // one that has ended needs none
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if stop(); err != nil {
		if werr := cmd.Wait(); errors.Is(err, io.EOF) && werr != nil { // which says more
			err = werr
		}
		return nil, &engine.Error{Kind: engine.Internal, Op: "start service", Err: fmt.Errorf("the process that keeps it has ended: %w", err)}
	}
	go func() { _ = cmd.Wait() }() // ends with the service, or with this process
	return line, nil
}

// keeperLog takes what the keeper writes to standard error; nil if there is no place.
func (a *app) keeperLog() *os.File {
	w, err := a.workspace()
	if err != nil {
		return nil
	}
	_, store, err := w.Locate(a.flags.Vault)
	if err != nil {
		return nil
	}
	log, err := openLog(store)
	if err != nil {
		return nil
	}
	return log
}

// keep runs a service. Its one line is the envelope: that of the start, or that of the
// end if the command does not get that far.
func (a *app) keep(req proxy.Request, fork string) error {
	a.surviveBrokenPipe()
	line := json.NewEncoder(a.stdout)
	line.SetEscapeHTML(false)
	w, rules, err := a.rules(fork)
	if err != nil {
		return line.Encode((&proxy.Proxy{Workspace: w}).NotReady(a.ctx, req, err))
	}
	started, ended := make(chan *proxy.Envelope, 1), make(chan *proxy.Envelope, 1)
	p := &proxy.Proxy{Workspace: w, Policy: rules, Sole: true, Running: func(env *proxy.Envelope) { started <- env }}
	go func() { ended <- p.Exec(a.ctx, req) }() // ends with the service
	select {
	case env := <-ended:
		return line.Encode(env)
	case env := <-started:
		select {
		case env := <-ended:
			return line.Encode(env)
		case <-time.After(keepSettle):
		}
		_ = line.Encode(env) // whoever asked may be gone; the list of services has it
	}
	leaveStdout()
	_ = os.Chdir(string(filepath.Separator)) // where it was asked for may have to go
	<-ended
	return nil
}
