package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/internal/httpapi"
)

// apiArgs serves the API without running anything, and returns what a request would run.
func apiArgs(t *testing.T) (commands []httpapi.Command, ask func(command string, body any) ([]string, string)) {
	t.Helper()
	commands, err := newApp(t.Context()).apiCommands()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := httpapi.Config{Commands: commands, Status: statusOf, Run: func(_ context.Context, c httpapi.Call) httpapi.Outcome {
		_ = json.NewEncoder(c.Stdout).Encode(c.Args)
		return httpapi.Outcome{}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- httpapi.Serve(ctx, l, cfg, io.Discard) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return commands, func(command string, body any) (args []string, text string) {
		t.Helper()
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Post("http://"+l.Addr().String()+"/v1/"+strings.ReplaceAll(command, " ", "/"), "application/json", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, err = io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal(b, &args) // a failure is no list
		return args, string(b)
	}
}

// TestEveryCommandIsInTheAPI holds that a command is there or is left out with a reason,
// and that what is said of commands is said of commands.
func TestEveryCommandIsInTheAPI(t *testing.T) {
	list, _ := apiArgs(t)
	there := map[string]bool{}
	for _, c := range list {
		there[c.Name] = true
	}
	out, known := notInAPI(), map[string]bool{}
	for _, name := range leafCommands(t) {
		known[name] = true
		if _, left := out[name]; left == there[name] {
			t.Errorf("%q has to be in the API, or in notInAPI() with a reason", name)
		}
	}
	for name := range out {
		if !known[name] {
			t.Errorf("notInAPI() has %q, which is no command", name)
		}
	}
	for name := range apiTraits() {
		if !there[name] {
			t.Errorf("apiTraits() has %q, which is not in the API", name)
		}
	}
}

// TestAPINeverMakesFlags gives every parameter of every command a value that looks like a
// flag, and holds that it is a value of that command all the same.
func TestAPINeverMakesFlags(t *testing.T) {
	list, ask := apiArgs(t)
	tried := 0
	for _, c := range list {
		body := map[string]any{}
		names := map[string]bool{}
		for _, p := range c.Params {
			if names[p.Name] {
				t.Errorf("%s has two parameters %q", c.Name, p.Name)
			}
			names[p.Name] = true
			if p.Kind == httpapi.Int {
				body[p.Name] = 1
			}
			if p.Kind != httpapi.Text || len(p.Enum) > 0 {
				continue
			}
			tried++
			if body[p.Name] = any("--json=false"); p.List {
				body[p.Name] = []string{"--json=false", "--", "-x", "--help"}
			}
		}
		args, text := ask(c.Name, body)
		if args == nil {
			t.Errorf("%s %v: %s", c.Name, body, text)
			continue
		}
		a := newApp(t.Context())
		_, err := a.parse(args)
		if err != nil && !strings.Contains(err.Error(), "can't be used together") && !strings.Contains(err.Error(), "invalid duration") {
			t.Errorf("%q is no command line: %v", args, err)
		}
		if err == nil && (a.command != c.Name || !a.flags.JSON || a.flags.Vault != "--json=false") {
			t.Errorf("%q is taken for %q, json %v, vault %q", args, a.command, a.flags.JSON, a.flags.Vault)
		}
	}
	if tried < 100 {
		t.Errorf("only %d parameters were tried", tried)
	}
}

// TestAPIStatuses compares the table of the document with that of the program.
func TestAPIStatuses(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // by status
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			rows[strings.TrimSpace(cells[1])] = cells[2]
		}
	}
	for kind, status := range statusByKind {
		if !strings.Contains(rows[strconv.Itoa(status)], "`"+string(kind)+"`") {
			t.Errorf("the row of %d does not name %s", status, kind)
		}
	}
	named := 0
	for _, row := range rows {
		named += strings.Count(row, "`") / 2
	}
	if named != len(statusByKind) {
		t.Errorf("the table names %d kinds, and there are %d", named, len(statusByKind))
	}
	for kind, code := range exitByKind {
		if _, ok := statusByKind[kind]; !ok && code != exitDamaged {
			t.Errorf("%s has an exit code and no status", kind)
		}
	}
	for name, reason := range notInAPI() {
		if !strings.Contains(string(text), "`"+name+"`") || reason == "" {
			t.Errorf("docs/api.md does not say that %s is left out", name)
		}
	}
}

// TestOpenAPI holds the description to the form of OpenAPI 3.1: every reference leads
// somewhere, every operation has an id of its own and answers, and every schema is one.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	s := startAPI(t, "")
	resp, b := s.send(s.request(t.Context(), http.MethodGet, "openapi.json", nil))
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d: %v", resp.StatusCode, err)
	}
	s.want(doc, "3.1.0", "openapi")
	resolveRefs(t, doc, doc, "#")
	ids := map[string]bool{}
	paths, _ := doc["paths"].(map[string]any)
	if len(paths) < 70 {
		t.Errorf("there are %d paths", len(paths))
	}
	for path, item := range paths {
		for method, op := range item.(map[string]any) {
			id, _ := field(op, "operationId").(string)
			if ids[id] || !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(id) {
				t.Errorf("%s %s has the id %q, which is no name or another's", method, path, id)
			}
			ids[id] = true
			for _, status := range []string{"200", "default"} {
				if field(op, "responses", status, "description") == nil || field(op, "responses", status, "content", "application/json", "schema") == nil {
					t.Errorf("%s %s has no response %s", method, path, status)
				}
			}
			if field(op, "summary") == "" {
				t.Errorf("%s %s has no summary", method, path)
			}
			params, _ := field(op, "parameters").([]any)
			for _, p := range params {
				if field(p, "in") != "query" || field(p, "schema") == nil || field(p, "name") == nil {
					t.Errorf("%s %s: %v is no parameter", method, path, p)
				}
			}
		}
	}
	schemas, _ := field(doc, "components", "schemas").(map[string]any)
	for name := range schemas {
		if !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(name) {
			t.Errorf("%q cannot be the name of a schema", name)
		}
	}
	if field(doc, "components", "schemas", "vault.create", "properties", "name") == nil {
		t.Error("the schema of vault create has no name")
	}
}

// resolveRefs follows every reference below v.
func resolveRefs(t *testing.T, doc map[string]any, v any, at string) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			keys, ok := strings.CutPrefix(ref, "#/")
			if !ok || field(doc, strings.Split(keys, "/")...) == nil {
				t.Errorf("%s: %s leads nowhere", at, ref)
			}
		}
		for k, x := range v {
			resolveRefs(t, doc, x, at+"/"+k)
		}
	case []any:
		for i, x := range v {
			resolveRefs(t, doc, x, at+"/"+strconv.Itoa(i))
		}
	}
}
