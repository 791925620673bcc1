//go:build cgo && !windows

package cgofusefs

import "syscall"

// cgofuse has no names for these two.
const (
	edquot = int(syscall.EDQUOT)
	estale = int(syscall.ESTALE)
)
