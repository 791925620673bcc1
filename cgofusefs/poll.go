//go:build cgo || windows

package cgofusefs

// pollName is a file that stands in the top directory until it has been opened
// once. The view polls it, and the kernel learns that libfuse answers no polls. An
// empty vault has no other file to learn it from.
const pollName = ".avfs-poll"

// isPollFile reports whether path is that file. The vault's own file of the same
// name, if it has one, is seen once that service is done.
func (b *vaultFS) isPollFile(path string) bool {
	return path == "/"+pollName && b.pollShown.Load()
}
