package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentvfs/avfs/engine"
)

// mcpPeer is a client of a server, with what it is told besides results.
type mcpPeer struct {
	*mcp.ClientSession
	t       *testing.T
	schemas map[string]*jsonschema.Resolved // of what each tool gives

	mu       sync.Mutex // guards what follows
	progress func(*mcp.ProgressNotificationParams)
	wire     bytes.Buffer // what was sent and received
}

func (p *mcpPeer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wire.Write(b)
}

// onProgress has fn told of progress; nil ends that.
func (p *mcpPeer) onProgress(fn func(*mcp.ProgressNotificationParams)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress = fn
}

// connect makes a client of a server and asks for its tools.
func connect(t *testing.T, transport mcp.Transport) *mcpPeer {
	t.Helper()
	p := &mcpPeer{t: t, schemas: map[string]*jsonschema.Resolved{}}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			p.mu.Lock()
			fn := p.progress
			p.mu.Unlock()
			if fn != nil {
				fn(req.Params)
			}
		},
	})
	session, err := client.Connect(t.Context(), &mcp.LoggingTransport{Transport: transport, Writer: p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.ClientSession = session
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		p.schemas[tool.Name] = resolved(t, tool.OutputSchema)
	}
	return p
}

func resolved(t *testing.T, schema any) *jsonschema.Resolved {
	t.Helper()
	b, err := json.Marshal(schema)
	var s jsonschema.Schema
	if err = errors.Join(err, json.Unmarshal(b, &s)); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stdio is the program with standard input and output as the transport.
func stdio(args ...string) *mcp.CommandTransport {
	cmd := exec.Command("avfs", append([]string{"-q", "mcp"}, args...)...)
	cmd.Stderr = os.Stderr
	return &mcp.CommandTransport{Command: cmd}
}

// httpServer is the program serving HTTP, until the test ends.
func httpServer(t *testing.T, args ...string) (at mcpDoc, token string) {
	t.Helper()
	cmd := exec.Command("avfs", append([]string{"--json", "mcp", "--listen"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err = errors.Join(err, json.Unmarshal(line, &at)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(at.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	return at, strings.TrimSpace(string(b))
}

// bearer brings a token with each request, and can refuse the newest protocol, as a
// server would that does not know it.
type bearer struct {
	token string
	old   bool
	next  http.RoundTripper
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.old && req.Header.Get("Mcp-Protocol-Version") >= statelessSince {
		return &http.Response{StatusCode: http.StatusBadRequest, Body: http.NoBody, Request: req, Header: http.Header{}}, nil
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(req)
}

func overHTTP(url string, b *bearer) *mcp.StreamableClientTransport {
	b.next = http.DefaultTransport.(*http.Transport).Clone()
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: b}}
}

// call calls a tool and holds its result to the schema of the tool.
func (p *mcpPeer) call(ctx context.Context, tool string, args map[string]any) (*mcp.CallToolResult, error) {
	p.t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken(tool)
	res, err := p.CallTool(ctx, params)
	if err == nil {
		p.check(tool, res)
	}
	return res, err
}

func (p *mcpPeer) check(tool string, res *mcp.CallToolResult) {
	p.t.Helper()
	if err := p.schemas[tool].Validate(res.StructuredContent); err != nil {
		p.t.Errorf("%s: %v is not what its schema says: %v", tool, res.StructuredContent, err)
	}
	if len(res.Content) == 0 || strings.TrimSpace(said(res)) == "" {
		p.t.Errorf("%s says nothing to a model", tool)
	}
}

// must calls a tool that has to work.
func (p *mcpPeer) must(tool string, args map[string]any) *mcp.CallToolResult {
	p.t.Helper()
	res, err := p.call(p.t.Context(), tool, args)
	if err != nil || res.IsError {
		p.t.Fatalf("%s %v: %v %s", tool, args, err, said(res))
	}
	return res
}

// fails calls a tool that has to fail, and returns what it says.
func (p *mcpPeer) fails(tool string, args map[string]any) (text string, doc map[string]any) {
	p.t.Helper()
	res, err := p.call(p.t.Context(), tool, args)
	if err != nil || !res.IsError {
		p.t.Fatalf("%s %v does not fail: %v %s", tool, args, err, said(res))
	}
	doc, _ = res.StructuredContent.(map[string]any)
	return said(res), doc
}

// said is what a result tells a model.
func said(res *mcp.CallToolResult) string {
	var b strings.Builder
	if res != nil {
		for _, c := range res.Content {
			if text, ok := c.(*mcp.TextContent); ok {
				b.WriteString(text.Text)
			}
		}
	}
	return b.String()
}

// toolOf is the tool for a step of the scenario with its arguments; empty where the
// command line has to do it.
func toolOf(s *scenarioStep) (tool string, args map[string]any) {
	args = maps.Clone(s.Args)
	rename := func(from, to string) {
		if v, ok := args[from]; ok {
			delete(args, from)
			args[to] = v
		}
	}
	switch s.Op {
	case "vault_create", "approvals_approve":
		return "", nil
	case "vault_fork":
		rename("vault", "source")
		return "avfs_fork", args
	case "vault_merge":
		return "avfs_merge", args
	case "ls":
		return "avfs_list", args
	case "cat":
		return "avfs_read", args
	case "edit":
		rename("all", "replace_all")
	case "checkpoint_restore":
		rename("id", "state")
		return "avfs_restore", args
	case "exec":
		rename("shell", "command")
		if ms, ok := args["timeout_ms"].(float64); ok {
			delete(args, "timeout_ms")
			args["timeout_seconds"] = ms / 1000
		}
	}
	return "avfs_" + s.Op, args
}

// byMCP performs a step with a tool.
func byMCP(t *testing.T, p *mcpPeer) func(*scenarioStep) (any, bool) {
	commandLine := byCommandLine(t)
	return func(s *scenarioStep) (any, bool) {
		t.Helper()
		tool, args := toolOf(s)
		switch {
		case tool == "":
			return commandLine(s)
		case s.CancelOn != "":
			return p.cancelled(tool, args, s.CancelOn), false
		}
		res, err := p.call(t.Context(), tool, args)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		doc, _ := res.StructuredContent.(map[string]any)
		if list, ok := doc["result"]; ok && len(doc) == 1 {
			return list, res.IsError
		}
		_, isFault := doc["error"].(string)
		return doc, res.IsError && isFault
	}
}

// cancelled calls a tool and cancels the call when progress tells a text. The result that
// the server sends all the same is not for who has cancelled: it is taken from the wire.
func (p *mcpPeer) cancelled(tool string, args map[string]any, on string) any {
	p.t.Helper()
	p.cancel(tool, args, on)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if doc := p.received("interrupted"); doc != nil {
			return doc
		}
	}
	p.t.Fatal("the server never told of the cancelled command")
	return nil
}

// cancel calls a tool and cancels the call when progress tells a text.
func (p *mcpPeer) cancel(tool string, args map[string]any, on string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	p.onProgress(func(n *mcp.ProgressNotificationParams) {
		if strings.Contains(n.Message, on) {
			cancel()
		}
	})
	defer p.onProgress(nil)
	if _, err := p.call(ctx, tool, args); !errors.Is(err, context.Canceled) {
		p.t.Fatalf("the cancelled call ended with %v", err)
	}
}

// unheard is perform, for a client that is told nothing of a call that it has cancelled:
// the audit tells how the command has ended.
func (p *mcpPeer) unheard(perform func(*scenarioStep) (any, bool)) func(*scenarioStep) (any, bool) {
	return func(s *scenarioStep) (any, bool) {
		p.t.Helper()
		if s.CancelOn == "" {
			return perform(s)
		}
		tool, args := toolOf(s)
		p.cancel(tool, args, s.CancelOn)
		vault, _ := s.Args["vault"].(string)
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if newestStatus(p.t, vault) == "interrupted" {
				return s.Expect, false
			}
		}
		p.t.Fatal("the audit never tells of the cancelled command")
		return nil, false
	}
}

// newestStatus is how the newest command of a vault has ended, as the audit tells it.
func newestStatus(t *testing.T, vault string) string {
	t.Helper()
	out, err := exec.Command("avfs", "--json", "--vault", vault, "audit", "-n", "1").Output()
	var entries []engine.AuditEntry
	if err = errors.Join(err, json.Unmarshal(out, &entries)); err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		return ""
	}
	return entries[0].Status
}

// received is the newest structured content on the wire with some status.
func (p *mcpPeer) received(status string) any {
	p.mu.Lock()
	lines := strings.Split(p.wire.String(), "\n")
	p.mu.Unlock()
	for _, line := range slices.Backward(lines) {
		text, ok := strings.CutPrefix(line, "read: ")
		var msg struct {
			Result struct {
				Doc map[string]any `json:"structuredContent"`
			} `json:"result"`
		}
		if ok && json.Unmarshal([]byte(text), &msg) == nil && msg.Result.Doc["status"] == status {
			return msg.Result.Doc
		}
	}
	return nil
}

// TestScenarioByMCP runs the scenario with the program as a server and the SDK's client.
func TestScenarioByMCP(t *testing.T) {
	for _, way := range []string{"stdio", "http", "http with sessions"} {
		t.Run(way, func(t *testing.T) {
			scenarioHome(t)
			sc := loadScenario(t)
			var transport mcp.Transport = stdio()
			if way != "stdio" {
				at, token := httpServer(t, "127.0.0.1:0")
				transport = overHTTP(at.URL, &bearer{token: token, old: way != "http"})
			}
			p := connect(t, transport)
			sc.perform = byMCP(t, p)
			if way != "stdio" { // who cancels a call closes its connection
				sc.perform = p.unheard(sc.perform)
			}
			sc.run(t)
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// unixTransport speaks HTTP at a socket.
func unixTransport(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
}
