//go:build !linux

package main

// checkSystem looks at what avfs uses of the system, beside the drivers.
func checkSystem() []checked { return nil }
