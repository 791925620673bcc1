package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	docFile    = regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```\\w+\n(.*?)```\n")
	docConsole = regexp.MustCompile("(?s)```console\n(.*?)```\n")
)

// TestPolicyDoc runs every command of docs/policy.md with the files that stand there,
// and compares what it prints.
func TestPolicyDoc(t *testing.T) {
	const doc = "../docs/policy.md"
	text := read(t, doc)
	dir := t.TempDir()
	env := append(os.Environ(), "AVFS_HOME="+filepath.Join(dir, "home"), "PATH="+filepath.Dir(build(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, m := range docFile.FindAllStringSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte(m[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := 0
	got := docConsole.ReplaceAllStringFunc(text, func(block string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for line := range strings.Lines(block) {
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue
			}
			commands++
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir, cmd.Env = dir, env
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(command), err)
			}
			b.WriteString(line + string(out))
		}
		return b.String() + "```\n"
	})
	if commands < 5 {
		t.Errorf("only %d commands found", commands)
	}
	if got == text {
		return
	}
	if !*update {
		t.Fatalf("docs/policy.md says\n%s\nbut it is\n%s", text, got)
	}
	if err := os.WriteFile(doc, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}
