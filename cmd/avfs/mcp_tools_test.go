package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpHome gives a test a workspace with a vault main.
func mcpHome(t *testing.T) {
	t.Helper()
	scenarioHome(t)
	avfs(t, "vault", "create", "main")
}

// avfs runs the program and returns what it prints.
func avfs(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("avfs", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("avfs %q: %v: %s", args, err, out)
	}
	return string(out)
}

// tools lists what a server offers.
func tools(t *testing.T, readOnly bool) []*mcp.Tool {
	t.Helper()
	s := newMCPServer(t.Context(), nil, "main", readOnly)
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.Connect(t.Context(), here, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if session.InitializeResult().Instructions == "" {
		t.Error("the server gives no instructions")
	}
	var list []*mcp.Tool
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tool)
	}
	return list
}

// TestMCPTools holds the tools to what clients and models need of them.
func TestMCPTools(t *testing.T) {
	all := tools(t, false)
	if len(all) < 15 || len(all) > 20 {
		t.Errorf("%d tools: a model has to choose among them", len(all))
	}
	asked := 0 // bytes that a model reads
	for _, tool := range all {
		b, err := json.Marshal(map[string]any{"name": tool.Name, "description": tool.Description, "inputSchema": tool.InputSchema})
		if err != nil {
			t.Fatal(err)
		}
		asked += len(b)
		in, _ := tool.InputSchema.(map[string]any)
		out, _ := tool.OutputSchema.(map[string]any)
		a := tool.Annotations
		switch {
		case !strings.HasPrefix(tool.Name, "avfs_") || tool.Description == "" || tool.Title == "":
			t.Errorf("%s lacks its name, title or description", tool.Name)
		case in["type"] != "object" || in["additionalProperties"] == nil:
			t.Errorf("%s takes arguments that it does not know: %v", tool.Name, in)
		case out["type"] != "object":
			t.Errorf("%s gives something else than an object, which most clients do not take", tool.Name)
		case a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil || a.ReadOnlyHint && *a.DestructiveHint:
			t.Errorf("%s lacks hints: %+v", tool.Name, a)
		}
		properties, _ := in["properties"].(map[string]any)
		for name, p := range properties {
			if text, _ := p.(map[string]any)["description"].(string); text == "" {
				t.Errorf("%s does not say what %s is", tool.Name, name)
			}
		}
	}
	if asked > 20<<10 {
		t.Errorf("names, descriptions and arguments are %d bytes, which every conversation begins with", asked)
	}
	for name, want := range map[string]string{
		"avfs_read": "read", "avfs_log": "read", "avfs_output": "read", "avfs_fork": "add", "avfs_checkpoint_save": "add",
		"avfs_exec": "destroy", "avfs_write": "destroy", "avfs_restore": "destroy", "avfs_merge": "destroy",
	} {
		i := slices.IndexFunc(all, func(tool *mcp.Tool) bool { return tool.Name == name })
		if i < 0 {
			t.Errorf("there is no %s", name)
			continue
		}
		got := "add"
		switch a := all[i].Annotations; {
		case a.ReadOnlyHint:
			got = "read"
		case *a.DestructiveHint:
			got = "destroy"
		}
		if got != want {
			t.Errorf("%s says that it can %s, want %s", name, got, want)
		}
	}
}

// TestMCPPage compares the table of the page with the tools.
func TestMCPPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.HasPrefix(cells[1], " `avfs_") {
			rows[strings.Trim(cells[1], " `")] = true
		}
	}
	for _, tool := range tools(t, false) {
		if !rows[tool.Name] {
			t.Errorf("the page does not have %s", tool.Name)
		}
		delete(rows, tool.Name)
	}
	for name := range rows {
		t.Errorf("the page has %s, which is no tool", name)
	}
}

// TestMCPReadOnly holds that such a server offers nothing that changes anything.
func TestMCPReadOnly(t *testing.T) {
	some := tools(t, true)
	for _, tool := range some {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s is offered", tool.Name)
		}
	}
	if len(some) < 8 {
		t.Errorf("only %d tools are left", len(some))
	}
}

