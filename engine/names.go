package engine

import (
	"os"
	"strings"
)

// isDeviceName reports whether Windows would open a device by that name.
func isDeviceName(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	if len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) {
		return stem[3] >= '0' && stem[3] <= '9'
	}
	return false
}

// currentOwner is the user and group of this process, 0 where there are none.
func currentOwner() (uid, gid uint32) {
	return uint32(max(os.Getuid(), 0)), uint32(max(os.Getgid(), 0))
}
