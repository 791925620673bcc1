// Package sdk_test runs the tests of the SDKs against the program that is built here.
package sdk_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long one suite may take, a busy machine included.
const patience = 10 * time.Minute

// built is where the program is, once it was asked for.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "avfs-sdk-")
	if err != nil {
		return "", err
	}
	args := []string{"build"}
	if runtime.GOOS == "linux" {
		args = append(args, "-tags", "fuse3")
	}
	out, err := exec.Command("go", append(args, "-o", filepath.Join(dir, "avfs"), "../cmd/avfs")...).CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("go build: %w: %s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if dir, _ := built(); dir != "" {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func program(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "avfs")
}

// needs skips a test where a program is missing or, by the test that is given as its
// arguments, too old.
func needs(t *testing.T, what, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Skipf("SKIP, %s NOT TESTED: %s %q: %v: %s", what, name, args, err, out)
	}
}

// needsMount skips a test that runs commands in vaults where nothing can be mounted.
func needsMount(t *testing.T, what string) {
	t.Helper()
	needs(t, what, "../scripts/check-fuse")
}

// run runs a program in a folder, with the program built here and an empty workspace.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "AVFS_BIN="+program(t), "AVFS_VAULT=", "AVFS_LINGER=1s", "PYTHONDONTWRITEBYTECODE=1", "npm_config_update_notifier=false")
	if testing.Short() {
		cmd.Env = append(cmd.Env, "AVFS_TEST_SHORT=1")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestGenerated holds the files that are made of the contract to what it is now.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	run(t, ".", "go", "run", "./gen", "-avfs", program(t), "-contract", "../docs/contract.md", "-from", ".", "-to", dir)
	count := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		count++
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, want) {
			t.Errorf("sdk/%s is not what the contract says (%v); \"make sdk-types\" brings it up to date", name, err)
		}
		return nil
	})
	if err != nil || count == 0 {
		t.Fatalf("%d files: %v", count, err)
	}
}

// TestLicences holds the copies in the packages to be those of the whole.
func TestLicences(t *testing.T) {
	want, err := os.ReadFile("../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"python/LICENSE", "node/LICENSE"} {
		if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, want) {
			t.Errorf("sdk/%s is not LICENSE: %v", name, err)
		}
	}
}

const aPythonThatWillDo = "import sys; sys.exit(sys.version_info < (3, 11))"

// TestPython runs the tests of the Python SDK.
func TestPython(t *testing.T) {
	t.Parallel()
	needs(t, "THE PYTHON SDK IS", "python3", "-c", aPythonThatWillDo)
	needsMount(t, "THE PYTHON SDK IS")
	out := run(t, "python", "python3", "-W", "error", "-m", "unittest", "discover", "-t", ".", "-s", "tests")
	if strings.Contains(out, "Ran 0 tests") {
		t.Errorf("no tests were found:\n%s", out)
	}
}

// TestPythonReadme runs the program that the README's blocks make.
func TestPythonReadme(t *testing.T) {
	t.Parallel()
	needs(t, "THE README OF THE PYTHON SDK IS", "python3", "-c", aPythonThatWillDo)
	needsMount(t, "THE README OF THE PYTHON SDK IS")
	here, err := filepath.Abs("python")
	if err != nil {
		t.Fatal(err)
	}
	dir := project(t)
	write(t, filepath.Join(dir, "readme.py"), "import sys\nsys.path.insert(0, "+fmt.Sprintf("%q", here)+")\n"+blocks(t, "python/README.md", "python"))
	wantLines(t, run(t, dir, "env", "AVFS_HOME="+filepath.Join(dir, "home"), "python3", "-W", "error", "readme.py"))
}

