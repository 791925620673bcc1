package workspace

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// text is a file of a searcher.
type text string

func (t text) ReadOnce(_ context.Context, list []engine.Once) {
	for i := range list {
		r := &list[i]
		r.N = copy(r.Buf, t[min(r.Off, int64(len(t))):])
	}
}

// search searches the file.
func (t text) search(ctx context.Context, s *searcher) ([]GrepMatch, error) {
	list := []engine.Once{{Buf: make([]byte, s.room(grepFile{size: int64(len(t))}))}}
	t.ReadOnce(ctx, list)
	return s.file(ctx, t, &list[0])
}

// plainly searches as a searcher must: line by line.
func plainly(content, expr string, before, after int) []GrepMatch {
	re := regexp.MustCompile(expr)
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if content == "" {
		lines = nil
	}
	var found []GrepMatch
	for i, line := range lines {
		near := slices.ContainsFunc(lines[max(0, i-after):min(len(lines), i+before+1)], re.MatchString)
		if re.MatchString(line) || near {
			found = append(found, GrepMatch{Line: i + 1, Text: line, Context: !re.MatchString(line)})
		}
	}
	return found
}

// TestSearcherFindsWhatLineByLineFinds compares the shortcuts of a searcher with the
// plain way.
func TestSearcherFindsWhatLineByLineFinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"func", "Func", "FUNC", "test", "Kelvin", "\u212Aelvin", "\u017Fome", "some", "\u0130x", "ix", "", "a b", "\t", "x\r", strings.Repeat("long ", 6000)}
	content := func(lines int) string {
		var b strings.Builder
		for range lines {
			for range rng.IntN(4) {
				b.WriteString(words[rng.IntN(len(words)-rng.IntN(2))] + " ")
			}
			b.WriteByte('\n')
		}
		return strings.TrimSuffix(b.String(), strings.Repeat("\n", rng.IntN(2)))
	}
	exprs := []string{
		"func", "(?i)func", "(?i)kelvin", "(?i)some", "(?i)\u0130x", "(?i)IX", "^func", "func $", "^$", "", `\Afunc`, `some \z`, `\bsome\b`, "[^x]+test",
		`\s+func`, "(?s)func.*some", "func|test", "(func)+", "f{1,2}unc", "(?i)(test)+ x", "long long", `(?-m:^some)`, "no such", "a b|c", "x*",
	}
	for round := range 6 {
		c := content(1 + rng.IntN(60))
		for _, expr := range exprs {
			p, err := newPattern(&GrepRequest{Pattern: expr})
			if err != nil {
				t.Fatal(err)
			}
			s := &searcher{pattern: p, before: round % 4, after: (round / 2) % 3}
			got, err := text(c).search(t.Context(), s)
			want := plainly(c, expr, s.before, s.after)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%q with %d, %d lines of context: %v\n%s\nwant\n%s", expr, s.before, s.after, err, brief(got), brief(want))
			}
		}
	}
}

func brief(found []GrepMatch) string {
	var b strings.Builder
	for _, m := range found {
		fmt.Fprintf(&b, "%d:%v:%.40q (%d)\n", m.Line, m.Context, m.Text, len(m.Text))
	}
	return b.String()
}

// TestSearcherOptions covers what is not in the expression itself.
func TestSearcherOptions(t *testing.T) {
	for _, c := range []struct {
		req  GrepRequest
		text string
		want int
	}{
		{GrepRequest{Pattern: "a.c", Fixed: true}, "abc\na.c\n", 1},
		{GrepRequest{Pattern: "A.C", Fixed: true, IgnoreCase: true}, "abc\na.c\n", 1},
		{GrepRequest{Pattern: "cat", Word: true}, "cat\ncats\nthe cat.\n", 2},
		{GrepRequest{Pattern: "cat"}, "cat\x00\n", 0},
		{GrepRequest{Pattern: "cat"}, strings.Repeat("y", 3*maxLine) + "cat", 1},
	} {
		p, err := newPattern(&c.req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := text(c.text).search(t.Context(), &searcher{pattern: p})
		if err != nil || len(got) != c.want {
			t.Errorf("%+v: %d lines, %v, want %d", c.req, len(got), err, c.want)
		}
	}
	if _, err := newPattern(&GrepRequest{Pattern: "("}); err == nil {
		t.Error("a broken expression is taken")
	}
}

// TestIndexFold compares with the plain way, on every side of a window.
func TestIndexFold(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 2000 {
		b := make([]byte, rng.IntN(3*foldWindow))
		for i := range b {
			b[i] = "xXaAbB_@[`{"[rng.IntN(11)]
		}
		text := []byte([]string{"x", "ab", "xa_b", "@", "a@`x", "xxxxxx"}[round%6])
		if round%2 == 0 && len(b) > len(text) { // make it rare
			for i := range b {
				b[i] = "aB_"[rng.IntN(3)]
			}
			copy(b[rng.IntN(len(b)-len(text)):], strings.ToUpper(string(text)))
		}
		want := bytes.Index(bytes.ToLower(b), text)
		if got := indexFold(b, text, rarest(text)); got != want {
			t.Fatalf("%q is at %d in %d bytes, want %d", text, got, len(b), want)
		}
	}
}
