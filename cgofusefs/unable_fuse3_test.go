//go:build cgo && linux && fuse3

package cgofusefs

// unable is what libfuse 3 cannot pass of the mount suite: nothing.
var unable map[string]string
