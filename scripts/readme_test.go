// Package scripts_test checks that the documents of the project say what is true.
package scripts_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of README.md anew")

const (
	readme          = "../README.md"
	transcriptBegin = "```console\n"
	transcriptEnd   = "```\n<!-- end of transcript -->\n"
	codesBegin      = "| code | meaning |\n|---|---|\n"
	codesEnd        = "\n## JSON\n"
)

// TestTranscript runs the commands at the top of the README again. Times are not
// compared.
func TestTranscript(t *testing.T) {
	needsMount(t)
	got := run(t, "./transcript", build(t))
	compare(t, transcriptBegin, transcriptEnd, got, withoutTimes)
}

// TestTranscriptStandsAtTheTop keeps the first thing to see within thirty lines.
func TestTranscriptStandsAtTheTop(t *testing.T) {
	text := read(t, readme)
	end := strings.Index(text, transcriptEnd)
	if end < 0 {
		t.Fatalf("README.md has no %q", transcriptEnd)
	}
	if lines := strings.Count(text[:end], "\n"); lines > 30 {
		t.Errorf("the transcript ends in line %d", lines)
	}
}

// TestExitCodes compares the table of the README with the help.
func TestExitCodes(t *testing.T) {
	help := run(t, build(t), "--help")
	_, help, found := strings.Cut(help, "Exit codes")
	if !found {
		t.Fatalf("the help says nothing of exit codes:\n%s", help)
	}
	help, _, _ = strings.Cut(help, "Flags:")
	var table strings.Builder
	for _, row := range regexp.MustCompile(`(?m)^ +(\d+(?:, \d+|\+n)?)  +(\S.*)$`).FindAllStringSubmatch(help, -1) {
		table.WriteString("| " + row[1] + " | " + row[2] + " |\n")
	}
	if rows := strings.Count(table.String(), "\n"); rows < 10 {
		t.Fatalf("only %d exit codes found in the help", rows)
	}
	compare(t, codesBegin, codesEnd, table.String(), func(s string) string { return s })
}

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)]*)?\)`)
	makePattern    = regexp.MustCompile("(?:`|\n)make ([a-z][a-z-]*)")
	headingPattern = regexp.MustCompile(`(?m)^#+ (.*)$`)
	slugPattern    = regexp.MustCompile(`[^\w\- ]`)
)

// TestReferences finds links to files and headings, and make targets, that do not exist.
func TestReferences(t *testing.T) {
	makefile := read(t, "../Makefile")
	links, targets := 0, 0
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, readme, "../CONTRIBUTING.md", "../CHANGELOG.md") {
		text := read(t, doc)
		for _, m := range linkPattern.FindAllStringSubmatch(text, -1) {
			links++
			target := doc
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(doc), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", filepath.Base(doc), err)
			} else if m[2] != "" && !hasHeading(read(t, target), m[2][1:]) {
				t.Errorf("%s: %s has no heading %s", filepath.Base(doc), target, m[2])
			}
		}
		for _, m := range makePattern.FindAllStringSubmatch(text, -1) {
			targets++
			if filepath.Base(doc) != "guide.md" && !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no target %s in the Makefile", filepath.Base(doc), m[1])
			}
		}
	}
	if links == 0 || targets == 0 {
		t.Errorf("%d links and %d targets found: the patterns are wrong", links, targets)
	}
}

// hasHeading tells whether a page has a heading to which #slug leads.
func hasHeading(text, slug string) bool {
	for _, m := range headingPattern.FindAllStringSubmatch(text, -1) {
		if strings.ReplaceAll(slugPattern.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == slug {
			return true
		}
	}
	return false
}

// compare fails where what stands between two markers of the README is not want;
// same brings both into the form to compare. With -update it writes want there.
func compare(t *testing.T, begin, end, want string, same func(string) string) {
	t.Helper()
	text := read(t, readme)
	before, rest, ok := strings.Cut(text, begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md lacks %q or %q", begin, end)
	}
	if same(have) == same(want) {
		return
	}
	if !*update {
		t.Fatalf("README.md says\n%s\nbut it is\n%s\n\"make transcript\" brings it up to date", have, want)
	}
	if err := os.WriteFile(readme, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

var timePattern = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b`)

// withoutTimes makes all durations the same.
func withoutTimes(s string) string { return timePattern.ReplaceAllString(s, "TIME") }

// programDir is where the program is that the tests share.
func programDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("avfs-scripts-%d", os.Getpid()))
}

// built makes the command line program as "make build" does, once.
var built = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programDir(), "avfs")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	args := []string{"build"}
	if runtime.GOOS == "linux" {
		args = append(args, "-tags", "fuse3")
	}
	out, err := exec.Command("go", append(args, "-o", program, "../cmd/avfs")...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, err
})

// TestMain removes the program that the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(programDir()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// build returns the path of the command line program.
func build(t *testing.T) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// run runs a program and returns its standard output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// needsMount skips what cannot run here.
func needsMount(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIP, THE README IS NOT CHECKED: mounting is tested on Linux only")
	}
	if out, err := exec.Command("./check-fuse").CombinedOutput(); err != nil {
		t.Skipf("SKIP, THE README IS NOT CHECKED: %s", out)
	}
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skipf("SKIP, THE README IS NOT CHECKED: %v", err)
	}
}
