package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMergeText(t *testing.T) {
	for _, c := range []struct{ name, base, ours, theirs, want string }{
		{"apart", "1\n2\n3\n4\n5\n", "A\n2\n3\n4\n5\n", "1\n2\n3\n4\nB\n", "A\n2\n3\n4\nB\n"},
		{"same", "1\n2\n3\n", "1\nx\n3\n", "1\nx\n3\n", "1\nx\n3\n"},
		{"no end", "1\n2\n3\n4", "1\n2\n3\n4!", "0\n2\n3\n4", "0\n2\n3\n4!"},
		{"crlf", "1\r\n2\r\n3\r\n", "1\r\n2\r\n3!\r\n", "1?\r\n2\r\n3\r\n", "1?\r\n2\r\n3!\r\n"},
		{"delete", "1\n2\n3\n4\n", "1\n3\n4\n", "1\n2\n3\n4\n5\n", "1\n3\n4\n5\n"},
		{"empty", "", "", "x\n", "x\n"},
		{"emptied", "x\n", "x\n", "", ""},
	} {
		m := mergeText([]byte(c.base), []byte(c.ours), []byte(c.theirs), markers{"o", "t"})
		if m.hunks != 0 || string(m.text) != c.want {
			t.Errorf("%s: %d conflicts, %q, not %q", c.name, m.hunks, m.text, c.want)
		}
	}
	m := mergeText([]byte("1\n2\n3\n"), []byte("1\nA\n3\n"), []byte("1\nB\n3"), markers{"o", "t"})
	if want := "1\n<<<<<<< o\nA\n3\n=======\nB\n3\n>>>>>>> t\n"; m.hunks != 1 || string(m.text) != want {
		t.Errorf("%d conflicts, %q, not %q", m.hunks, m.text, want)
	}
}

// randomEdit changes, drops and adds some lines.
func randomEdit(rng *rand.Rand, lines []string, n int, tag string) []string {
	out := append([]string(nil), lines...)
	for i := range n {
		at := rng.IntN(len(out) + 1)
		text := fmt.Sprintf("%s%d\n", tag, rng.IntN(30)+i*1000)
		switch k := rng.IntN(3); {
		case k == 0 || at == len(out):
			out = append(out[:at:at], append([]string{text}, out[at:]...)...)
		case k == 1:
			out[at] = text
		default:
			out = append(out[:at:at], out[at+1:]...)
		}
	}
	return out
}

// gitMerge merges the texts with git merge-file.
func gitMerge(t *testing.T, dir, base, ours, theirs string) (string, bool) {
	t.Helper()
	for name, text := range map[string]string{"base": base, "ours": ours, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "merge-file", "-p", "-q", "ours", "base", "theirs")
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() >= 128) {
		t.Fatal(err)
	}
	return string(out), err == nil
}

// Where git merges texts, this does, with the same result.
func TestMergeTextLikeGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	rounds := 400
	if testing.Short() {
		rounds = 80
	}
	dir := t.TempDir()
	clean := 0
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		var base []string
		for i := range rng.IntN(120) {
			base = append(base, fmt.Sprintf("line %d\n", i))
		}
		if seed%10 == 0 { // more differences than one search of the library finds
			for i := range 3000 {
				base = append(base, fmt.Sprintf("more %d\n", i))
			}
		}
		edits := 1 + rng.IntN(6)
		if seed%10 == 0 {
			edits = 30
		}
		b := strings.Join(base, "")
		o := strings.Join(randomEdit(rng, base, edits, "same"), "")
		th := strings.Join(randomEdit(rng, base, edits, "same"), "")
		if rng.IntN(4) == 0 {
			o = strings.TrimSuffix(o, "\n")
		}
		want, ok := gitMerge(t, dir, b, o, th)
		m := mergeText([]byte(b), []byte(o), []byte(th), markers{})
		switch {
		case ok != (m.hunks == 0):
			t.Errorf("seed %d: clean is %v here, %v for git\nbase %q\nours %q\ntheirs %q", seed, m.hunks == 0, ok, b, o, th)
		case ok && want != string(m.text):
			t.Errorf("seed %d: %q, not %q", seed, m.text, want)
		case ok:
			clean++
		}
		if swapped := mergeText([]byte(b), []byte(th), []byte(o), markers{}); (swapped.hunks == 0) != (m.hunks == 0) ||
			m.hunks == 0 && !bytes.Equal(swapped.text, m.text) {
			t.Errorf("seed %d: the sides are not alike", seed)
		}
	}
	if clean < rounds/5 || clean == rounds {
		t.Errorf("%d of %d merges were clean", clean, rounds)
	}
}

// A text of which nearly every second line changed is merged all the same.
func TestMergeTextManyEdits(t *testing.T) {
	var base, ours, theirs, want []byte
	for i := range 4000 {
		line := fmt.Sprintf("line %d\n", i)
		base = append(base, line...)
		switch i % 8 {
		case 0:
			ours, theirs, want = append(ours, "o"+line...), append(theirs, line...), append(want, "o"+line...)
		case 4:
			ours, theirs, want = append(ours, line...), append(theirs, "t"+line...), append(want, "t"+line...)
		default:
			ours, theirs, want = append(ours, line...), append(theirs, line...), append(want, line...)
		}
	}
	if m := mergeText(base, ours, theirs, markers{}); m.hunks != 0 || !bytes.Equal(m.text, want) {
		t.Errorf("%d conflicts, %d bytes, not %d", m.hunks, len(m.text), len(want))
	}
}