// TestMCPErrors looks at what models are told when something does not work.
func TestMCPErrors(t *testing.T) {
	mcpHome(t)
	p := connect(t, stdio())
	defer p.Close()
	p.must("avfs_write", map[string]any{"path": "f", "text": "one\none\n"})
	for _, c := range []struct {
		tool string
		args map[string]any
		want []string
	}{
		{"avfs_exec", map[string]any{"command": "rm -rf /"}, []string{"denied by the policy", "rm-root", "did not run"}},
		{"avfs_exec", map[string]any{"argv": []string{"git", "push", "--force"}}, []string{"a person has to approve", "avfs approvals approve 0", "cannot approve it yourself"}},
		{"avfs_exec", map[string]any{"command": "sleep 60", "timeout_seconds": 0.2}, []string{"timed out"}},
		{"avfs_exec", map[string]any{"command": "ls", "argv": []string{"ls"}}, []string{"either command or argv"}},
		{"avfs_exec", map[string]any{"argv": []string{"no-such-program"}}, []string{"no-such-program"}},
		{"avfs_exec", map[string]any{"command": "true", "vault": "none"}, []string{"VaultNotFound", "avfs_vault_list"}},
		{"avfs_read", map[string]any{"path": "missing"}, []string{"NotFound", "missing"}},
		{"avfs_edit", map[string]any{"path": "f", "old": "one", "new": "two"}, []string{"TextNotUnique", "replace_all"}},
		{"avfs_restore", map[string]any{"state": "none"}, []string{"CheckpointNotFound", "avfs_checkpoint_list"}},
		{"avfs_import", map[string]any{"source": "relative"}, []string{"absolute"}},
	} {
		text, doc := p.fails(c.tool, c.args)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %v says %q, which lacks %q", c.tool, c.args, text, want)
			}
		}
		if doc["error"] == nil && doc["status"] == nil {
			t.Errorf("%s %v: the structured content tells no kind: %v", c.tool, c.args, doc)
		}
	}
	// Arguments that the schema does not have never reach the command.
	res, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "avfs_write", Arguments: map[string]any{"path": "g", "txt": "x"}})
	if err != nil || !res.IsError {
		t.Errorf("unknown arguments are taken: %v %s", err, said(res))
	}
	if text := said(p.must("avfs_exec", map[string]any{"command": "grep nothing f"})); !strings.Contains(text, "exit code 1") {
		t.Errorf("a command that ends with 1 is told of with %q", text)
	}
}

// TestMCPBounds holds what a model has to read to a size, and tells how to go on.
func TestMCPBounds(t *testing.T) {
	mcpHome(t)
	p := connect(t, stdio("--vault", "main"))
	defer p.Close()
	res := p.must("avfs_exec", map[string]any{"command": "for d in 1 2 3; do mkdir d$d; for i in $(seq 200); do echo $i needle > d$d/f$i; done; done; seq 30000 | tee big; head -c 3000000 /dev/zero | tr '\\0' x > line"})
	text := said(res)
	if len(text) > maxText+100 || !strings.Contains(text, "read the rest with avfs_output") || !strings.Contains(text, "505 more") {
		t.Errorf("an exec is told of with %d bytes: %s", len(text), text[max(len(text)-300, 0):])
	}
	whole := ""
	for from := 0; ; {
		doc, _ := p.must("avfs_output", map[string]any{"from": from}).StructuredContent.(map[string]any)
		part, _ := doc["text"].(string)
		whole += part
		if from += len(part); part == "" || from >= int(doc["kept"].(float64)) {
			break
		}
	}
	if lines := strings.Count(whole, "\n"); lines != 30000 {
		t.Errorf("the output in parts has %d lines", lines)
	}
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"avfs_grep", map[string]any{"pattern": "needle"}, "100 more: narrow the search"},
		{"avfs_list", map[string]any{"depth": 3}, "more: ask for less"},
		{"avfs_find", map[string]any{"name": []string{"f*"}}, "100 more: ask for less"},
		{"avfs_read", map[string]any{"path": "big"}, "go on with offset 2001"},
		{"avfs_read", map[string]any{"path": "big", "offset": 15000, "limit": 3}, " 15002\t15002\n\n[there is more: go on with offset 15003]"},
		{"avfs_read", map[string]any{"path": "big", "offset": 29999}, " 30000\t30000\n"},
		{"avfs_read", map[string]any{"path": "big", "offset": 300000}, "no line 300000"},
		{"avfs_read", map[string]any{"path": "line"}, "[line 1 is too long: its last 2967232 bytes are left out"},
		{"avfs_diff", map[string]any{"from": "base", "to": "now"}, "more"},
	} {
		if c.tool == "avfs_diff" { // what began as no fork is compared with a checkpoint
			c.args = map[string]any{"from": "c1", "text": true}
		}
		res := p.must(c.tool, c.args)
		if text := said(res); !strings.Contains(text, c.want) || len(text) > maxText+100 {
			t.Errorf("%s %v says %d bytes without %q: %s", c.tool, c.args, len(text), c.want, text[max(len(text)-200, 0):])
		}
		b, err := json.Marshal(res.StructuredContent)
		if err != nil || len(b) > maxDocument+100 {
			t.Errorf("%s %v gives %d bytes (%v)", c.tool, c.args, len(b), err)
		}
	}
}

