package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

var updateScenario = flag.Bool("update-scenario", false, "write what the command line gives into the scenario")

const scenarioFile = "../../sdk/testdata/scenario.json"

// scenario is the story that every way to use avfs from a program tells; see the
// README beside it.
type scenario struct {
	About   string                          `json:"about"`
	Removed []string                        `json:"removed"`
	Files   map[string]map[string]string    `json:"files"`
	Steps   []*scenarioStep                 `json:"steps"`
	kept    map[string]string               // by earlier steps
	source  string                          // the directory with the files
	perform func(*scenarioStep) (any, bool) // gives the document, and whether it is an error
}

type scenarioStep struct {
	Name     string            `json:"name"`
	Op       string            `json:"op"`
	Args     map[string]any    `json:"args"`
	Keep     map[string]string `json:"keep,omitempty"`
	CancelOn string            `json:"cancel_on,omitempty"`
	Fails    bool              `json:"fails,omitempty"`
	Expect   any               `json:"expect"`
}

func (s *scenarioStep) text(arg string) string    { v, _ := s.Args[arg].(string); return v }
func (s *scenarioStep) flag(arg string) bool      { v, _ := s.Args[arg].(bool); return v }
func (s *scenarioStep) number(arg string) float64 { v, _ := s.Args[arg].(float64); return v }

func (s *scenarioStep) list(arg string) []string {
	var texts []string
	items, _ := s.Args[arg].([]any)
	for _, item := range items {
		texts = append(texts, fmt.Sprint(item))
	}
	return texts
}

