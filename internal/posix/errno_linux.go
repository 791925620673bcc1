package posix

import "syscall"

// numbers are those of the system, which differ between architectures.
var numbers = map[Code]syscall.Errno{
	EACCES: syscall.EACCES, EBADF: syscall.EBADF, EBUSY: syscall.EBUSY, EDQUOT: syscall.EDQUOT,
	EEXIST: syscall.EEXIST, EFBIG: syscall.EFBIG, EINTR: syscall.EINTR, EINVAL: syscall.EINVAL,
	EIO: syscall.EIO, EISDIR: syscall.EISDIR, ELOOP: syscall.ELOOP, EMLINK: syscall.EMLINK,
	ENAMETOOLONG: syscall.ENAMETOOLONG, ENODATA: syscall.ENODATA, ENOENT: syscall.ENOENT,
	ENOSPC: syscall.ENOSPC, ENOTDIR: syscall.ENOTDIR, ENOTEMPTY: syscall.ENOTEMPTY,
	ENOTSUP: syscall.ENOTSUP, ENXIO: syscall.ENXIO, EPERM: syscall.EPERM, ERANGE: syscall.ERANGE,
	EROFS: syscall.EROFS, ESTALE: syscall.ESTALE,
}

// Errno is the code's number on Linux; 0 for the empty code.
func (c Code) Errno() syscall.Errno {
	if c == "" {
		return 0
	}
	if n, ok := numbers[c]; ok {
		return n
	}
	return syscall.EIO
}
