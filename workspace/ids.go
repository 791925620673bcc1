package workspace

import "os"

// ids is the user and group of this process, 0 where there are none.
func ids() (uid, gid uint32) {
	return uint32(max(os.Getuid(), 0)), uint32(max(os.Getgid(), 0))
}
