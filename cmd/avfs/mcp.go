package main

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

type mcpCmd struct {
	Listen   string `help:"Serve HTTP at 127.0.0.1:PORT (0 is any free port) or unix:PATH instead of standard input and output; with --json the address is told as one document." placeholder:"ADDRESS"`
	ReadOnly bool   `help:"Offer only the tools that change nothing."`
	Fork     string `help:"Work in this fork of the vault, which is made if it is missing." placeholder:"NAME"`
}

// mcpInstructions is what a model is told before it uses the tools.
const mcpInstructions = `avfs keeps the files of a project in a vault: read and change them only through these tools; paths begin at the top of the vault.
avfs_exec runs a command in the vault, judged by a policy, and tells which files it changed. A denied command must not be tried in another way; one that needs approval waits for a person.
Prefer avfs_edit and avfs_write to shell commands for changing files, and avfs_read, avfs_list, avfs_find and avfs_grep for looking.
Nothing is lost: every command and every change is in avfs_log, avfs_undo takes the newest one back, and avfs_checkpoint_save names a state that avfs_restore brings back.
For a risky task make a fork with avfs_fork, work in it with its name as "vault", look at avfs_diff, and bring it home with avfs_merge.`

func (c *mcpCmd) run(a *app) error {
	if c.Listen == "" && a.flags.JSON {
		return usageError("standard output carries the protocol; --json tells the address of --listen")
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	calls := *a
	calls.inner = true // what the server does itself it does as its calls do
	w, err := calls.workspace()
	if err != nil {
		return err
	}
	vault, err := c.vault(a, w)
	if err != nil {
		return err
	}
	s := newMCPServer(ctx, w, vault, c.ReadOnly)
	if c.Listen != "" {
		return s.serveHTTP(a, c.Listen)
	}
	return s.serveStdio(a, cancel)
}

// vault is the name of the vault that the tools use unless they are told another one.
// It is looked up once, so that 'vault use' elsewhere does not change it; empty means
// that there is none yet.
func (c *mcpCmd) vault(a *app, w *workspace.Workspace) (string, error) {
	vault, _, err := w.Locate(a.flags.Vault)
	switch {
	case c.Fork == "" && a.flags.Vault == "" && engine.KindOf(err) == engine.VaultNotFound:
		a.note("avfs: there is no current vault yet; the tools need one named")
		return "", nil
	case err != nil || c.Fork == "":
		return vault, err
	}
	_, err = w.Fork(a.ctx, workspace.ForkRequest{Vault: vault, Name: c.Fork})
	if engine.KindOf(err) == engine.VaultExists {
		err = nil
	}
	return c.Fork, err
}

// mcpServer offers the commands of avfs as tools.
type mcpServer struct {
	*mcp.Server
	ctx       context.Context // ends with the server, and ends every call
	workspace *workspace.Workspace
	vault     string // of calls that name none
	readOnly  bool

	mu    sync.Mutex // guards what follows
	calls map[*mcpRunning]struct{}
}

// mcpRunning is a call that runs.
type mcpRunning struct {
	session string // the id of its session
	end     context.CancelFunc
}

func newMCPServer(ctx context.Context, w *workspace.Workspace, vault string, readOnly bool) *mcpServer {
	s := &mcpServer{ctx: ctx, workspace: w, vault: vault, readOnly: readOnly, calls: map[*mcpRunning]struct{}{}}
	s.Server = mcp.NewServer(&mcp.Implementation{Name: "avfs", Title: "avfs", Version: version()}, &mcp.ServerOptions{
		Instructions: mcpInstructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
	})
	s.addFileTools()
	s.addRunTools()
	s.addHistoryTools()
	s.addVaultTools()
	s.addResources()
	return s
}

// serveStdio serves one client until it closes our standard input or the program is
// told to end. The commands that run then are ended.
func (s *mcpServer) serveStdio(a *app, cancel context.CancelFunc) error {
	if isTerminal(a.stdin) {
		a.note("avfs: this is for a program that speaks the Model Context Protocol; Ctrl-C ends it")
	}
	out := &shared{w: a.stdout}
	in := newMessages(a.stdin, out, cancel)
	err := s.Run(a.ctx, &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: -1}) // in has a limit
	if a.ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// begin gives the context of a call, which also ends with the server and with the
// call's session. done must be called.
func (s *mcpServer) begin(ctx context.Context, session string) (_ context.Context, done func()) {
	ctx, end := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, end)
	call := &mcpRunning{session: session, end: end}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call] = struct{}{}
	return ctx, func() {
		stop()
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, call)
	}
}

// endSession ends the calls of a session.
func (s *mcpServer) endSession(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for call := range s.calls {
		if call.session == session {
			call.end()
		}
	}
}
