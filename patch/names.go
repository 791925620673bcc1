package patch

import (
	"fmt"
	"strings"
)

// quoted is a name as git writes it: as it is, or between quotes with C's escapes
// where it has control characters, quotes, backslashes or bytes beyond ASCII.
func quoted(name string) string {
	plain := true
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= '\a' && c <= '\r':
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[c-'\a'])
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// refused reports whether git takes no patch for a path: one with a part that some
// system would take for .git, or a symbolic link that one would take for .gitmodules.
func refused(path string, link bool) bool {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		part, _, _ = strings.Cut(part, ":")
		part = strings.ToLower(strings.TrimRight(part, " ."))
		if part == ".git" || part == "git~1" {
			return true
		}
		if link && (part == ".gitmodules" || strings.HasPrefix(part, "gitmod~") || strings.HasPrefix(part, "gi7eba~")) {
			return true
		}
	}
	return false
}
