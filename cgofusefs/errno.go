//go:build cgo || windows

package cgofusefs

import (
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/winfsp/cgofuse/fuse"
)

// numberOf is the code's number in the FUSE library's terms. Which code an error
// has is decided in package posix.
func numberOf(code posix.Code) int {
	if code == "" {
		return 0
	}
	if n, ok := numbers[code]; ok {
		return n
	}
	return fuse.EIO
}

var numbers = map[posix.Code]int{
	posix.EACCES:       fuse.EACCES,
	posix.EBADF:        fuse.EBADF,
	posix.EBUSY:        fuse.EBUSY,
	posix.EDQUOT:       edquot,
	posix.EEXIST:       fuse.EEXIST,
	posix.EFBIG:        fuse.EFBIG,
	posix.EINTR:        fuse.EINTR,
	posix.EINVAL:       fuse.EINVAL,
	posix.EIO:          fuse.EIO,
	posix.EISDIR:       fuse.EISDIR,
	posix.ELOOP:        fuse.ELOOP,
	posix.EMLINK:       fuse.EMLINK,
	posix.ENAMETOOLONG: fuse.ENAMETOOLONG,
	posix.ENODATA:      fuse.ENOATTR,
	posix.ENOENT:       fuse.ENOENT,
	posix.ENOSPC:       fuse.ENOSPC,
	posix.ENOTDIR:      fuse.ENOTDIR,
	posix.ENOTEMPTY:    fuse.ENOTEMPTY,
	posix.ENOTSUP:      fuse.ENOTSUP,
	posix.ENXIO:        fuse.ENXIO,
	posix.EPERM:        fuse.EPERM,
	posix.ERANGE:       fuse.ERANGE,
	posix.EROFS:        fuse.EROFS,
	posix.ESTALE:       estale,
}
