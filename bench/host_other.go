//go:build !linux

package bench

import "io/fs"

// Evicted says what this system does for a cold read, to follow "the store".
const Evicted = "as it is, because this system cannot be told to forget it"

// Evict leaves everything as it is: this system cannot be told.
func Evict(string) error { return nil }

func resetPeak() error { return nil }

// peakMemory is not known on this system.
func peakMemory() (int64, error) { return 0, nil }

func allocated(info fs.FileInfo) int64 { return info.Size() }
