package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample has a parameter of every kind.
func sample() Command {
	return Command{
		Name: "vault make", Summary: "Make.", Group: "vaults", Example: "avfs vault make x", Result: object{"type": "object"},
		Stdin: true, StdinFlag: "stdin", Bytes: true, EventsFlag: "events",
		Params: []Param{
			{Name: "vault", Flag: "vault"}, {Name: "dry_run", Flag: "dry-run", Kind: Bool}, {Name: "depth", Flag: "depth", Kind: Int, Default: "3"},
			{Name: "cpu", Flag: "cpu", Kind: Number}, {Name: "keep", Flag: "keep", Kind: Switch}, {Name: "env", Flag: "env", List: true},
			{Name: "how", Flag: "how", Enum: []string{"auto", "never"}}, {Name: "file", Flag: "file"},
			{Name: "from", Default: "base"}, {Name: "to"}, {Name: "command", List: true},
		},
	}
}

// TestArgs holds what command lines requests become, and that no value becomes anything
// but a value.
func TestArgs(t *testing.T) {
	c := sample()
	for body, want := range map[string]string{
		``:                                  `vault|make|--json`,
		`{}`:                                `vault|make|--json`,
		`{"vault":"a b"}`:                   `vault|make|--json|--vault=a b`,
		`{"vault":"--help"}`:                `vault|make|--json|--vault=--help`,
		`{"vault":""}`:                      `vault|make|--json|--vault=`,
		`{"dry_run":true}`:                  `vault|make|--json|--dry-run=true`,
		`{"dry_run":false}`:                 `vault|make|--json|--dry-run=false`,
		`{"depth":-1,"cpu":1.5}`:            `vault|make|--json|--depth=-1|--cpu=1.5`,
		`{"keep":true}`:                     `vault|make|--json|--keep`,
		`{"keep":false}`:                    `vault|make|--json`,
		`{"keep":"web"}`:                    `vault|make|--json|--keep=web`,
		`{"env":["A=1","--B"]}`:             `vault|make|--json|--env=A=1|--env=--B`,
		`{"env":[]}`:                        `vault|make|--json`,
		`{"how":"never"}`:                   `vault|make|--json|--how=never`,
		`{"from":"-x","to":"--json=false"}`: `vault|make|--json|--|-x|--json=false`,
		`{"to":"t"}`:                        `vault|make|--json|--|base|t`,
		`{"from":"f","to":"t","command":["--","-c","ls"]}`: `vault|make|--json|--|f|t|--|-c|ls`,
		`{"from":{"b64":"/wA="}}`:                          `!no value has a NUL byte`,
		`{"from":{"b64":"//4="}}`:                          "vault|make|--json|--|\xff\xfe",
		`{"stdin":"x"}`:                                    `vault|make|--json|--stdin`,
		`{"stdin":""}`:                                     `vault|make|--json|--stdin`,
		`{"stdin_base64":"eA=="}`:                          `vault|make|--json|--stdin`,
		`{"stdin":"x","file":"-"}`:                         `vault|make|--json|--file=-`,
		`{"stdin":"x","stdin_base64":"eA=="}`:              `!stdin and stdin_base64 exclude each other`,
		`{"stdin":1}`:                                      `!stdin: want a string`,
		`{"stdin_base64":"%"}`:                             `!stdin_base64: want base64`,
		`{"command":["ls"]}`:                               `!command without to makes no sense`,
		`{"command":"ls"}`:                                 `!command: want a list of strings`,
		`{"command":null}`:                                 `!command: want a list of strings`,
		`{"vault":["a"]}`:                                  `!vault: want a string`,
		`{"vault":null}`:                                   `!vault: want a string`,
		`{"vault":"a\u0000b"}`:                             `!vault: no value has a NUL byte`,
		`{"vault":{"b64":"%"}}`:                            `!vault: want a string`,
		`{"depth":1.5}`:                                    `!depth: want a whole number`,
		`{"depth":"1"}`:                                    `!depth: want a whole number`,
		`{"cpu":true}`:                                     `!cpu: want a number`,
		`{"dry_run":"yes"}`:                                `!dry_run: want a boolean`,
		`{"how":"x"}`:                                      `!how: want one of auto, never`,
		`{"json":false}`:                                   `!vault make has no property "json"`,
		`{"dry-run":true}`:                                 `!vault make has no property "dry-run"`,
		`[]`:                                               `!the body has to be one JSON object`,
		`null`:                                             `!the body has to be one JSON object`,
		`{} {}`:                                            `!something follows the JSON object`,
		`{`:                                                `!the body has to be one JSON object`,
	} {
		check(t, body, want, func() ([]string, error) {
			req, err := c.fromJSON([]byte(body))
			if err != nil {
				return nil, err
			}
			return c.args(req.values, req.stdin != nil, DocumentFlag)
		})
	}
}

