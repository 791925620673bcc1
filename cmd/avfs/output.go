package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/agentvfs/avfs/engine"
)

// print shows a result: as one JSON document, or as people says it.
func (a *app) print(doc any, people func(w io.Writer)) error {
	if a.flags.JSON {
		return a.printJSON(doc)
	}
	if people == nil {
		return nil
	}
	w := bufio.NewWriterSize(a.stdout, 64<<10)
	people(w)
	return w.Flush()
}

// printJSON writes one document, indented where a person looks at it.
func (a *app) printJSON(doc any) error {
	w := bufio.NewWriterSize(a.stdout, 64<<10)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if isTerminal(a.stdout) {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(doc); err != nil {
		return err
	}
	return w.Flush()
}

// warn writes a line for people to standard error.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintln(a.stderr, "avfs: "+safeLines(fmt.Sprintf(format, args...)))
}

// note writes a line that --quiet and --json leave out.
func (a *app) note(format string, args ...any) {
	if !a.flags.Quiet && !a.flags.JSON {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// trace writes a line that only --verbose shows, with the time since the start.
func (a *app) trace(format string, args ...any) {
	if a.flags.Verbose {
		a.warn("%6.1f ms  "+format, append([]any{float64(time.Since(a.started).Microseconds()) / 1000}, args...)...)
	}
}

// isTerminal reports whether a person sits at the stream.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// table writes rows in aligned columns.
func table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // w reports its own failure when it is flushed
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n)/1024, 0
	for f >= 1024 && unit < len("KMGTP")-1 {
		f /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[unit])
}

// clock is a time for people, in their zone.
func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// safe is text that cannot play tricks on a terminal.
func safe(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// safeLines is safe for a message that may be several lines or have a name with a line
// break in it: no line but the first begins where a message does.
func safeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = safe(line)
	}
	return strings.Join(lines, "\n  ")
}

func unprintable(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\uFFFD' }

var changeLetters = map[engine.ChangeKind]string{
	engine.Added: "A", engine.Deleted: "D", engine.Modified: "M", engine.Renamed: "R",
	engine.TypeChanged: "T", engine.ModeChanged: "P", engine.AttrChanged: "X", engine.TimesChanged: "C",
}

// changeLine is one change as a line.
func changeLine(c engine.FileChange) string {
	letter := changeLetters[c.Kind]
	switch c.Kind {
	case engine.Renamed:
		return fmt.Sprintf("%s %s \u2192 %s", letter, safe(c.OldPath), safe(c.Path))
	case engine.ModeChanged:
		return fmt.Sprintf("%s %s (%s \u2192 %s)", letter, safe(c.Path), c.ModeBefore, c.ModeAfter)
	}
	if c.Type == "dir" {
		return letter + " " + safe(c.Path) + "/"
	}
	return letter + " " + safe(c.Path)
}

// changeLines writes changes, and how many of total are not among them.
func changeLines(w io.Writer, changes []engine.FileChange, most, total int) {
	if most > 0 && len(changes) > most {
		changes = changes[:most]
	}
	for _, c := range changes {
		fmt.Fprintln(w, changeLine(c))
	}
	if left := total - len(changes); left > 0 {
		fmt.Fprintf(w, "\u2026 and %d more\n", left)
	}
}
