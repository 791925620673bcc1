// Package memfs is a file system in memory over the binding that package gofusefs
// uses, mounted with the same options and the same answers about what the kernel
// may keep. It stores nothing and versions nothing, so its times are the floor that
// FUSE itself sets under a native mount.
//
// It does what the workloads of package bench need, and refuses the rest: extended
// attributes, exchanging renames and holes.
package memfs