// TestPythonPackage builds the wheel, and lets mypy check the types, in a virtual
// environment of its own.
func TestPythonPackage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP, THE PYTHON PACKAGE IS NOT TESTED: it installs packages, which takes long")
	}
	needs(t, "THE PYTHON PACKAGE IS", "python3", "-c", aPythonThatWillDo)
	dir := t.TempDir()
	run(t, dir, "python3", "-m", "venv", "venv")
	pip, python := filepath.Join(dir, "venv/bin/pip"), filepath.Join(dir, "venv/bin/python")
	if out, err := exec.Command(pip, "install", "-q", "mypy==2.4.1", "setuptools==84.2.1").CombinedOutput(); err != nil {
		t.Skipf("SKIP, THE PYTHON PACKAGE IS NOT TESTED: %v: %s", err, out)
	}
	source := filepath.Join(dir, "source") // building leaves files beside the sources
	if err := os.CopyFS(source, os.DirFS("python")); err != nil {
		t.Fatal(err)
	}
	run(t, source, python, "-m", "mypy")
	run(t, source, pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", dir, ".")
	wheels, err := filepath.Glob(filepath.Join(dir, "avfs-*-py3-none-any.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("the wheels are %q, %v", wheels, err)
	}
	run(t, dir, pip, "install", "-q", "--no-index", wheels[0])
	run(t, dir, python, "-c", "import avfs, pathlib; assert pathlib.Path(avfs.__file__).with_name('py.typed').exists(); avfs.Avfs().version()")
}

const aNodeThatWillDo = "process.exit(process.versions.node.split('.')[0] >= 18 ? 0 : 1)"

// TestNode runs the tests of the Node SDK.
func TestNode(t *testing.T) {
	t.Parallel()
	needs(t, "THE NODE SDK IS", "node", "-e", aNodeThatWillDo)
	needsMount(t, "THE NODE SDK IS")
	tests, err := filepath.Glob("node/test/*.test.cjs")
	if err != nil || len(tests) == 0 {
		t.Fatalf("the tests are %q, %v", tests, err)
	}
	args := []string{"--test"}
	for _, file := range tests {
		args = append(args, filepath.Join("test", filepath.Base(file)))
	}
	run(t, "node", "node", args...)
}

// TestNodeReadme runs the program that the README's blocks make.
func TestNodeReadme(t *testing.T) {
	t.Parallel()
	needs(t, "THE README OF THE NODE SDK IS", "node", "-e", aNodeThatWillDo)
	needsMount(t, "THE README OF THE NODE SDK IS")
	here, err := filepath.Abs("node")
	if err != nil {
		t.Fatal(err)
	}
	dir := project(t)
	if err := os.Mkdir(filepath.Join(dir, "node_modules"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(here, filepath.Join(dir, "node_modules", "avfs")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "readme.mjs"), blocks(t, "node/README.md", "js"))
	wantLines(t, run(t, dir, "env", "AVFS_HOME="+filepath.Join(dir, "home"), "node", "readme.mjs"))
}

// TestNodePackage lets the compiler of TypeScript check the declarations, and packs
// the package and uses what came of it.
func TestNodePackage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP, THE NODE PACKAGE IS NOT TESTED: it installs packages, which takes long")
	}
	needs(t, "THE NODE PACKAGE IS", "node", "-e", aNodeThatWillDo)
	needs(t, "THE NODE PACKAGE IS", "npm", "--version")
	source := t.TempDir()
	if err := os.CopyFS(source, withoutModules{os.DirFS("node")}); err != nil {
		t.Fatal(err)
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit")
	install.Dir = source
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("SKIP, THE NODE PACKAGE IS NOT TESTED: %v: %s", err, out)
	}
	run(t, source, "node_modules/.bin/tsc", "-p", "test")
	run(t, source, "npm", "pack")
	user := t.TempDir()
	write(t, filepath.Join(user, "package.json"), "{}")
	run(t, user, "npm", "install", "--offline", "--no-fund", "--no-audit", filepath.Join(source, "avfs-0.1.0.tgz"))
	run(t, user, "node", "-e", "new (require('avfs').Avfs)().version().then((v) => { if (!v.version) process.exit(1) })")
	run(t, user, "node", "--input-type=module", "-e", "import { Avfs } from 'avfs'; await new Avfs().version()")
	for _, file := range []string{"index.d.mts", "index.d.cts", "types.d.cts", "README.md"} {
		if _, err := os.Stat(filepath.Join(user, "node_modules", "avfs", file)); err != nil {
			t.Error(err)
		}
	}
}

// withoutModules is a tree without what npm has installed there.
type withoutModules struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (w withoutModules) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "node_modules" }), err
}

// project makes the folder that the READMEs work in.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "project"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "project", "app.py"), "print('helo')\n")
	t.Cleanup(func() {
		// The owner ends by itself when nothing has needed it for AVFS_LINGER.
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			sockets, err := filepath.Glob(filepath.Join(dir, "home", "vaults", "*.sock"))
			if err == nil && len(sockets) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("left are %q, %v", sockets, err)
				return
			}
		}
	})
	return dir
}

// wantLines looks for what every README prints.
func wantLines(t *testing.T, out string) {
	t.Helper()
	for _, want := range []string{"completed 0 helo", "modified app.py", "added notes/today.md", "fixed the greeting", "NotFound 3"} {
		if !strings.Contains(out, want) {
			t.Errorf("the README does not print %q:\n%s", want, out)
		}
	}
}

// blocks joins the blocks of a language in a document.
func blocks(t *testing.T, file, language string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for i, part := range strings.Split(string(text), "\n```") {
		if code, ok := strings.CutPrefix(part, language+"\n"); ok && i%2 == 1 {
			all.WriteString(code + "\n\n")
		}
	}
	if all.Len() == 0 {
		t.Fatalf("%s has no block of %s", file, language)
	}
	return all.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
