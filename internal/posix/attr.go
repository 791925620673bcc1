package posix

import "github.com/agentvfs/avfs/engine"

// BlockSize is the transfer size that programs are told to prefer, in bytes. It is
// small because programs allocate a buffer of this size for every open file.
const BlockSize = 4096

// SplitTime cuts nanoseconds since 1970 into seconds, which are negative before
// that, and the rest, which never is.
func SplitTime(ns int64) (sec, nsec int64) {
	sec, nsec = ns/1e9, ns%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	return sec, nsec
}

const groupExec = 0o010

// WithoutSetID is mode without set-user-id and set-group-id. Without the right to
// execute for the group, set-gid stands for mandatory locks and stays.
func WithoutSetID(mode uint32) uint32 {
	mode &^= engine.ModeSetUID
	if mode&groupExec != 0 {
		mode &^= engine.ModeSetGID
	}
	return mode
}
