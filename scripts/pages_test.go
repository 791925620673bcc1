package scripts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A block is one fenced block of a page, or a comment that prepares what follows.
//
// A comment in the line above a fence says more about it: "file: NAME" puts the text
// into a file of the page's directory, "not run: REASON" leaves it out, and
// "ends with: CODE" is how the last command of it ends. "prepare:" with commands is a
// comment of its own, which readers do not see.
type block struct {
	lang string // what stands behind the fence; prepare for a comment
	note string // the comment above it, without the marks
	text string // what stands inside
	line int    // of the page, from 1
	from int    // where text begins in the page, in bytes
}

const prepare = "prepare"

// Languages of which each block is run, and those of which nothing can be run.
var (
	runners = map[string]func(*testing.T, *desk, block) string{
		"sh": runShell, prepare: runShell, "console": runConsole, "go": runGo, "python": runPython, "js": runNode,
	}
	inert = map[string]bool{"json": true, "yaml": true, "text": true, "toml": true}
)

// TestPages runs every command of README.md and of the pages in docs/ as a reader
// would who follows them from top to bottom, each page in a home directory of its own.
func TestPages(t *testing.T) {
	program := build(t)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 3 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	for _, path := range append(pages, readme) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text := read(t, path)
			if usesMount.MatchString(text) {
				needsMount(t)
			}
			now := runPage(t, newDesk(t, program), text)
			if !*update || t.Failed() || steady(now) == steady(text) {
				return
			}
			if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// runPage runs the blocks of a page and returns it with what they print now.
func runPage(t *testing.T, d *desk, text string) string {
	var b strings.Builder
	done := 0
	for _, blk := range blocks(t, text) {
		// The transcript has a script and a test of its own.
		if strings.HasPrefix(blk.note, "transcript:") || inert[blk.lang] && !strings.HasPrefix(blk.note, "file:") {
			continue
		}
		t.Run(fmt.Sprintf("line %d", blk.line), func(t *testing.T) {
			if got, ok := runBlock(t, d, blk); ok {
				b.WriteString(text[done:blk.from] + got)
				done = blk.from + len(blk.text)
			}
		})
	}
	return b.String() + text[done:]
}

// runBlock runs one block and returns what should stand in it.
func runBlock(t *testing.T, d *desk, blk block) (string, bool) {
	if reason, ok := strings.CutPrefix(blk.note, "not run: "); ok {
		t.Skipf("not run: %s", reason)
	}
	if name, ok := strings.CutPrefix(blk.note, "file: "); ok {
		d.write(t, name, blk.text)
		return blk.text, true
	}
	run, ok := runners[blk.lang]
	if !ok {
		t.Fatalf("nothing runs a block of %q; say why it is not run, or add how", blk.lang)
	}
	got := run(t, d, blk)
	if !*update && steady(got) != steady(blk.text) {
		t.Errorf("this stands there:\n%s\nand this is what it prints:\n%s\n\"make transcript\" brings it up to date", blk.text, got)
	}
	return got, true
}

var (
	usesMount  = regexp.MustCompile(`avfs.* (exec|mount|fanout|shell)\b`)
	notePrefix = regexp.MustCompile(`^<!-- (.*?)(?: -->)?$`)
	// What differs from run to run: ids of execs, hashes, times and dates, and sizes on
	// the disk.
	unsteady = regexp.MustCompile(`\b01[0-9A-HJKMNP-TV-Z]{24}\b|\b[0-9a-f]{40,64}\b|\b\d+(\.\d+)?(µs|ms|s)\b|\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?|\b\d+(\.\d+)? [KM]iB\b`)
)

// steady replaces what differs from run to run.
func steady(s string) string { return unsteady.ReplaceAllString(s, "X") }

// blocks finds the blocks of a page.
func blocks(t *testing.T, text string) []block {
	var (
		list []block
		cur  *block
		note string
		end  string // the line that ends cur
		n    int
		at   int
	)
	for line := range strings.Lines(text) {
		n++
		at += len(line)
		bare := strings.TrimRight(line, "\n")
		switch {
		case cur != nil && bare == end:
			list, cur, note = append(list, *cur), nil, ""
		case cur != nil:
			cur.text += line
		case bare == "<!-- "+prepare+":":
			cur, end = &block{lang: prepare, line: n, from: at}, "-->"
		case strings.HasPrefix(bare, "```"):
			cur, end = &block{lang: bare[3:], note: note, line: n, from: at}, "```"
		default:
			note = ""
			if m := notePrefix.FindStringSubmatch(bare); m != nil {
				note = m[1]
			}
		}
	}
	if cur != nil {
		t.Fatalf("the block of line %d does not end", cur.line)
	}
	return list
}