// TestMCPParallel has one client call ten tools at the same time, again and again.
func TestMCPParallel(t *testing.T) {
	mcpHome(t)
	p := connect(t, stdio())
	defer p.Close()
	p.must("avfs_write", map[string]any{"path": "shared", "text": "end\n"})
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			file, text := fmt.Sprintf("f%d", i), fmt.Sprintf("text %d\n", i)
			p.must("avfs_write", map[string]any{"path": file, "text": text})
			if got := said(p.must("avfs_exec", map[string]any{"argv": []string{"cat", file}})); !strings.Contains(got, text) {
				t.Errorf("exec %d prints %s", i, got)
			}
			p.must("avfs_edit", map[string]any{"path": "shared", "old": "end\n", "new": text + "end\n"})
			if got := said(p.must("avfs_read", map[string]any{"path": file})); !strings.Contains(got, text) {
				t.Errorf("%s has %q", file, got)
			}
		})
	}
	wg.Wait()
	if got := avfs(t, "cat", "shared"); strings.Count(got, "\n") != 11 {
		t.Errorf("edits are lost: %s", got)
	}
}

// TestMCPImport looks at what a client is told while an import goes on, and at the
// resources of the vault.
func TestMCPImport(t *testing.T) {
	mcpHome(t)
	src := t.TempDir()
	for i := range 3000 {
		if err := os.WriteFile(filepath.Join(src, fmt.Sprint(i)), bytes.Repeat([]byte{byte(i)}, 9000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := connect(t, stdio())
	defer p.Close()
	var mu sync.Mutex
	var counts []float64
	told := ""
	p.onProgress(func(n *mcp.ProgressNotificationParams) {
		mu.Lock()
		defer mu.Unlock()
		counts = append(counts, n.Progress)
		told = n.Message
	})
	p.must("avfs_import", map[string]any{"source": src, "dest": "in"})
	p.must("avfs_write", map[string]any{"path": "in/text", "text": "a resource"})
	mu.Lock()
	defer mu.Unlock()
	if len(counts) == 0 || !slices.IsSorted(counts) || !strings.Contains(told, "files, ") {
		t.Errorf("an import told %v, and last %q", counts, told)
	}
	res, err := p.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "avfs://main/in/text"})
	if err != nil || res.Contents[0].Text != "a resource" {
		t.Errorf("the resource is %+v (%v)", res, err)
	}
	if _, err := p.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "avfs://main/in/none"}); err == nil {
		t.Error("a resource that is not there is read")
	}
}

