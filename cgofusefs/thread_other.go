//go:build (cgo && !linux) || windows

package cgofusefs

// workingDir is of interest on Linux only: libfuse 3 changes it.
type workingDir struct{}

func (*workingDir) run(fn func()) { fn() }

func (*workingDir) back() error { return nil }
