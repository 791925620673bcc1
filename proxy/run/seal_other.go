//go:build !linux

package run

// CloseInherited does nothing here: Windows hands on only what it is told to, and
// macOS has no call for it.
func CloseInherited() error { return nil }
