package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/cgofusefs"
)

// TestMain lets the test binary be avfs, for the scripts and for the owners that
// they start.
func TestMain(m *testing.M) {
	if _, ok := ownerArgs(os.Args[1:]); ok { // of a test that is avfs itself
		tested()
	}
	testscript.Main(m, map[string]func(){"avfs": tested})
}

// TestScripts runs the stories in testdata, each in a workspace of its own, once
// per back end in the build, and once with each other driver. Every script is checked
// to leave no process and no mount behind.
func TestScripts(t *testing.T) {
	onEveryMount(t, "testdata")
}

// runScripts runs the scripts in a directory on one back end with one driver.
func runScripts(t *testing.T, dir, backend string, d driver) {
	fuse := d.available()
	if fuse != nil {
		t.Logf("scripts that need a mount are skipped: %v", fuse)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("AVFS_BACKEND", backend)
			env.Setenv("OTHER_BACKEND", other(backend))
			env.Setenv(driverVar, d.name)
			return setup(env)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "fuse":
				return fuse == nil, nil
			case "libfuse":
				return cgofusefs.Available() == nil, nil
			case "sqlite", "bbolt", "badger":
				return backend == cond, nil
			case "other": // the build has another back end
				return other(backend) != backend, nil
			}
			if modules, ok := strings.CutPrefix(cond, "python:"); ok {
				return exec.Command("python3", "-c", "import "+modules).Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":     cmdCode,
			"json":     cmdJSON,
			"jsonenv":  cmdJSONEnv,
			"waitfile": cmdWaitFile,
			"files":    cmdFiles,
			"within":   cmdWithin,
		},
	})
}

// other is another back end of the build, if there is one.
func other(backend string) string {
	for _, name := range backends.Names() {
		if name != backend {
			return name
		}
	}
	return backend
}

// setup gives a script a home of its own, and checks what it leaves behind.
func setup(env *testscript.Env) error {
	env.Setenv(rustupVar, os.Getenv(rustupVar))
	home := filepath.Join(env.WorkDir, "home")
	env.Setenv("AVFS_HOME", home)
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	// The beginning of a number of seconds that no other script sleeps, by which it knows
	// its processes among those of the machine.
	env.Setenv("NAP", strconv.Itoa(1e8+rand.IntN(9e8)))
	faults := env.WorkDir + ".schema-faults" // beside what the script sees
	env.Setenv(schemaFaultsVar, faults)
	env.Defer(func() {
		if wrong, err := os.ReadFile(faults); err == nil {
			env.T().Log("documents that are not what their schema says:\n" + string(wrong))
			env.T().FailNow()
		}
		if err := endOwners(env, home); err != nil {
			env.T().Log(err)
			env.T().FailNow()
		}
	})
	return nil
}

// endOwners ends what a script left running on purpose, and fails on what should
// not be there.
func endOwners(env *testscript.Env, home string) error {
	sockets, err := filepath.Glob(filepath.Join(home, "vaults", "*.sock"))
	if err != nil {
		return err
	}
	for _, s := range sockets {
		vault := strings.TrimSuffix(filepath.Base(s), ".sock")
		cmd := exec.Command("avfs", "serve", "--stop", vault)
		cmd.Env = env.Vars
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("serve --stop %s: %w: %s", vault, err, out)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		left := leftovers(env.WorkDir + string(filepath.Separator))
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("left behind: %s", strings.Join(left, "; "))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// leftovers lists processes that have dir in their environment, and mounts and
// sockets below it.
func leftovers(dir string) []string {
	var left []string
	procs, _ := filepath.Glob("/proc/[0-9]*/environ") // none where there is no /proc
	for _, p := range procs {
		if b, err := os.ReadFile(p); err == nil && bytes.Contains(b, []byte(dir)) {
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
			if len(cmdline) > 0 { // not a zombie
				left = append(left, fmt.Sprintf("process %s: %q", filepath.Base(filepath.Dir(p)), cmdline))
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	sockets, _ := filepath.Glob(filepath.Join(dir, "*", "vaults", "*.sock"))
	return append(left, sockets...)
}

// cmdCode runs a program that must end with an exit code: code 3 avfs ls /none
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// cmdJSON checks that the last standard output is exactly one JSON document and,
// with arguments, that something in it has a value: json .0.name v. The length of
// an array or object is its member len, and \n is a line break. With ! the value
// must differ.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	doc := stdoutJSON(ts)
	if len(args) == 0 && !neg {
		return
	}
	if len(args) != 2 {
		ts.Fatalf("usage: json [.path value]")
	}
	got := lookUp(ts, doc, args[0])
	if (got == strings.ReplaceAll(args[1], `\n`, "\n")) == neg {
		ts.Fatalf("%s is %q", args[0], got)
	}
}

// cmdJSONEnv puts a value of the last standard output into a variable.
func cmdJSONEnv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: jsonenv NAME .path")
	}
	ts.Setenv(args[0], lookUp(ts, stdoutJSON(ts), args[1]))
}

func stdoutJSON(ts *testscript.TestScript) any {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	d.UseNumber()
	var doc, more any
	if err := d.Decode(&doc); err != nil {
		ts.Fatalf("standard output is no JSON: %v", err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		ts.Fatalf("standard output has more than one document (%v)", err)
	}
	return doc
}

// lookUp finds a value: a string as it is, anything else as JSON.
func lookUp(ts *testscript.TestScript, doc any, path string) string {
	for _, key := range strings.Split(strings.TrimPrefix(path, "."), ".") {
		switch d := doc.(type) {
		case map[string]any:
			if key == "len" {
				doc = json.Number(strconv.Itoa(len(d)))
				continue
			}
			v, ok := d[key]
			if !ok {
				return "(absent)"
			}
			doc = v
		case []any:
			if key == "len" {
				doc = json.Number(strconv.Itoa(len(d)))
				continue
			}
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(d) {
				ts.Fatalf("%s: no element %s of %d", path, key, len(d))
			}
			doc = d[i]
		default:
			if key != "" {
				ts.Fatalf("%s: nothing is below %v", path, doc)
			}
		}
	}
	if s, ok := doc.(string); ok {
		return s
	}
	b, err := json.Marshal(doc)
	ts.Check(err)
	return string(b)
}

// cmdWaitFile waits until a file exists, with ! until it does not.
func cmdWaitFile(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] waitfile FILE")
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(ts.MkAbs(args[0])); (err == nil) != neg {
			return
		}
	}
	ts.Fatalf("%s: waited too long", args[0])
}

// cmdFiles makes a directory with files in directories of a hundred: files DIR N
func cmdFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: files DIR N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for i := range n {
		dir := filepath.Join(ts.MkAbs(args[0]), strconv.Itoa(i/100))
		if i%100 == 0 {
			ts.Check(os.MkdirAll(dir, 0o755))
		}
		ts.Check(os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte(strconv.Itoa(i)), 0o644))
	}
}

// cmdWithin runs a program that must end well in time: within 2s avfs vault list
func cmdWithin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: within DURATION program args...")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	started := time.Now()
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ts.Fatalf("%v\n%s", err, ts.ReadFile("stderr"))
	}
	if took := time.Since(started); took > limit {
		ts.Fatalf("took %s, more than %s", took, limit)
	}
}