// TestArgsOfQuery holds the same for queries.
func TestArgsOfQuery(t *testing.T) {
	c := sample()
	for query, want := range map[string]string{
		"":                         `vault|make|--json`,
		"vault=--x&dry_run":        `vault|make|--json|--vault=--x|--dry-run=true`,
		"dry_run=false&keep":       `vault|make|--json|--dry-run=false|--keep`,
		"keep=web&depth=2":         `vault|make|--json|--depth=2|--keep=web`,
		"env=A%3D1&env=B":          `vault|make|--json|--env=A=1|--env=B`,
		"from=%FF&to=b&command=-x": "vault|make|--json|--|\xff|b|-x",
		"vault=a&vault=b":          `!vault is given more than once`,
		"depth=x":                  `!depth: want a whole number`,
		"dry_run=perhaps":          `!dry_run: want a boolean`,
		"stdin=x":                  `!vault make has no property "stdin"`,
		"vault=%zz":                `!the query: invalid URL escape "%zz"`,
		"vault=%00":                `!vault: no value has a NUL byte`,
	} {
		check(t, query, want, func() ([]string, error) {
			req, err := c.fromQuery(query)
			if err != nil {
				return nil, err
			}
			return c.args(req.values, false, DocumentFlag)
		})
	}
}

func check(t *testing.T, in, want string, args func() ([]string, error)) {
	t.Helper()
	list, err := args()
	got := strings.Join(list, "|")
	if err != nil {
		got = "!" + err.Error()
	}
	if got != want && !(strings.HasPrefix(want, "!") && strings.HasSuffix(got, want[1:]) && err != nil) {
		t.Errorf("%s becomes %q, want %q", in, got, want)
	}
}

