//go:build cgo && fuse3

package cgofusefs

import (
	"os"
	"regexp"
	"strconv"
)

var mappedLibrary = regexp.MustCompile(`libfuse3\.so\.3\.(\d+)`)

// libraryMinor is the minor version of the libfuse 3 that probeLibrary loaded, by
// the name of its file; 0 where that does not tell.
func libraryMinor() int {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0
	}
	found := mappedLibrary.FindSubmatch(maps)
	if found == nil {
		return 0
	}
	minor, err := strconv.Atoi(string(found[1]))
	if err != nil {
		return 0
	}
	return minor
}
