package run

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// feedIn writes text in pieces of random size.
func feedIn(c *capture, text string, r *rand.Rand) {
	for len(text) > 0 {
		n := min(len(text), 1+r.IntN(40))
		c.write([]byte(text[:n]))
		text = text[n:]
	}
}

// TestCaptureModel compares with the whole stream, for sizes around the bounds.
func TestCaptureModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		c := capture{headMax: r.IntN(30), tailMax: r.IntN(30)}
		var b strings.Builder
		for range r.IntN(60) {
			b.WriteRune([]rune("a\u00e9\u20ac\U0001F600\n")[r.IntN(5)])
		}
		text := b.String()
		feedIn(&c, text, r)
		out := c.output()
		if out.Bytes != int64(len(text)) || out.Base64 != "" || !utf8.ValidString(out.Text) {
			t.Fatalf("%q: %+v", text, out)
		}
		if !out.Truncated {
			if out.Text != text || out.Omitted != 0 || len(text) > c.headMax+c.tailMax {
				t.Fatalf("%q (%d+%d): %+v", text, c.headMax, c.tailMax, out)
			}
			continue
		}
		head, tail, ok := strings.Cut(out.Text, marker(out.Omitted))
		if !ok || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) || len(head) != out.Seam {
			t.Fatalf("%q: %+v", text, out)
		}
		if int64(len(head)+len(tail))+out.Omitted != out.Bytes || strings.Contains(out.Text, "\uFFFD") {
			t.Fatalf("%q: %+v", text, out)
		}
		if len(head) > c.headMax || len(tail) > c.tailMax || len(head)+3 < c.headMax || len(tail)+3 < c.tailMax {
			t.Fatalf("%q: kept %d+%d of %d+%d", text, len(head), len(tail), c.headMax, c.tailMax)
		}
	}
}

// TestCaptureBinary keeps bytes that are not text exactly.
func TestCaptureBinary(t *testing.T) {
	c := capture{headMax: 4, tailMax: 4}
	c.write([]byte("\xff\x00ab"))
	out := c.output()
	if out.Text != "\uFFFD\x00ab" || out.Base64 != base64.StdEncoding.EncodeToString([]byte("\xff\x00ab")) {
		t.Fatalf("%+v", out)
	}
	c.write([]byte("0123456789\xfe"))
	out = c.output()
	kept, err := base64.StdEncoding.DecodeString(out.Base64)
	if err != nil || string(kept) != "\xff\x00ab789\xfe" || out.Omitted != 7 || out.Seam != 4 {
		t.Fatalf("%+v %q %v", out, kept, err)
	}
}

func TestEnv(t *testing.T) {
	got := lastWins([]string{"A=1", "B=2", "A=3", "C", "B=4=5"})
	if strings.Join(got, " ") != "A=3 C B=4=5" {
		t.Fatalf("%q", got)
	}
	if v, ok := getenv(got, "B"); !ok || v != "4=5" {
		t.Fatalf("%q %v", v, ok)
	}
}
