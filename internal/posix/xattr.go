package posix

import (
	"runtime"
	"strings"
)

// XattrSupported reports whether a view keeps extended attributes of that name.
//
// Linux has four name spaces. "system" is refused: its access control lists are
// not enforced here, and a tool that is told ENOTSUP falls back to mode bits,
// while one that can store a list without effect loses modes (cp -p, sed -i).
// Names outside the four are refused as native file systems refuse them. Other
// systems have no such rule.
func XattrSupported(name string) bool {
	if runtime.GOOS != "linux" {
		return true
	}
	space, rest, ok := strings.Cut(name, ".")
	if !ok || rest == "" {
		return false
	}
	return space == "user" || space == "trusted" || space == "security"
}
