package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/httpapi"
	"github.com/agentvfs/avfs/proxy"
)

// apiServer is 'avfs serve --api' in a process of its own, and a client of it.
type apiServer struct {
	t      *testing.T
	home   string
	doc    apiDoc
	cmd    *exec.Cmd
	client *http.Client
	token  string
}

// startAPI starts a server, with a home of its own if home is empty.
func startAPI(t *testing.T, home string, args ...string) *apiServer {
	t.Helper()
	if home == "" {
		home = apiHome(t)
	}
	s := &apiServer{t: t, home: home, cmd: exec.Command("avfs", append([]string{"serve", "--api", "--json"}, args...)...)}
	s.cmd.Env = append(os.Environ(), "AVFS_HOME="+home, "AVFS_VAULT=", "AVFS_LINGER=1s")
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if code := s.end(); code != exitOK && code != -1 { // which a test has killed
			t.Errorf("the server ended with %d", code)
		}
	})
	if err := json.NewDecoder(out).Decode(&s.doc); err != nil {
		t.Fatalf("the server does not say where it is: %v", err)
	}
	transport := &http.Transport{}
	if path, ok := strings.CutPrefix(s.doc.Listen, unixPrefix); ok {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	} else {
		text, err := os.ReadFile(s.doc.TokenFile)
		if err != nil {
			t.Fatal(err)
		}
		s.token = strings.TrimSpace(string(text))
	}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	return s
}

// apiHome is a home with a path that is short enough for a socket. What is left there
// ends with the test.
func apiHome(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "avfs-api-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sockets, _ := filepath.Glob(filepath.Join(home, "vaults", "*.sock")) // a good pattern
		for _, path := range sockets {
			stop := exec.Command("avfs", "serve", "--stop", "--force", strings.TrimSuffix(filepath.Base(path), ".sock"))
			stop.Env = append(os.Environ(), "AVFS_HOME="+home)
			if out, err := stop.CombinedOutput(); err != nil {
				t.Errorf("stop the owner: %v %s", err, out)
			}
		}
		if left := leftovers(home + string(filepath.Separator)); len(left) > 0 {
			t.Errorf("left behind: %s", strings.Join(left, "; "))
		}
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	return home
}

// end ends the server as a person would, and returns its exit code.
func (s *apiServer) end() int {
	s.t.Helper()
	if s.cmd.ProcessState == nil {
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			s.t.Error(err)
		}
		_ = s.cmd.Wait() // the exit code says it
	}
	return s.cmd.ProcessState.ExitCode()
}

// request makes a request for a command.
func (s *apiServer) request(ctx context.Context, method, path string, body io.Reader, headers ...string) *http.Request {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.doc.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// send sends a request and reads the whole answer.
func (s *apiServer) send(req *http.Request) (*http.Response, []byte) {
	s.t.Helper()
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Errorf("%s: %v", req.URL.Path, err)
		return &http.Response{Header: http.Header{}}, nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Errorf("%s: %v", req.URL.Path, err)
	}
	return resp, b
}

// call runs a command, which has to answer with the status, and checks the document
// against its schema.
func (s *apiServer) call(status int, command, body string) any {
	s.t.Helper()
	path := strings.ReplaceAll(command, " ", "/")
	resp, b := s.send(s.request(s.t.Context(), http.MethodPost, path, strings.NewReader(body), "Content-Type", "application/json"))
	return s.checked(resp, b, status, command)
}

func (s *apiServer) checked(resp *http.Response, b []byte, status int, command string) any {
	s.t.Helper()
	if resp.StatusCode != status {
		s.t.Errorf("%s: status %d, want %d: %s", command, resp.StatusCode, status, b)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		s.t.Errorf("%s: no JSON: %s", command, b)
		return nil
	}
	schema := command
	if resp.StatusCode != http.StatusOK {
		schema = errorSchema
	}
	if err := matches(schema, doc); err != nil {
		s.t.Errorf("%s: %v: %s", command, err, b)
	}
	return doc
}

// field follows keys into a document.
func field(doc any, keys ...string) any {
	for _, k := range keys {
		switch d := doc.(type) {
		case map[string]any:
			doc = d[k]
		case []any:
			i, err := strconv.Atoi(k)
			if err != nil || i >= len(d) {
				return nil
			}
			doc = d[i]
		default:
			return nil
		}
	}
	return doc
}

func (s *apiServer) want(doc any, want string, keys ...string) {
	s.t.Helper()
	if got := fmt.Sprint(field(doc, keys...)); got != want {
		s.t.Errorf("%s is %q, want %q", strings.Join(keys, "."), got, want)
	}
}

