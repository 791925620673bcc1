//go:build fuse3

package cgofusefs

import "fmt"

// What this build loads and runs on Linux.
const (
	fusePackage   = "fuse3"
	libraryFile   = "libfuse3.so.3"
	helperProgram = "fusermount3"
)

// maxThreads bounds how many requests the library serves at the same time. Some
// wait for a commit, so it is well above the number of processors.
const maxThreads = 32

// libraryOptions are the words that only libfuse 3 knows. Everything in its
// configuration, such as cache times or hard_remove, is cleared by cgofuse at
// start, so that use_ino goes through the host and the rest stays as it is.
func libraryOptions(bool) []string {
	words := []string{"-o", fmt.Sprintf("max_idle_threads=%d", maxThreads)}
	if libraryMinor() >= 12 { // earlier ones do not know it; 3.14 complains aloud if it is not given
		words = append(words, "-o", fmt.Sprintf("max_threads=%d", maxThreads))
	}
	return words
}