// newTest serves sample and a command that only reads.
func newTest(t *testing.T, run func(ctx context.Context, c Call) Outcome, change func(*Config)) *httptest.Server {
	t.Helper()
	cfg := Config{
		Commands: []Command{sample(), {Name: "ls", ReadOnly: true, Result: object{"type": "array"}, Params: []Param{{Name: "path", List: true}}}},
		Run:      run, Status: func(string) int { return http.StatusTeapot }, Version: "v1", Failure: object{}, Event: object{},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := newServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.life = 20 * time.Millisecond
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return srv
}

// echo answers with the arguments, and with what it reads.
func echo(_ context.Context, c Call) Outcome {
	var in []byte
	if c.Stdin != nil {
		in, _ = io.ReadAll(c.Stdin)
	}
	err := json.NewEncoder(c.Stdout).Encode(map[string]any{"args": c.Args, "in": string(in)})
	if err != nil {
		return failure("Broken")
	}
	return Outcome{ExitCode: 7}
}

func failure(kind string) Outcome {
	return Outcome{ExitCode: 1, Failure: &Failure{Kind: kind, Document: json.RawMessage(fmt.Sprintf(`{"error":%q,"message":"m"}`, kind))}}
}

// ask sends a request, with headers as pairs.
func ask(t *testing.T, srv *httptest.Server, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// TestAnswers holds which requests are answered how.
func TestAnswers(t *testing.T) {
	srv := newTest(t, echo, nil)
	const js, oct, sse = "application/json", "application/octet-stream", "text/event-stream"
	for _, tc := range []struct {
		method, path, body string
		headers            []string
		status             int
		want               string
	}{
		{"POST", "/v1/vault/make", `{"vault":"a"}`, []string{"Content-Type", js}, 200, `{"args":["vault","make","--json","--vault=a"],"in":""}`},
		{"POST", "/v1/vault/make", ``, nil, 200, `{"args":["vault","make","--json"],"in":""}`},
		{"POST", "/v1/vault/make", `{"stdin":"é"}`, []string{"Content-Type", js + "; charset=utf-8", "Accept", "text/html, */*"}, 200, `{"args":["vault","make","--json","--stdin"],"in":"é"}`},
		{"POST", "/v1/vault/make?vault=a", `raw`, []string{"Content-Type", oct}, 200, `{"args":["vault","make","--json","--vault=a","--stdin"],"in":"raw"}`},
		{"POST", "/v1/vault/make?vault=a", `raw`, []string{"Content-Type", oct, "Accept", oct}, 200, `{"args":["vault","make","--vault=a","--stdin"],"in":"raw"}`},
		{"GET", "/v1/ls?path=a&path=b", ``, nil, 200, `{"args":["ls","--json","--","a","b"],"in":""}`},
		{"GET", "/v1/health", ``, nil, 200, fmt.Sprintf(`{"status":"ok","version":"v1","pid":%d}`, os.Getpid())},
		{"POST", "/v1/vault/make?vault=a", `{}`, []string{"Content-Type", js}, 400, "the properties are in the body"},
		{"POST", "/v1/vault/make", `{"x":1}`, []string{"Content-Type", js}, 400, `"error":"Usage"`},
		{"POST", "/v1/vault/make", `vault=a`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, KindMediaType},
		{"POST", "/v1/vault/make", `{}`, nil, 415, KindMediaType},
		{"POST", "/v1/ls", `raw`, []string{"Content-Type", oct}, 415, KindMediaType},
		{"POST", "/v1/ls", ``, []string{"Accept", sse}, 406, KindAccept},
		{"POST", "/v1/vault/make", ``, []string{"Accept", "text/html"}, 406, KindAccept},
		{"GET", "/v1/vault/make", ``, nil, 405, KindMethod},
		{"DELETE", "/v1/ls", ``, nil, 405, KindMethod},
		{"POST", "/v1/health", ``, nil, 405, KindMethod},
		{"GET", "/v1/vault", ``, nil, 404, KindNotFound},
		{"GET", "/", ``, nil, 404, KindNotFound},
		{"GET", "/v1/../v1/ls/", ``, nil, 404, KindNotFound},
		{"POST", "/v1/vault/make", strings.Repeat(" ", maxBody+1), []string{"Content-Type", js}, 413, KindTooLarge},
	} {
		resp, body := ask(t, srv, tc.method, tc.path, tc.body, tc.headers...)
		if resp.StatusCode != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s %s %.40q %q: %d %s, want %d with %s", tc.method, tc.path, tc.body, tc.headers, resp.StatusCode, body, tc.status, tc.want)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: headers %v", tc.method, tc.path, resp.Header)
		}
	}
	resp, _ := ask(t, srv, "GET", "/v1/ls", "")
	if got := resp.Header.Get(headerExitCode); got != "7" {
		t.Errorf("the exit code is %q, want 7", got)
	}
}

// TestAdmission holds who is let in.
func TestAdmission(t *testing.T) {
	srv := newTest(t, echo, func(c *Config) { c.Token, c.Hosts = "SECRET", []string{"127.0.0.1:1", "localhost:1"} })
	for _, tc := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"all is well", []string{"Host", "127.0.0.1:1", "Authorization", "Bearer SECRET"}, 200},
		{"other case", []string{"Host", "LOCALHOST:1", "Authorization", "bearer SECRET"}, 200},
		{"no token", []string{"Host", "127.0.0.1:1"}, 401},
		{"a part of the token", []string{"Host", "127.0.0.1:1", "Authorization", "Bearer SECRE"}, 401},
		{"an empty token", []string{"Host", "127.0.0.1:1", "Authorization", "Bearer "}, 401},
		{"another scheme", []string{"Host", "127.0.0.1:1", "Authorization", "Basic SECRET"}, 401},
		{"a site with our address", []string{"Host", "evil.example:1", "Authorization", "Bearer SECRET"}, 403},
		{"another port", []string{"Host", "127.0.0.1:2", "Authorization", "Bearer SECRET"}, 403},
		{"another site", []string{"Host", "127.0.0.1:1", "Authorization", "Bearer SECRET", "Origin", "http://evil.example"}, 403},
		{"another site", []string{"Host", "127.0.0.1:1", "Authorization", "Bearer SECRET", "Sec-Fetch-Site", "cross-site"}, 403},
	} {
		if resp, body := ask(t, srv, "POST", "/v1/ls", "", tc.headers...); resp.StatusCode != tc.status {
			t.Errorf("%s: %d %s, want %d", tc.name, resp.StatusCode, body, tc.status)
		}
	}
	if resp, _ := ask(t, srv, "GET", "/v1/health", "", "Host", "127.0.0.1:1"); resp.StatusCode != 401 {
		t.Errorf("health without a token: %d", resp.StatusCode)
	}
}

