package main

import (
	"strconv"
	"strings"

	"github.com/agentvfs/avfs/workspace"
)

// paint colours words for a person at a terminal; the zero value leaves them alone.
type paint bool

// paint colours where a person looks at standard output, unless NO_COLOR says no
// (https://no-color.org).
func (a *app) paint() paint {
	return paint(isTerminal(a.stdout) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb")
}

// The colours, as ANSI's select graphic rendition has them.
const (
	colourDir     = "1;34"
	colourLink    = "36"
	colourProgram = "32"
	colourPath    = "35"
	colourNumber  = "32"
	colourMatch   = "1;31"
)

func (p paint) as(colour, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// name colours the name of an entry by what it is.
func (p paint) name(e workspace.Entry, name string) string {
	switch mode, err := strconv.ParseUint(e.Mode, 8, 32); {
	case e.Type == "dir":
		return p.as(colourDir, name)
	case e.Type == "symlink":
		return p.as(colourLink, name)
	case e.Type == "file" && err == nil && mode&0o111 != 0:
		return p.as(colourProgram, name)
	}
	return name
}

// match is the beginning of a line that grep prints.
func (p paint) match(path string, line int, mark rune) string {
	var b strings.Builder
	b.WriteString(p.as(colourPath, safe(path)))
	b.WriteRune(mark)
	b.WriteString(p.as(colourNumber, strconv.Itoa(line)))
	b.WriteRune(mark)
	return b.String()
}
