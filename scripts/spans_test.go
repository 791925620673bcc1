package scripts_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	spanPattern = regexp.MustCompile("`avfs ([^`]+)`")
	vaultFlag   = regexp.MustCompile(`--vault \S+`)
	flagPattern = regexp.MustCompile(`(?:^| )(--[a-z][a-z-]*)`)
	wordPattern = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// TestCommandsInText finds commands and flags in the sentences and tables of the pages
// that avfs does not know. Blocks are run by TestPages.
func TestCommandsInText(t *testing.T) {
	program := build(t)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	helps, spans := make(map[string]string), 0
	for _, page := range append(pages, readme) {
		for _, m := range spanPattern.FindAllStringSubmatch(read(t, page), -1) {
			spans++
			checkSpan(t, program, filepath.Base(page), m[1], helps)
		}
	}
	if spans < 40 {
		t.Errorf("only %d commands found", spans)
	}
}

// checkSpan checks one command line as it stands in a text. helps holds what was asked
// for before.
func checkSpan(t *testing.T, program, page, span string, helps map[string]string) {
	line, _, _ := strings.Cut(span, " -- ")
	name := commandName(program, line, helps)
	if name == "" {
		t.Errorf("%s: avfs has no command %q", page, span)
		return
	}
	for _, f := range flagPattern.FindAllStringSubmatch(line, -1) {
		if !strings.Contains(helps[name], f[1]) {
			t.Errorf("%s: avfs %s has no flag %s", page, name, f[1])
		}
	}
}

// commandName returns the longest beginning of a command line that names a command,
// and keeps the command's help.
func commandName(program, line string, helps map[string]string) string {
	name := ""
	for _, word := range strings.Fields(vaultFlag.ReplaceAllString(line, "")) {
		if strings.HasPrefix(word, "-") {
			continue
		}
		next := strings.TrimSpace(name + " " + word)
		if _, known := helps[next]; !known && wordPattern.MatchString(word) {
			out, err := exec.Command(program, append(strings.Fields(next), "--help")...).Output()
			if err == nil && strings.HasPrefix(string(out), "Usage: avfs "+next) {
				helps[next] = string(out)
			}
		}
		if helps[next] == "" {
			break
		}
		name = next
	}
	return name
}

var (
	goTestPattern = regexp.MustCompile("`(?:[A-Z_]+=\\S+ )?go test ([^`]+)`")
	runPattern    = regexp.MustCompile(`-(run|bench) ([A-Za-z]\w*)`)
	packageSpan   = regexp.MustCompile(`\./\S+`)
)

// TestMeasuringCommands finds commands in the text that measure something again and
// name a test or benchmark, or a package, that is not there.
func TestMeasuringCommands(t *testing.T) {
	const page = "../docs/limits.md"
	spans := goTestPattern.FindAllStringSubmatch(read(t, page), -1)
	for _, m := range spans {
		files, err := filepath.Glob(filepath.Join("..", packageSpan.FindString(m[1]), "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no package with tests, %v", m[0], err)
			continue
		}
		var tests strings.Builder
		for _, f := range files {
			tests.WriteString(read(t, f))
		}
		for _, r := range runPattern.FindAllStringSubmatch(m[1], -1) {
			kind := map[string]string{"run": "Test", "bench": "Benchmark"}[r[1]]
			name := regexp.MustCompile(`(?m)^func ` + kind + `\w*` + strings.TrimPrefix(r[2], kind))
			if !name.MatchString(tests.String()) {
				t.Errorf("%s: there is no %s %s", m[0], r[1], r[2])
			}
		}
	}
	if len(spans) < 5 {
		t.Errorf("only %d commands found", len(spans))
	}
}
