package cgofusefs

import "github.com/winfsp/cgofuse/fuse"

// The C runtime of Windows has neither, so the nearest numbers that WinFsp knows
// stand in.
const (
	edquot = fuse.ENOSPC
	estale = fuse.ENOENT
)
