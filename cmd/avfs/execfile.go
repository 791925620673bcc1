package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"mvdan.cc/sh/v3/syntax"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy"
)

// maxScript is how long a file of commands may be, in bytes.
const maxScript = 16 << 20

// runFile runs the commands of a file one after the other, each as an execution of its
// own, and stops behind the first that fails unless it is to keep going. The exit code
// is that of the first failure.
func (c *execCmd) runFile(a *app) error {
	if len(c.Command) > 0 || c.Shell != "" || c.Stdin || c.Events || c.Fork != "" || c.KeepRunning.set {
		return usageError("--file excludes a command, --shell, --stdin, --events, --keep-running and --fork")
	}
	scripts, err := a.scriptsOf(c.File)
	if err != nil {
		return err
	}
	docs := []*proxy.Envelope{}
	code := exitOK
	for _, script := range scripts {
		a.note("+ %s", safe(script))
		one := *c
		one.File, one.Shell = "", script
		env, err := one.runOne(a)
		if env != nil {
			docs = append(docs, env)
		}
		var e *ended
		if err != nil && !errors.As(err, &e) {
			return err
		}
		if e != nil && code == exitOK {
			code = e.code
		}
		if code != exitOK && !c.KeepGoing || a.ctx.Err() != nil {
			break
		}
	}
	if a.flags.JSON {
		if err := a.printJSON(docs); err != nil {
			return err
		}
	} else if left := len(scripts) - len(docs); left > 0 {
		a.note("avfs: %d of %d commands were not run", left, len(scripts))
	}
	if code != exitOK {
		return &ended{code}
	}
	return nil
}

// runOne runs one command. Without --json its output and its summary are printed; with
// it the envelope is for the caller to print.
func (c *execCmd) runOne(a *app) (*proxy.Envelope, error) {
	req, err := c.request(a)
	if err != nil {
		return nil, err
	}
	w, rules, err := a.rules(c.Fork)
	if err != nil {
		env := (&proxy.Proxy{Workspace: w}).NotReady(a.ctx, req, err)
		return env, a.tellExec(env, nil)
	}
	ctx, signals := a.relay()
	defer signals.close()
	req.Interrupt = signals.forward
	p := &proxy.Proxy{Workspace: w, Policy: rules, Sole: !a.inner, Observe: func(s proxy.State) {
		a.trace("exec: %s", s)
		if s == proxy.Executing {
			signals.started()
		}
	}}
	if a.flags.JSON {
		env := p.Exec(ctx, req)
		return env, a.tellExec(env, nil)
	}
	a.surviveBrokenPipe()
	out := &live{out: a.stdout, err: a.stderr, broken: func() { signals.pass(brokenPipe) }}
	req.Stdout, req.Stderr = out.stdout, out.stderr
	env := p.Exec(ctx, req)
	return env, a.tellExec(env, out.fail)
}

// tellExec is reportExec without the document. It gives no error for a success.
func (a *app) tellExec(env *proxy.Envelope, output error) error {
	if !a.flags.JSON {
		a.summarise(env)
	}
	err := a.endExec(env, output)
	var e *ended
	if errors.As(err, &e) && e.code == exitOK {
		return nil
	}
	return err
}

// scriptsOf reads the commands of a file, - is standard input: what a shell would run
// one after the other, of one line or several, without comments.
func (a *app) scriptsOf(name string) ([]string, error) {
	in := a.stdin
	if name != stdStream {
		if _, err := a.hostPath(name); err != nil {
			return nil, err
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close() // nothing was written
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxScript+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxScript {
		return nil, &engine.Error{Kind: engine.FileTooLarge, Op: "exec", Path: name, Err: fmt.Errorf("a file of commands has at most %d bytes", maxScript)}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(text), "")
	if err != nil {
		return nil, &engine.Error{Kind: engine.Invalid, Op: "exec", Path: name, Err: err}
	}
	var scripts []string
	for _, s := range file.Stmts {
		scripts = append(scripts, string(text[s.Pos().Offset():endOf(s, text)]))
	}
	return scripts, nil
}

// endOf is where a statement ends, with the here-documents that follow its line.
func endOf(s *syntax.Stmt, text []byte) uint {
	end := s.End().Offset()
	syntax.Walk(s, func(n syntax.Node) bool {
		if r, ok := n.(*syntax.Redirect); ok && r.Hdoc != nil {
			at := r.Hdoc.End().Offset()
			line, _, _ := bytes.Cut(text[at:], []byte{'\n'}) // the word that ends it
			end = max(end, at+uint(len(line)))
		}
		return true
	})
	return end
}
