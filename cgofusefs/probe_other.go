//go:build !linux

package cgofusefs

// probeDevice has nothing to check outside Linux: the library finds its driver.
func probeDevice() error { return nil }