// TestMCPFork holds that a server with a fork makes it once, and leaves the vault alone.
func TestMCPFork(t *testing.T) {
	mcpHome(t)
	for i := range 2 {
		p := connect(t, stdio("--vault", "main", "--fork", "task"))
		p.must("avfs_write", map[string]any{"path": fmt.Sprint(i), "text": "x"})
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if main, fork := avfs(t, "--vault", "main", "ls"), avfs(t, "--vault", "task", "ls"); main != "" || fork != "0\n1\n" {
		t.Errorf("the vault has %q and the fork %q", main, fork)
	}
}

// TestMCPEnds ends a server while a command runs, in each way: the command is interrupted,
// and nothing stays behind.
func TestMCPEnds(t *testing.T) {
	for name, end := range map[string]func(in io.Closer, server *os.Process) error{
		"its input ends": func(in io.Closer, _ *os.Process) error { return in.Close() },
		"SIGTERM":        func(_ io.Closer, server *os.Process) error { return server.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			mcpHome(t)
			cmd := exec.Command("avfs", "-q", "mcp")
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			var out bytes.Buffer
			cmd.Stdout = &out
			if err = errors.Join(err, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"avfs_exec","arguments":{"command":"touch begun; sleep 61"}}}`,
			} {
				if _, err := io.WriteString(in, line+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			for deadline := time.Now().Add(20 * time.Second); !strings.Contains(avfs(t, "ls"), "begun"); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the command never began")
				}
			}
			started := time.Now()
			if err := errors.Join(end(in, cmd.Process), cmd.Wait()); err != nil {
				t.Errorf("the server ended with %v: %s", err, out.Bytes())
			}
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("the server took %s to end", took)
			}
			if got := newestStatus(t, "main"); got != "interrupted" {
				t.Errorf("the audit says %q of the command", got)
			}
			for line := range strings.Lines(out.String()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("standard output carries something else than the protocol: %q", line)
				}
			}
		})
	}
}

// TestMCPDoor holds who may speak to a server over HTTP.
func TestMCPDoor(t *testing.T) {
	mcpHome(t)
	at, token := httpServer(t, "127.0.0.1:0")
	if info, err := os.Stat(at.TokenFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v %v", info, err)
	}
	ask := func(change func(*http.Request)) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.URL,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+token)
		change(req)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"with the token":    {func(*http.Request) {}, http.StatusOK},
		"without":           {func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"with another":      {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") }, http.StatusUnauthorized},
		"for another host":  {func(r *http.Request) { r.Host = "example.com" }, http.StatusForbidden},
		"from another site": {func(r *http.Request) { r.Header.Set("Origin", "https://example.com") }, http.StatusForbidden},
	} {
		if got := ask(c.change); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	for _, address := range []string{"0.0.0.0:0", "example.com:80", ":0", "7777"} {
		if out, err := exec.Command("avfs", "mcp", "--listen", address).CombinedOutput(); err == nil || !strings.Contains(string(out), "--listen") {
			t.Errorf("--listen %s: %v: %s", address, err, out)
		}
	}
}

// TestMCPSession ends a session over HTTP while its command runs.
func TestMCPSession(t *testing.T) {
	mcpHome(t)
	at, token := httpServer(t, "127.0.0.1:0")
	p := connect(t, overHTTP(at.URL, &bearer{token: token, old: true}))
	begun := make(chan struct{})
	p.onProgress(func(n *mcp.ProgressNotificationParams) {
		if strings.Contains(n.Message, "begun") {
			close(begun)
		}
	})
	done := make(chan error, 1)
	go func() { // ends with the call
		_, err := p.call(context.WithoutCancel(t.Context()), "avfs_exec", map[string]any{"command": "echo begun; sleep 62"})
		done <- err
	}()
	<-begun
	started := time.Now()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, at.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", p.ID())
	res, err := (&http.Client{Transport: &bearer{token: token, next: http.DefaultTransport}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusNoContent {
		t.Errorf("the end of the session is answered with %d", res.StatusCode)
	}
	<-done
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("the session took %s to end", took)
	}
	if got := newestStatus(t, "main"); got != "interrupted" {
		t.Errorf("the audit says %q of the command", got)
	}
}

// TestMCPSocket serves at a Unix socket, also where a killed server has left one.
func TestMCPSocket(t *testing.T) {
	mcpHome(t)
	socket := filepath.Join(t.TempDir(), "mcp.sock")
	for range 2 {
		cmd := exec.Command("avfs", "--json", "mcp", "--listen", "unix:"+socket)
		out, err := cmd.StdoutPipe()
		if err = errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		var at mcpDoc
		if err := json.NewDecoder(out).Decode(&at); err != nil || at.Socket != socket {
			t.Fatalf("the server tells %+v (%v)", at, err)
		}
		c := &http.Client{Transport: unixTransport(socket)}
		p := connect(t, &mcp.StreamableClientTransport{Endpoint: at.URL, HTTPClient: c})
		p.must("avfs_vault_list", nil)
		c.CloseIdleConnections()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
	}
}

// TestBounded cuts documents of every form.
func TestBounded(t *testing.T) {
	long := strings.Repeat("a text ", maxDocument/6)
	list := make([]map[string]string, 5000)
	for i := range list {
		list[i] = map[string]string{"path": fmt.Sprintf("some/path/to/a/file/%d", i)}
	}
	for name, v := range map[string]any{"list": list, "text": map[string]any{"text": long, "id": "x"}, "both": map[string]any{"text": long, "list": list, "id": "x"}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		short, err := bounded(b)
		var doc map[string]any
		if err = errors.Join(err, json.Unmarshal(short, &doc)); err != nil {
			t.Fatal(err)
		}
		left, _ := doc["omitted"].(map[string]any)
		if len(short) > maxDocument+200 || len(left) == 0 || name != "list" && doc["id"] != "x" {
			t.Errorf("%s: %d bytes, left out is %v", name, len(short), left)
		}
		if l, ok := doc["result"].([]any); name == "list" && (!ok || len(l)+int(left["result"].(float64)) != len(list)) {
			t.Errorf("%d elements are left, and %v told as left out", len(l), left)
		}
	}
	small := json.RawMessage(`{"z":1,"a":[]}`)
	if got, err := bounded(small); err != nil || string(got) != string(small) {
		t.Errorf("a small document becomes %s (%v)", got, err)
	}
}
