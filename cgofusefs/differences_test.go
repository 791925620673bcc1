//go:build cgo && linux

package cgofusefs

import (
	"maps"

	"github.com/agentvfs/avfs/conformance"
)

// differences is what a mount through libfuse cannot do, the whole of it, and why. A
// test fails for what it cannot do and is not here, and for what is here and works.
func differences() *conformance.MountOptions {
	d := &conformance.MountOptions{
		Lacks: map[conformance.Ability]string{
			conformance.Preallocation: "cgofuse has no fallocate among its operations",
			conformance.NamelessFiles: "libfuse offers no O_TMPFILE to a file system that speaks in paths",
		},
	}
	if fusePackage == "fuse3" {
		return d
	}
	maps.Copy(d.Lacks, map[conformance.Ability]string{
		conformance.RenameFlags: "the rename of libfuse 2 has no flags",
	})
	const pages = "libfuse 2 cannot ask the kernel to drop pages of an open file when its mtime moves"
	const path = "libfuse 2 needs the path even for a handle, which is gone with the directory"
	d.Fails = map[string]string{
		"a removed open file is nowhere":        path,
		"many removed open files":               path,
		"single times":                          "libfuse 2 passes a change of times on only if it is of both",
		"tar and rsync":                         "tar sets the modification time alone",
		"a change from outside is seen at once": pages,
		"replaced from outside while open":      "to libfuse 2 the old and the new file are one; " + pages,
	}
	return d
}
