//go:build (cgo && !linux) || windows

package cgofusefs

// isolateThread does nothing: only libfuse 3 changes the working directory.
func isolateThread() {}
