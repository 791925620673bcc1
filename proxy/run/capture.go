package run

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"
)

// capture keeps the first and the last bytes of a stream. It is used by one
// goroutine at a time.
type capture struct {
	headMax, tailMax int
	head, ring       []byte
	next             int // where the ring is written next, once it is full
	total            int64
}

func (c *capture) write(p []byte) {
	c.total += int64(len(p))
	if room := c.headMax - len(c.head); room > 0 {
		n := min(room, len(p))
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	if len(p) >= c.tailMax {
		c.ring = append(c.ring[:0], p[len(p)-c.tailMax:]...)
		c.next = 0
		return
	}
	if room := c.tailMax - len(c.ring); room > 0 {
		n := min(room, len(p))
		c.ring = append(c.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.ring[c.next:], p)
		c.next = (c.next + n) % c.tailMax
		p = p[n:]
	}
}

// output returns what was kept.
func (c *capture) output() Output {
	tail := append(bytes.Clone(c.ring[c.next:]), c.ring[:c.next]...)
	out := Output{Bytes: c.total}
	if c.total == int64(len(c.head)+len(tail)) {
		kept := append(bytes.Clone(c.head), tail...)
		out.Text = validText(kept)
		out.Base64 = encoded(kept)
		return out
	}
	head := cutEnd(c.head)
	tail = cutStart(tail)
	out.Truncated = true
	out.Omitted = c.total - int64(len(head)+len(tail))
	out.Seam = len(head)
	out.Text = validText(head) + marker(out.Omitted) + validText(tail)
	out.Base64 = encoded(append(bytes.Clone(head), tail...))
	return out
}

// marker is the line that stands for n missing bytes.
func marker(n int64) string {
	return fmt.Sprintf("\n\u2026 %d bytes omitted \u2026\n", n)
}

func validText(p []byte) string { return strings.ToValidUTF8(string(p), "\uFFFD") }

// encoded returns p in base64 if it is not text.
func encoded(p []byte) string {
	if utf8.Valid(p) {
		return ""
	}
	return base64.StdEncoding.EncodeToString(p)
}

// WholeCharacters is p without the beginning of a character at its end.
func WholeCharacters(p []byte) []byte { return cutEnd(p) }

// cutEnd drops the beginning of a character from the end of p.
func cutEnd(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if at := len(p) - i; utf8.RuneStart(p[at]) {
			if utf8.FullRune(p[at:]) {
				return p
			}
			return p[:at]
		}
	}
	return p
}

// cutStart drops the end of a character from the start of p.
func cutStart(p []byte) []byte {
	n := 0
	for n < len(p) && !utf8.RuneStart(p[n]) {
		n++
	}
	if n >= utf8.UTFMax {
		return p // no character has so many further bytes
	}
	return p[n:]
}
