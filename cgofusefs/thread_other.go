//go:build (cgo && !linux) || windows

package cgofusefs

// isolated runs fn: only libfuse 3 changes the working directory.
func isolated(fn func()) { fn() }