func loadScenario(t *testing.T) *scenario {
	t.Helper()
	text, err := os.ReadFile(scenarioFile)
	if err != nil {
		t.Fatal(err)
	}
	sc := &scenario{kept: map[string]string{}, source: t.TempDir()}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(sc); err != nil {
		t.Fatal(err)
	}
	for name, content := range sc.Files {
		b := []byte(content["text"])
		if coded, ok := content["base64"]; ok {
			if b, err = base64.StdEncoding.DecodeString(coded); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(sc.source, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return sc
}

// run performs every step and compares what comes of it.
func (sc *scenario) run(t *testing.T) {
	t.Helper()
	for _, s := range sc.Steps {
		asked := *s
		asked.Args = map[string]any{}
		for name, v := range s.Args {
			if text, ok := v.(string); ok {
				v = os.Expand(text, func(name string) string { return sc.given(name) })
			}
			asked.Args[name] = v
		}
		doc, failed := sc.perform(&asked)
		if failed != s.Fails {
			t.Fatalf("%s: failed is %t: %v", s.Name, failed, doc)
		}
		for name, place := range s.Keep {
			sc.kept[name] = valueAt(doc, place)
			if sc.kept[name] == "" {
				t.Fatalf("%s: there is no %s in %v", s.Name, place, doc)
			}
		}
		got := normalised(doc, sc.Removed)
		switch {
		case *updateScenario:
			s.Expect = got
		case !reflect.DeepEqual(got, s.Expect):
			t.Errorf("%s: got\n%s\nwant\n%s", s.Name, asJSON(t, got), asJSON(t, s.Expect))
		}
	}
}

// given is the value of ${name}; what is none of ours is the shell's.
func (sc *scenario) given(name string) string {
	if name == "source" {
		return sc.source
	}
	if v, ok := sc.kept[name]; ok {
		return v
	}
	return "$" + name
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// valueAt is the text at a place such as approval.id.
func valueAt(doc any, place string) string {
	for key := range strings.SplitSeq(place, ".") {
		m, _ := doc.(map[string]any)
		doc = m[key]
	}
	text, _ := doc.(string)
	return text
}

// normalised is a document without the members that differ from run to run.
func normalised(doc any, removed []string) any {
	switch d := doc.(type) {
	case map[string]any:
		rest := map[string]any{}
		for name, v := range d {
			if !slices.Contains(removed, name) {
				rest[name] = normalised(v, removed)
			}
		}
		return rest
	case []any:
		rest := make([]any, len(d))
		for i, v := range d {
			rest[i] = normalised(v, removed)
		}
		return rest
	}
	return doc
}

// inVault is the beginning of the command line of a step: its command and the vaults.
func (s *scenarioStep) inVault() []string {
	args := strings.Split(s.Op, "_")
	switch s.Op {
	case "vault_create":
		return append(args, s.text("name"))
	case "vault_fork":
		return append(args, s.text("vault"), s.text("name"))
	case "vault_merge":
		return append(args, s.text("source"), s.text("into"))
	}
	return append(args, "--vault", s.text("vault"))
}

// commandLine is the command line of a step, and what it reads.
func (s *scenarioStep) commandLine(t *testing.T) (args []string, stdin string) {
	t.Helper()
	args = s.inVault()
	option := func(name, value string) {
		if value != "" {
			args = append(args, name, value)
		}
	}
	flags := func(names ...string) {
		for _, name := range names {
			if s.flag(name) {
				args = append(args, "--"+strings.ReplaceAll(name, "_", "-"))
			}
		}
	}
	switch s.Op {
	case "import":
		args = append(args, s.text("source"))
	case "ls", "cat":
		args = append(args, s.text("path"))
	case "write":
		flags("parents")
		return append(args, s.text("path")), s.text("text")
	case "edit":
		flags("all")
		args = append(args, "--old", s.text("old"), "--new", s.text("new"), s.text("path"))
	case "grep":
		if s.flag("ignore_case") {
			args = append(args, "-i")
		}
		for _, g := range s.list("glob") {
			option("--glob", g)
		}
		args = append(args, "-C", fmt.Sprint(s.number("context")), s.text("pattern"))
	case "find":
		for _, n := range s.list("name") {
			option("--name", n)
		}
	case "exec":
		option("--shell", s.text("shell"))
		option("--cwd", s.text("cwd"))
		if ms := s.number("timeout_ms"); ms > 0 {
			option("--timeout", fmt.Sprintf("%gms", ms))
		}
		env, _ := s.Args["env"].(map[string]any)
		for name, value := range env {
			option("--env", fmt.Sprintf("%s=%v", name, value))
		}
		if argv := s.list("argv"); len(argv) > 0 {
			args = append(append(args, "--"), argv...)
		}
	case "output":
		args = append(args, s.text("exec"))
	case "diff":
		flags("text")
	case "checkpoint_save":
		option("-m", s.text("message"))
		args = append(args, s.text("name"))
	case "checkpoint_restore":
		args = append(append(args, s.text("id")), s.list("paths")...)
	case "log":
		args = append(args, "-n", fmt.Sprint(s.number("limit")))
	case "approvals_approve":
		args = append(args, s.text("id"))
	case "vault_merge":
		flags("dry_run")
		for _, p := range s.list("theirs") {
			option("--theirs", p)
		}
	case "vault_create", "vault_fork", "checkpoint_list", "undo", "redo":
	default:
		t.Fatalf("the scenario has an unknown operation %q", s.Op)
	}
	return args, ""
}

// byCommandLine performs a step with the program.
func byCommandLine(t *testing.T) func(*scenarioStep) (any, bool) {
	return func(s *scenarioStep) (any, bool) {
		t.Helper()
		args, stdin := s.commandLine(t)
		if s.CancelOn != "" {
			return cancelled(t, args, s.CancelOn), false
		}
		cmd := exec.Command("avfs", append([]string{"--json"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		var errors bytes.Buffer
		cmd.Stderr = &errors
		out, err := cmd.Output()
		var doc any
		if jerr := json.Unmarshal(out, &doc); jerr != nil {
			t.Fatalf("avfs %q: %v, %v: %s%s", args, err, jerr, out, errors.Bytes())
		}
		m, _ := doc.(map[string]any)
		_, isFault := m["error"].(string)
		return doc, err != nil && isFault
	}
}

// cancelled runs a command with its events, interrupts it when it has printed a text,
// and returns the envelope.
func cancelled(t *testing.T, args []string, on string) any {
	t.Helper()
	at := slices.Index(args, "exec") + 1
	cmd := exec.Command("avfs", slices.Concat(args[:at], []string{"--events"}, args[at:])...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var last map[string]any
	for lines := bufio.NewScanner(out); lines.Scan(); {
		last = nil
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Error(err)
		}
		if text, _ := last["text"].(string); strings.Contains(text, on) {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // the envelope tells how it ended
	return last["envelope"]
}

// scenarioHome gives a test a workspace of its own and ends its owners after it.
func scenarioHome(t *testing.T) {
	t.Helper()
	if err := chosenDriver(t).available(); err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: the scenario: %v", err)
	}
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	t.Setenv("AVFS_HOME", home)
	t.Setenv("AVFS_VAULT", "")
	t.Cleanup(func() {
		sockets, err := filepath.Glob(filepath.Join(home, "vaults", "*.sock"))
		if err != nil {
			t.Error(err)
		}
		for _, s := range sockets {
			vault := strings.TrimSuffix(filepath.Base(s), ".sock")
			if out, err := exec.Command("avfs", "serve", "--stop", vault).CombinedOutput(); err != nil {
				t.Errorf("serve --stop %s: %v: %s", vault, err, out)
			}
		}
		wantNothingLeft(t, dir)
	})
}

// wantNothingLeft fails if processes, mounts or sockets stay that belong to dir.
func wantNothingLeft(t *testing.T, dir string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		left = slices.DeleteFunc(leftovers(dir), func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("process %d:", os.Getpid())) })
		if len(left) == 0 {
			return
		}
	}
	sort.Strings(left)
	t.Errorf("left behind: %s", strings.Join(left, "; "))
}

// TestScenarioByCommandLine runs the scenario with the program and --json.
func TestScenarioByCommandLine(t *testing.T) {
	scenarioHome(t)
	sc := loadScenario(t)
	sc.perform = byCommandLine(t)
	sc.run(t)
	if !*updateScenario || t.Failed() {
		return
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := errors.Join(e.Encode(sc), os.WriteFile(scenarioFile, text.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}
