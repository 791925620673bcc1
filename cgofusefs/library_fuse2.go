//go:build !fuse3

package cgofusefs

// What this build loads and runs on Linux.
const (
	fusePackage   = "fuse"
	libraryFile   = "libfuse.so.2"
	helperProgram = "fusermount"
)

// libraryOptions are the words that libfuse 2 needs. It would cache attributes and
// names, and serve stale ones between hard links and after a change from outside.
func libraryOptions(allowNonEmpty bool) []string {
	words := []string{
		"-o", "use_ino",
		"-o", "attr_timeout=0,entry_timeout=0,negative_timeout=0",
		"-o", "big_writes,max_write=131072",
	}
	if allowNonEmpty {
		words = append(words, "-o", "nonempty")
	}
	return words
}
