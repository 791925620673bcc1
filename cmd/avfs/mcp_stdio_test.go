package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMCPBadLines holds that a line that is no message is answered with an error, and
// ends neither the server nor the command that runs in it.
func TestMCPBadLines(t *testing.T) {
	mcpHome(t)
	cmd := exec.Command("avfs", "-q", "mcp")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	out, oerr := cmd.StdoutPipe()
	if err = errors.Join(err, oerr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() }) // it ends the server where the test stops early
	long := `{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"avfs_write","arguments":{"path":"f","text":"` + strings.Repeat("x", maxMessage) + `"}}}`
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"avfs_exec","arguments":{"command":"while [ ! -e go ]; do sleep 0.02; done; echo whole"}}}`,
		`not json`, `[]`, ``, `{"jsonrpc":"1.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0"}`, `{} {}`, long,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"avfs_write","arguments":{"path":"go","text":""}}}`,
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(in, strings.Join(lines, "\n")+"\n")
		sent <- err
	}()
	got := map[string]int{} // by id, and the code of the error
	for r, n := bufio.NewReader(out), 0; n < 9; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatal("the server ended: ", err, got)
		}
		var doc struct {
			ID    json.RawMessage
			Error struct{ Code int }
		}
		if err := json.Unmarshal(line, &doc); err != nil {
			t.Fatal(err)
		}
		if string(doc.ID) == "2" && !strings.Contains(string(line), "whole") {
			t.Errorf("the command ended with %s", line)
		}
		if string(doc.ID) == "null" {
			got["null"]++
			continue
		}
		got[string(doc.ID)] = doc.Error.Code
	}
	if got["null"] != 4 || got["7"] != -32600 || got[`"long"`] != -32600 || len(got) != 6 {
		t.Errorf("the answers are %v", got)
	}
	if err := errors.Join(<-sent, in.Close(), cmd.Wait()); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestFaults holds what lines are answered how.
func TestFaults(t *testing.T) {
	for line, want := range map[string]string{
		"":       "",
		" \r\n":  "",
		"nope\n": `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this line is not JSON; each line is one message"}}`,
		"[ ]":    `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch has at least one message"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:        "",
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:      "",
		`{"method":"ping","id":"a"}`:                      `{"jsonrpc":"2.0","id":"a","error":{"code":-32600`,
		`{"id":{},"jsonrpc":"2.0"}`:                       `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`,
		`[1]`:                                             `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`,
		`{"id":4,"x":"` + strings.Repeat("x", maxMessage): `{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"a message has at most 16777216 bytes"}}`,
	} {
		got := string(faultOf([]byte(line)))
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%.40s is answered with %s", line, got)
		}
	}
}
