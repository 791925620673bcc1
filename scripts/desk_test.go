package scripts_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A desk is where a reader of one page sits: a home directory with a small project in
// src/project, and avfs in PATH.
type desk struct {
	home string
	env  []string
}

// The project that the pages speak of: a Git repository with tests that take no time.
var project = map[string]string{
	"README.md":    "# project\n\nIt says hello.\n",
	"Makefile":     "all: hello.txt\nhello.txt: src/main.txt\n\tcp src/main.txt hello.txt\ntest: all\n\tgrep -q hello hello.txt\n",
	"src/main.txt": "hello\n",
	"server.sh":    "while :; do date; sleep 1; done\n",
}

// newDesk makes a home directory, and ends what runs for it when the test does.
func newDesk(t *testing.T, program string) *desk {
	t.Helper()
	home := t.TempDir()
	d := &desk{home: home}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AVFS_") && !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "PATH=") {
			d.env = append(d.env, v)
		}
	}
	goEnv := strings.Fields(run(t, "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH"))
	d.env = append(d.env, "HOME="+home, "AVFS_LINGER=1s", "LC_ALL=C", "TZ=UTC", "NO_COLOR=1",
		"GOCACHE="+goEnv[0], "GOMODCACHE="+goEnv[1], "GOPATH="+goEnv[2],
		"PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() { d.close(t) })
	for name, text := range project {
		d.write(t, filepath.Join("src/project", name), text)
	}
	d.write(t, ".gitconfig", "[user]\n\tname = Reader\n\temail = reader@example.invalid\n[init]\n\tdefaultBranch = main\n")
	if out, err := d.bash("cd src/project && git init -q && git add . && git commit -qm begin"); err != nil {
		t.Fatalf("make the project: %v\n%s", err, out)
	}
	return d
}

// close ends mounts and the processes that serve stores.
func (d *desk) close(t *testing.T) {
	var mounts []struct {
		Path string `json:"mountpoint"`
	}
	d.list(t, &mounts, "mounts")
	for _, m := range mounts {
		if out, err := d.bash("avfs unmount --force '" + m.Path + "'"); err != nil {
			t.Errorf("unmount %s: %v\n%s", m.Path, err, out)
		}
	}
	var vaults []struct {
		Name string `json:"name"`
	}
	d.list(t, &vaults, "vault list")
	for _, v := range vaults {
		if out, err := d.bash("avfs serve --stop --force '" + v.Name + "'"); err != nil {
			t.Errorf("stop what serves %s: %v\n%s", v.Name, err, out)
		}
	}
}

// list reads what a command prints with --json.
func (d *desk) list(t *testing.T, to any, command string) {
	out, err := d.bash("avfs --json " + command)
	if err == nil {
		err = json.Unmarshal(out, to)
	}
	if err != nil {
		t.Errorf("avfs %s: %v\n%s", command, err, out)
	}
}

// write puts a file into the home directory.
func (d *desk) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(d.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// bash runs a script in the home directory until its first failure, and returns what
// it prints.
func (d *desk) bash(script string) ([]byte, error) {
	return d.run("bash", "-euo", "pipefail", "-c", script)
}

// run runs a program in the home directory. One that hangs is ended.
func (d *desk) run(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = d.home, d.env, 5*time.Second
	return cmd.CombinedOutput()
}

// runShell runs a block as a script.
func runShell(t *testing.T, d *desk, blk block) string {
	want := 0
	if code, ok := strings.CutPrefix(blk.note, "ends with: "); ok {
		var err error
		if want, err = strconv.Atoi(code); err != nil {
			t.Fatal(err)
		}
	}
	out, err := d.bash(blk.text)
	if code := exitCode(err); code != want {
		t.Errorf("%s\nends with %d (%v), not %d:\n%s", blk.text, code, err, want, out)
	}
	return blk.text
}

// runConsole runs each line that begins with a prompt, and returns the block with what
// they print. A command that fails must say why.
func runConsole(t *testing.T, d *desk, blk block) string {
	var b strings.Builder
	for line := range strings.Lines(blk.text) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		out, err := d.bash(command)
		if err != nil && (exitCode(err) < 0 || len(out) == 0) {
			t.Errorf("%s: %v", strings.TrimSpace(command), err)
		}
		b.WriteString(line + string(out))
	}
	return b.String()
}

// runGo builds a program with the packages of this module and runs it.
func runGo(t *testing.T, d *desk, blk block) string {
	if testing.Short() {
		t.Skip("not run in the short form: it builds a program")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(source, []byte(blk.text), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "go", "build", "-o", program, source)
	if out, err := d.run(program); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return blk.text
}

// runPython runs a program with the client for Python.
func runPython(t *testing.T, d *desk, blk block) string {
	sdk, err := filepath.Abs("../sdk/python")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := d.run("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"); err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: it needs Python 3.11: %v\n%s", err, out)
	}
	d.write(t, "block.py", "import sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, "+strconv.Quote(sdk)+")\n"+blk.text)
	if out, err := d.run("python3", "block.py"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return blk.text
}

// runNode runs a program with the client for Node.
func runNode(t *testing.T, d *desk, blk block) string {
	sdk, err := filepath.Abs("../sdk/node")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := d.run("node", "-e", "process.exit(process.versions.node.split('.')[0] >= 18 ? 0 : 1)"); err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: it needs Node 18: %v\n%s", err, out)
	}
	d.write(t, "block.mjs", blk.text)
	if out, err := d.bash("mkdir -p node_modules && ln -sfn '" + sdk + "' node_modules/avfs && node block.mjs"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return blk.text
}

// exitCode is 0 without an error, and -1 where the program did not end by itself.
func exitCode(err error) int {
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return ended.ExitCode()
	}
	return -1
}
