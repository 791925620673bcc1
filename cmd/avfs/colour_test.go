package main

import (
	"strings"
	"testing"

	"github.com/agentvfs/avfs/workspace"
)

func TestColoursAreForTerminals(t *testing.T) {
	a := newApp(t.Context())
	a.stdout = &strings.Builder{}
	if a.paint() {
		t.Error("what is no terminal gets colours")
	}
	list := []workspace.Entry{
		{Name: "d", Type: "dir", Mode: "0755"}, {Name: "f", Type: "file", Mode: "0644"},
		{Name: "x", Type: "file", Mode: "0755"}, {Name: "l", Type: "symlink", Mode: "0777", Target: "d"},
	}
	for on, want := range map[paint]string{
		false: "d f x l -> d",
		true:  "\x1b[1;34md\x1b[0m f \x1b[32mx\x1b[0m \x1b[36ml\x1b[0m -> d",
	} {
		var b strings.Builder
		longList(&b, list, on)
		var names []string
		for line := range strings.Lines(b.String()) {
			fields := strings.SplitN(strings.TrimSpace(line), "  ", 5)
			names = append(names, fields[len(fields)-1][strings.LastIndex(fields[len(fields)-1], ":")+1:])
		}
		got := strings.Join(names, " ")
		for _, w := range strings.Split(want, " ") {
			if !strings.Contains(got, w) {
				t.Errorf("with colours %v the list lacks %q:\n%q", on, w, b.String())
			}
		}
		if !bool(on) && strings.Contains(b.String(), "\x1b") {
			t.Errorf("colours without a terminal: %q", b.String())
		}
	}
	if got := paint(true).match("/a\x1b", 3, ':'); got != "\x1b[35m/a\\x1b\x1b[0m:\x1b[32m3\x1b[0m:" {
		t.Errorf("%q", got)
	}
}