// TestAPIFiles works with files over HTTP, at a socket and at a port.
func TestAPIFiles(t *testing.T) {
	for _, args := range [][]string{nil, {"--listen", "127.0.0.1:0"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			s := startAPI(t, "", args...)
			host := t.TempDir()
			if err := os.WriteFile(filepath.Join(host, "a.txt"), []byte("one\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			s.want(s.call(200, "vault create", `{"name":"main"}`), "main", "name")
			s.want(s.call(200, "import", `{"source":`+strconv.Quote(host)+`}`), "1", "files")
			s.want(s.call(200, "vault fork", `{"src_new":["main","task"]}`), "main", "parent")
			s.want(s.call(200, "write", `{"vault":"task","path":"/a.txt","stdin":"two\n"}`), "4", "bytes")
			s.want(s.call(200, "cat", `{"vault":"task","path":["/a.txt"]}`), "two\n", "text")
			s.want(s.call(200, "cat", `{"vault":"main","path":["/a.txt"]}`), "one\n", "text")
			s.want(s.call(200, "diff", `{"vault":"task"}`), "a.txt", "changes", "0", "path")
			s.want(s.call(200, "undo", `{"vault":"task"}`), "1", "changed")
			s.want(s.call(200, "diff", `{"vault":"task"}`), "0", "total")
			s.call(200, "ls", `{"vault":"task"}`)
			s.want(s.call(200, "grep", `{"vault":"task","pattern":"nothing"}`), "[]")

			s.want(s.call(404, "cat", `{"vault":"main","path":["/none"]}`), "NotFound", "error")
			s.want(s.call(404, "ls", `{"vault":"nobody"}`), "VaultNotFound", "error")
			s.want(s.call(409, "vault create", `{"name":"main"}`), "VaultExists", "error")
			s.want(s.call(400, "ls", `{"vault":"../x"}`), "InvalidName", "error")
			s.want(s.call(400, "import", `{"source":"relative"}`), "Usage", "error")
			s.want(s.call(400, "rm", `{"vault":"main"}`), "Usage", "error")
			s.want(s.call(400, "cat", `{"path":["--help"],"json":true}`), "Usage", "error")
			s.want(s.call(404, "cat", `{"vault":"main","path":["--help"]}`), "NotFound", "error")
			s.call(200, "quota set", `{"vault":"task","bytes":"1K"}`)
			s.want(s.call(507, "write", `{"vault":"task","path":"/big","stdin":"`+strings.Repeat("x", 5000)+`"}`), "QuotaExceeded", "error")

			s.raw(host)
			s.call(200, "fsck", `{"vault":"main","read_data":true}`)
			if code := s.end(); code != exitOK {
				t.Errorf("the server ended with %d", code)
			}
			for _, name := range []string{"api.sock", "api.token"} {
				if _, err := os.Lstat(filepath.Join(s.home, name)); err == nil {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// raw moves bytes in both directions.
func (s *apiServer) raw(host string) {
	const bytesType = "application/octet-stream"
	ctx := s.t.Context()
	content := bytes.Repeat([]byte("\x00\xff avfs \r\n"), 300_000) // more than is held in memory for JSON bodies in parts
	_, b := s.send(s.request(ctx, http.MethodPost, "write?vault=main&path=/dir/raw&parents", bytes.NewReader(content), "Content-Type", bytesType))
	s.checked(&http.Response{StatusCode: 200}, b, 200, "write")
	resp, b := s.send(s.request(ctx, http.MethodGet, "cat?vault=main&path=/dir/raw", nil, "Accept", bytesType))
	if resp.StatusCode != 200 || !bytes.Equal(b, content) {
		s.t.Errorf("cat as bytes: %d, %d bytes of %d", resp.StatusCode, len(b), len(content))
	}
	resp, b = s.send(s.request(ctx, http.MethodGet, "cat?vault=main&path=/none", nil, "Accept", bytesType))
	s.want(s.checked(resp, b, 404, "cat"), "NotFound", "error")
	resp, b = s.send(s.request(ctx, http.MethodPost, "export?vault=main&source=/&dest=-&tar", nil, "Accept", bytesType, "Content-Type", "application/json"))
	s.want(s.checked(resp, b, 400, "export"), "Usage", "error") // a POST has its properties in the body
	req := s.request(ctx, http.MethodPost, "export", strings.NewReader(`{"vault":"main","source":"/","dest":"-","tar":true}`), "Accept", bytesType, "Content-Type", "application/json")
	resp, archive := s.send(req)
	if resp.StatusCode != 200 || !bytes.Contains(archive, []byte("dir/raw")) {
		s.t.Fatalf("export: %d, %d bytes", resp.StatusCode, len(archive))
	}
	s.call(200, "vault create", `{"name":"copy"}`)
	resp, b = s.send(s.request(ctx, http.MethodPost, "import?vault=copy&source=-&tar=true", bytes.NewReader(archive), "Content-Type", bytesType))
	s.want(s.checked(resp, b, 200, "import"), "2", "files")
	s.want(s.call(200, "export", `{"vault":"copy","source":"/","dest":`+strconv.Quote(filepath.Join(host, "out"))+`}`), "2", "files")
	got, err := os.ReadFile(filepath.Join(host, "out/dir/raw"))
	if err != nil || !bytes.Equal(got, content) {
		s.t.Errorf("what was written, exported, imported and exported again has %d bytes: %v", len(got), err)
	}
}

// needMount skips a test where nothing can be mounted.
func needMount(t *testing.T) {
	t.Helper()
	if err := chosenDriver(t).available(); err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: commands over HTTP: %v", err)
	}
}

// TestAPIExec runs commands over HTTP.
func TestAPIExec(t *testing.T) {
	needMount(t)
	t.Parallel()
	s := startAPI(t, "")
	s.call(200, "vault create", `{"name":"main"}`)
	env := s.call(200, "exec", `{"command":["sh","-c","cat > f; echo $X; exit 3"],"stdin":"given\n","env":["X=--y"]}`)
	s.want(env, "3", "exit_code")
	s.want(env, "--y\n", "stdout")
	s.want(env, "f", "changed_files", "0", "path")
	s.want(s.call(200, "exec", `{"command":["sudo","ls"]}`), "denied", "status")
	s.want(s.call(200, "exec", `{"shell":"echo $((1+1))"}`), "2\n", "stdout")
	s.want(s.call(200, "exec", `{"file":"-","stdin":"echo a\necho b\n"}`), "b\n", "1", "stdout")
	s.want(s.call(400, "exec", `{"command":["ls"],"timeout":"soon"}`), "Usage", "error")
	s.want(s.call(200, "exec", `{"command":["ls"],"vault":"nobody"}`), "VaultNotFound", "error", "error")
	started := s.call(200, "exec", `{"command":["sleep","60"],"keep_running":"nap"}`)
	s.want(started, "running", "status")
	s.want(s.call(200, "services list", `{}`), "nap", "0", "name")
	s.call(200, "services stop", `{"name":"nap"}`)
	s.onlyChild()

	req := s.request(t.Context(), http.MethodPost, "exec?command=wc&command=-c", io.LimitReader(neverEnds{}, 100_000), "Content-Type", "application/octet-stream")
	resp, b := s.send(req)
	s.want(s.checked(resp, b, 200, "exec"), "100000\n", "stdout")
	if got := resp.Header.Get("Avfs-Exit-Code"); got != "0" {
		t.Errorf("the exit code in the header is %q", got)
	}
	var audit []engine.AuditEntry
	list, err := json.Marshal(s.call(200, "audit list", `{}`))
	if err == nil {
		err = json.Unmarshal(list, &audit)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range audit {
		if e.Kind == engine.AuditExec && e.ExecID == field(env, "id") && (e.PID != os.Getpid() || e.UID != os.Getuid()) {
			t.Errorf("the audit says that %d of user %d has asked, which was %d of %d", e.PID, e.UID, os.Getpid(), os.Getuid())
		}
	}
	if len(audit) < 8 {
		t.Errorf("the audit has %d entries", len(audit))
	}
}

// onlyChild holds that nothing is left of the process that kept a service: beside the
// owner of the store the server has no child.
func (s *apiServer) onlyChild() {
	s.t.Helper()
	var list []string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		list = nil
		stats, _ := filepath.Glob("/proc/[0-9]*/stat") // none where there is no /proc
		for _, path := range stats {
			text, _ := os.ReadFile(path) // of one that has ended: nothing
			_, rest, _ := bytes.Cut(text, []byte(") "))
			if f := bytes.Fields(rest); len(f) > 1 && string(f[1]) == strconv.Itoa(s.cmd.Process.Pid) {
				list = append(list, string(text))
			}
		}
		if len(list) <= 1 {
			return
		}
	}
	s.t.Errorf("the server has these children: %q", list)
}

// neverEnds is a reader without an end.
type neverEnds struct{}

func (neverEnds) Read(p []byte) (int, error) { return len(p), nil }

// stream reads server-sent events until fn says that it is enough.
func (s *apiServer) stream(ctx context.Context, body string, fn func(proxy.Event) (more bool)) {
	s.t.Helper()
	req := s.request(ctx, http.MethodPost, "exec", strings.NewReader(body), "Content-Type", "application/json", "Accept", "text/event-stream")
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" || resp.StatusCode != 200 {
		s.t.Fatalf("%d %s", resp.StatusCode, got)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	kind := ""
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = text
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if err := checkEvents("", 0, []byte(data)); err != nil {
			s.t.Errorf("%v: %s", err, data)
		}
		var ev proxy.Event
		if err := json.Unmarshal([]byte(data), &ev); err != nil || string(ev.Kind) != kind {
			s.t.Errorf("event %s: %v: %s", kind, err, data)
		}
		if !fn(ev) {
			return
		}
	}
}

// TestAPIEvents streams a command, and cancels one by going away, and one by ending the
// server.
func TestAPIEvents(t *testing.T) {
	needMount(t)
	t.Parallel()
	s := startAPI(t, "")
	s.call(200, "vault create", `{"name":"main"}`)
	var kinds []string
	s.stream(t.Context(), `{"command":["sh","-c","echo one; echo two >&2; echo three > f"]}`, func(ev proxy.Event) bool {
		kinds = append(kinds, string(ev.Kind))
		return true
	})
	if got := strings.Join(kinds, " "); got != "started stdout stderr changed ended" && got != "started stderr stdout changed ended" {
		t.Errorf("the events are %s", got)
	}

	id := ""
	s.stream(t.Context(), `{"command":["sleep","100"]}`, func(ev proxy.Event) bool {
		id = ev.ExecID
		return false // the connection closes
	})
	s.interrupted(id)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	req := s.request(ctx, http.MethodPost, "exec", strings.NewReader(`{"command":["sleep","101"]}`), "Content-Type", "application/json")
	if resp, err := s.client.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("a cancelled request has an answer")
	}
	s.interrupted("")

	last := proxy.Status("")
	s.stream(t.Context(), `{"command":["sleep","102"]}`, func(ev proxy.Event) bool {
		if ev.Kind == proxy.EventStarted {
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
		if ev.Result != nil {
			last = ev.Result.Status
		}
		return true
	})
	if last != proxy.StatusInterrupted {
		t.Errorf("the command that ran when the server ended is %q", last)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}

	killed := startAPI(t, s.home)
	killed.stream(t.Context(), `{"command":["sleep","103"]}`, func(ev proxy.Event) bool {
		id = ev.ExecID
		if err := killed.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		return true
	})
	_ = killed.cmd.Wait()
	startAPI(t, s.home).interrupted(id) // and what is left behind fails the test
}

// interrupted waits until the audit says that the exec, or the newest one, was
// interrupted.
func (s *apiServer) interrupted(id string) {
	s.t.Helper()
	var last any
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		list, _ := s.call(200, "audit list", `{"vault":"main","limit":50}`).([]any)
		for _, e := range list {
			if field(e, "kind") == engine.AuditExec && (id == "" || field(e, "exec_id") == id) {
				last = e
			}
		}
		if field(last, "status") == string(proxy.StatusInterrupted) && (id != "" || fmt.Sprint(field(last, "argv")) == "[sleep 101]") {
			return
		}
	}
	s.t.Errorf("the audit says %v", last)
}

// TestAPIParallel has twenty clients at once.
func TestAPIParallel(t *testing.T) {
	needMount(t)
	t.Parallel()
	s := startAPI(t, "")
	s.call(200, "vault create", `{"name":"main"}`)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			fork := fmt.Sprintf("f%d", i)
			s.want(s.call(200, "vault fork", `{"src_new":["main","`+fork+`"]}`), fork, "name")
			s.want(s.call(200, "write", `{"vault":"`+fork+`","path":"/name","stdin":"`+fork+`"}`), fmt.Sprint(len(fork)), "bytes")
			if i%4 == 0 {
				s.want(s.call(200, "exec", `{"vault":"`+fork+`","command":["cat","name"]}`), fork, "stdout")
			}
			s.want(s.call(200, "cat", `{"vault":"`+fork+`","path":["/name"]}`), fork, "text")
			s.want(s.call(404, "cat", `{"vault":"main","path":["/name"]}`), "NotFound", "error")
			s.call(200, "vault delete", `{"name":"`+fork+`"}`)
		})
	}
	all.Wait()
	s.call(200, "fsck", `{"vault":"main"}`)
}

// TestAPIInside holds that a command in a vault is known at the socket: it cannot approve
// what it asks for.
func TestAPIInside(t *testing.T) {
	needMount(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED, NOT PROVEN: that a command in a vault cannot approve over the API: there is no curl")
	}
	t.Parallel()
	s := startAPI(t, "")
	s.call(200, "vault create", `{"name":"main"}`)
	policy := "version: 1\ndefault: allow\nrules:\n  - {id: ask, prog: [touch], action: require_approval, reason: a test}\n"
	if err := os.WriteFile(filepath.Join(s.home, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := s.call(200, "exec", `{"command":["touch","f"]}`)
	s.want(asked, "approval_required", "status")
	id, _ := field(asked, "approval", "id").(string)
	curl := fmt.Sprintf(`curl -sS --unix-socket %s http://avfs/v1/approvals/approve -H 'Content-Type: application/json' -d '{"vault":"main","id":"%s"}'`,
		strings.TrimPrefix(s.doc.Listen, unixPrefix), id)
	body, err := json.Marshal(map[string]string{"shell": curl})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := field(s.call(200, "exec", string(body)), "stdout").(string)
	if !strings.Contains(out, "cannot approve") {
		t.Errorf("the command is told %q", out)
	}
	s.want(s.call(200, "approvals show", `{"id":"`+id+`"}`), "pending", "state")
	approved := s.call(200, "approvals approve", `{"id":"`+id+`"}`)
	s.want(approved, "approved", "state")
	s.want(approved, "api", "by")
	s.want(s.call(200, "exec", `{"command":["touch","f"]}`), "completed", "status")
}

// TestAPIPlaces holds where a server listens, and for whom.
func TestAPIPlaces(t *testing.T) {
	t.Parallel()
	s := startAPI(t, "")
	path := strings.TrimPrefix(s.doc.Listen, unixPrefix)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	refused := func(code int, want string, args ...string) {
		t.Helper()
		cmd := exec.Command("avfs", append([]string{"--json", "serve"}, args...)...)
		cmd.Env = append(os.Environ(), "AVFS_HOME="+s.home, "AVFS_VAULT=")
		out, _ := cmd.Output()
		if got := cmd.ProcessState.ExitCode(); got != code || !bytes.Contains(out, []byte(want)) {
			t.Errorf("serve %q: %d %s, want %d with %s", args, got, out, code, want)
		}
	}
	refused(exitConflict, `"error":"Busy"`, "--api")
	for _, args := range [][]string{
		{"--api", "--listen", "0.0.0.0:0"}, {"--api", "--listen", "192.0.2.1:80"}, {"--api", "--listen", "example.com:80"}, {"--api", "--listen", ":0"},
		{"--api", "--listen", "/tmp/x"}, {"--api", "main"}, {"--api", "--stop"}, {"--api", "--linger", "1s"}, {"--listen", "127.0.0.1:0"},
		{"--api", "--token-file", "t"}, {"--api", "--listen", "unix:/" + strings.Repeat("x", 200)},
	} {
		refused(exitUsage, `"error":"Usage"`, args...)
	}
	plain := filepath.Join(s.home, "plain")
	if err := os.WriteFile(plain, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(exitConflict, `"error":"Exists"`, "--api", "--listen", "unix:"+plain)
	if text, err := os.ReadFile(plain); err != nil || string(text) != "mine" {
		t.Errorf("the file at the address: %q, %v", text, err)
	}

	if err := s.cmd.Process.Kill(); err != nil { // which leaves the socket
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	again := startAPI(t, s.home)
	again.call(200, "vault list", `{}`)
	again.end()

	tcp := startAPI(t, s.home, "--listen", "[::1]:0", "--token-file", filepath.Join(s.home, "t"))
	if info, err := os.Stat(tcp.doc.TokenFile); err != nil || info.Mode().Perm() != 0o600 || len(tcp.token) < 20 {
		t.Errorf("the token: %v, %v", info, err)
	}
	tcp.call(200, "vault list", `{}`)
	tcp.token = "wrong"
	resp, b := tcp.send(tcp.request(t.Context(), http.MethodGet, "vault/list", nil))
	tcp.want(tcp.checked(resp, b, 401, "vault list"), httpapi.KindNoToken, "error")
}
