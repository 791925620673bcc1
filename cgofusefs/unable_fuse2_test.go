//go:build cgo && linux && !fuse3

package cgofusefs

// unable is what libfuse 2 cannot pass of the mount suite.
var unable = map[string]string{
	"a removed open file is nowhere":        "libfuse 2 needs the path even for a handle, which is gone with the directory",
	"many removed open files":               "libfuse 2 needs the path even for a handle, which is gone with the directory",
	"single times":                          "libfuse 2 passes a change of times on only if it is of both",
	"tar and rsync":                         "tar sets the modification time alone",
	"a change from outside is seen at once": "libfuse 2 cannot ask the kernel to drop pages of an open file when its mtime moves",
	"replaced from outside while open":      "to libfuse 2 the old and the new file are one, whose pages it cannot drop",
}