// TestFailures holds that a failure has its status, and that a part of an answer never
// looks like all of it.
func TestFailures(t *testing.T) {
	srv := newTest(t, func(_ context.Context, c Call) Outcome {
		if slices.Contains(c.Args, "--vault=late") {
			fmt.Fprintln(c.Stdout, `{"event":"started"}`)
		}
		return failure("Odd")
	}, nil)
	late := `{"vault":"late"}`
	js := []string{"Content-Type", "application/json"}
	for _, accept := range []string{"application/json", "application/octet-stream", "text/event-stream"} {
		resp, body := ask(t, srv, "POST", "/v1/vault/make", "", "Accept", accept)
		if resp.StatusCode != http.StatusTeapot || body != `{"error":"Odd","message":"m"}` || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %v", accept, resp.StatusCode, body, resp.Header)
		}
	}
	if resp, body := ask(t, srv, "POST", "/v1/vault/make", late, js...); resp.StatusCode != http.StatusTeapot {
		t.Errorf("a document: %d %s", resp.StatusCode, body)
	}
	resp, body := ask(t, srv, "POST", "/v1/vault/make", late, append(js, "Accept", "text/event-stream")...)
	want := "event: started\ndata: {\"event\":\"started\"}\n\nevent: error\ndata: {\"error\":\"Odd\",\"message\":\"m\"}\n\n"
	if resp.StatusCode != http.StatusOK || body != want {
		t.Errorf("events: %d %q, want %q", resp.StatusCode, body, want)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/v1/vault/make", strings.NewReader(late))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/octet-stream")
	if resp, err = srv.Client().Do(req); err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	if err == nil {
		t.Error("half an answer of bytes looks like a whole one")
	}
}

// TestEventStream holds the form of a stream, its signs of life, and that a client that
// goes cancels the command.
func TestEventStream(t *testing.T) {
	gone := make(chan error, 1)
	srv := newTest(t, func(ctx context.Context, c Call) Outcome {
		_, _ = io.WriteString(c.Stdout, `{"event":"stdout",`)
		_, _ = io.WriteString(c.Stdout, `"text":"a\nb"}`+"\n"+`{"event":"changed"}`+"\n")
		<-ctx.Done()
		gone <- ctx.Err()
		return failure("Interrupted")
	}, nil)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/v1/vault/make", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"event: stdout", `data: {"event":"stdout","text":"a\nb"}`, "", "event: changed", `data: {"event":"changed"}`, "", ": alive", ""} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the line is %q (%v), want %q", lines.Text(), lines.Err(), want)
		}
	}
	leave()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the command goes on without its client")
	}
}

// TestHalfInput holds that a client which goes away while it sends cancels the command.
func TestHalfInput(t *testing.T) {
	read := make(chan error, 1)
	srv := newTest(t, func(ctx context.Context, c Call) Outcome {
		_, err := io.ReadAll(c.Stdin)
		if err != nil && ctx.Err() == nil {
			err = errors.New("the command is not cancelled")
		}
		read <- err
		return failure("Interrupted")
	}, nil)
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /v1/vault/make HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\nhalf", typeBytes)
	time.Sleep(50 * time.Millisecond)
	_ = c.Close()
	select {
	case err := <-read:
		if err == nil || err.Error() == "the command is not cancelled" {
			t.Errorf("the half of an input: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the command waits for ever")
	}
}

// TestServeEnds holds that the end of a server interrupts what runs, waits for it, and
// takes nothing more.
func TestServeEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan bool), false
	run := func(ctx context.Context, c Call) Outcome {
		close(started)
		<-ctx.Done()
		time.Sleep(100 * time.Millisecond)
		ended = true
		return failure("Interrupted")
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, l, Config{Commands: []Command{sample()}, Run: run, Status: func(string) int { return 503 }}, io.Discard)
	}()
	answer := make(chan int, 1)
	go func() {
		resp, err := http.Post("http://"+l.Addr().String()+"/v1/vault/make", "application/json", nil)
		if err != nil {
			answer <- 0
			return
		}
		_ = resp.Body.Close()
		answer <- resp.StatusCode
	}()
	<-started
	stop()
	if err := <-served; err != nil || !ended {
		t.Errorf("served: %v; the command has ended: %v", err, ended)
	}
	if got := <-answer; got != 503 {
		t.Errorf("the request that was under way: %d, want 503", got)
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("somebody still listens")
	}
}
