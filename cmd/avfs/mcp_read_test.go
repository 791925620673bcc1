package main

import (
	"errors"
	"strings"
	"testing"
)

// TestReadWindow holds which lines a window has, and that what it leaves out of a line
// is told, so that each byte is kept, counted or behind the window.
func TestReadWindow(t *testing.T) {
	big, wide := strings.Repeat("A", 100_000), strings.Repeat("\u00fc", maxReadBytes)
	for name, tc := range map[string]struct {
		text              string
		first, most       int
		kept, lines, left int
		more              bool
	}{
		"a long line":               {big + "END\nsecond\n", 1, 9, maxReadBytes, 0, 100_003 - maxReadBytes, true},
		"the line behind it":        {big + "END\nsecond\n", 2, 9, 7, 1, 0, false},
		"nothing but a long line":   {big, 1, 9, maxReadBytes, 0, 100_000 - maxReadBytes, false},
		"with an end":               {big + "\n", 1, 9, maxReadBytes, 0, 100_000 - maxReadBytes, false},
		"one line of many":          {big + "\nx", 1, 1, maxReadBytes, 0, 100_000 - maxReadBytes, true},
		"a long line behind a line": {"one\n" + big + "\nx", 1, 9, 4, 1, 0, true},
		"it alone":                  {"one\n" + big + "\nx", 2, 9, maxReadBytes, 0, 100_000 - maxReadBytes, true},
		"characters":                {"x" + wide, 1, 9, maxReadBytes - 1, 0, maxReadBytes + 2, false},
		"as long as may be":         {big[:maxReadBytes] + "\nx\n", 1, 9, maxReadBytes, 1, 0, true},
		"no text":                   {"\xff\n" + big, 1, 9, 2, 1, 0, true},
		"no text in a long line":    {"\xff" + big, 1, 9, maxReadBytes, 0, 100_001 - maxReadBytes, false},
	} {
		for _, piece := range []int{1000, 64 << 10, 1 << 20} {
			win := &lineWindow{first: tc.first, most: tc.most}
			for rest := tc.text; rest != ""; {
				n := min(piece, len(rest))
				if _, err := win.Write([]byte(rest[:n])); errors.Is(err, errEnough) {
					break
				}
				rest = rest[n:]
			}
			kept := len(win.text())
			if kept != tc.kept || win.lines() != tc.lines || win.left != tc.left || win.more != tc.more {
				t.Errorf("%s, in pieces of %d: %d bytes kept, %d lines, %d left out, more %v", name, piece, kept, win.lines(), win.left, win.more)
			}
		}
	}
}

// TestMCPLongLine holds that a line that is cut is told of, in the document and to the
// model, and that reading goes on behind it.
func TestMCPLongLine(t *testing.T) {
	mcpHome(t)
	p := connect(t, stdio())
	defer p.Close()
	p.must("avfs_write", map[string]any{"path": "/two", "text": strings.Repeat("A", 100_000) + "END\nsecond\n"})
	res := p.must("avfs_read", map[string]any{"path": "/two"})
	doc, _ := res.StructuredContent.(map[string]any)
	left, _ := doc["omitted"].(map[string]any)
	if left["text"] != 67235.0 || doc["lines"] != nil || doc["more"] != true {
		t.Errorf("left out are %v, lines %v, more %v", left, doc["lines"], doc["more"])
	}
	if text := said(res); !strings.Contains(text, "[line 1 is too long: its last 67235 bytes are left out") || !strings.Contains(text, "go on with offset 2]") {
		t.Errorf("it says %s", text[max(len(text)-300, 0):])
	}
	rest := said(p.must("avfs_exec", map[string]any{"command": "sed -n 1p two | tail -c 67236 | head -c 32768 | wc -c; sed -n 1p two | tail -c 67236 | tail -c 4"}))
	if !strings.Contains(rest, "32768\nEND\n") {
		t.Errorf("the rest is %s", rest)
	}
	if text := said(p.must("avfs_read", map[string]any{"path": "/two", "offset": 2})); !strings.Contains(text, "     2\tsecond\n") {
		t.Errorf("the next line is %s", text)
	}
}
