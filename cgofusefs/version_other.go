//go:build !(cgo && linux) && fuse3

package cgofusefs

// libraryMinor is of interest on Linux only.
func libraryMinor() int { return 0 }
