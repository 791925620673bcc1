//go:build fuse3

package cgofusefs

import (
	"fmt"
	"runtime"
)

// What this build loads and runs on Linux.
const (
	fusePackage   = "fuse3"
	libraryFile   = "libfuse3.so.3"
	helperProgram = "fusermount3"
)

// threads is how many requests the library serves at the same time. The kernel
// hands requests to its threads in turn, and each change of thread costs the Go
// runtime more than most requests take: two threads are twice as fast as ten on
// two processors. A second one keeps a slow commit from stopping everybody.
func threads() int { return max(2, min(runtime.GOMAXPROCS(0), 8)) }

// libraryOptions are the words that only libfuse 3 knows. Everything in its
// configuration, such as cache times or hard_remove, is cleared by cgofuse at
// start, so that use_ino goes through the host and the rest stays as it is.
func libraryOptions(bool) []string {
	words := []string{"-o", fmt.Sprintf("max_idle_threads=%d", threads())}
	if libraryMinor() >= 12 { // earlier ones do not know it; 3.14 complains aloud if it is not given
		words = append(words, "-o", fmt.Sprintf("max_threads=%d", threads()))
	}
	return words
}
