//go:build unix && !linux

package main

// closeInheritedOnExec keeps the descriptors that this process was started with
// from children.
func closeInheritedOnExec() error { return closeEachOnExec() }
