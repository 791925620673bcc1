// Package posix holds what every mount binding must say in the same way: which
// error number an engine error becomes, how an inode's attributes are told, and which
// extended attributes a view offers. It imports no binding.
package posix

import (
	"errors"

	"github.com/agentvfs/avfs/engine"
)

// Code names an error number by its POSIX name. Numbers differ between systems
// and between FUSE libraries, names do not; each binding has one list of numbers.
type Code string

// The codes that an engine error may become.
const (
	EACCES       Code = "EACCES"
	EBADF        Code = "EBADF"
	EBUSY        Code = "EBUSY"
	EDQUOT       Code = "EDQUOT"
	EEXIST       Code = "EEXIST"
	EFBIG        Code = "EFBIG"
	EINTR        Code = "EINTR"
	EINVAL       Code = "EINVAL"
	EIO          Code = "EIO"
	EISDIR       Code = "EISDIR"
	ELOOP        Code = "ELOOP"
	EMLINK       Code = "EMLINK"
	ENAMETOOLONG Code = "ENAMETOOLONG"
	ENODATA      Code = "ENODATA" // macOS calls it ENOATTR
	ENOENT       Code = "ENOENT"
	ENOSPC       Code = "ENOSPC"
	ENOTDIR      Code = "ENOTDIR"
	ENOTEMPTY    Code = "ENOTEMPTY"
	ENOTSUP      Code = "ENOTSUP"
	ENXIO        Code = "ENXIO"
	EPERM        Code = "EPERM"
	ERANGE       Code = "ERANGE"
	EROFS        Code = "EROFS"
	ESTALE       Code = "ESTALE"
)

// Codes lists every code, so that a binding can prove its list of numbers whole.
func Codes() []Code {
	return []Code{
		EACCES, EBADF, EBUSY, EDQUOT, EEXIST, EFBIG, EINTR, EINVAL, EIO, EISDIR, ELOOP, EMLINK, ENAMETOOLONG,
		ENODATA, ENOENT, ENOSPC, ENOTDIR, ENOTEMPTY, ENOTSUP, ENXIO, EPERM, ERANGE, EROFS, ESTALE,
	}
}

// CodeOf is the one place where an engine error becomes an error number. It is
// empty for nil. What a mount cannot cause, and what is nobody's fault but ours,
// is EIO.
func CodeOf(err error) Code {
	kind := engine.KindOf(err)
	switch kind {
	case "":
		return ""
	case engine.NotFound, engine.VaultNotFound, engine.CheckpointNotFound, engine.EventNotFound:
		return ENOENT
	case engine.Exists, engine.VaultExists, engine.CheckpointExists:
		return EEXIST
	case engine.NotDirectory:
		return ENOTDIR
	case engine.IsDirectory:
		return EISDIR
	case engine.NotEmpty:
		return ENOTEMPTY
	case engine.Invalid, engine.InvalidName:
		return EINVAL
	case engine.NameTooLong:
		return ENAMETOOLONG
	case engine.TooManyLinks:
		return EMLINK
	case engine.Loop:
		return ELOOP
	case engine.Permission:
		return EPERM
	case engine.ReadOnly:
		return EROFS
	}
	return codeOfResource(kind, err)
}

// codeOfResource covers space, attributes, handles and damage.
func codeOfResource(kind engine.Kind, err error) Code {
	switch kind {
	case engine.NoSpace:
		return ENOSPC
	case engine.QuotaExceeded:
		if limitOf(err) == engine.LimitFileSize {
			return EFBIG // as for RLIMIT_FSIZE: this file is too large, others may grow
		}
		return EDQUOT
	case engine.FileTooLarge:
		return EFBIG
	case engine.Stale:
		return ESTALE
	case engine.Busy, engine.Locked:
		return EBUSY
	case engine.Unsupported:
		return ENOTSUP
	case engine.NoAttribute:
		return ENODATA
	case engine.AttributeTooLarge:
		return ERANGE
	case engine.NoData:
		return ENXIO
	case engine.BadHandle:
		return EBADF
	case engine.Interrupted:
		return EINTR
	}
	return EIO
}

// limitOf is the limit that a QuotaExceeded error ran into.
func limitOf(err error) engine.Limit {
	var e *engine.Error
	if !errors.As(err, &e) {
		return ""
	}
	limit, _ := e.Details["type"].(string)
	return engine.Limit(limit)
}
