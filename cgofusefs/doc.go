// Package cgofusefs makes a vault visible as a directory through cgofuse: libfuse
// 3 (build tag fuse3) or libfuse 2 on Linux, macFUSE or FUSE-T on macOS, WinFsp on
// Windows. It translates paths and handles to the engine's inodes and files, and
// keeps no state that the engine has, except what the library forces on it:
//
//   - libfuse speaks in paths. Every operation walks its path through the engine;
//     nothing is cached, so nothing is stale.
//   - libfuse replaces the removal of an open file by a rename to a hidden name.
//     The binding removes the file and remembers which inode the hidden name means
//     until the last close (type orphanTable).
//   - The kernel keeps no attributes or names of ours (the library offers no way
//     to let it on libfuse 3), so a change from outside the mount is seen at once.
//     It keeps file content, and drops it when size or mtime change.
//
// # What libfuse's path interface cannot do
//
//   - Replacing a file that is open is two steps, a removal and a rename. A commit
//     that falls between them holds neither file under that name.
//   - fstat of a removed file fails with ENOENT once its directory is removed, too;
//     reading and writing it go on.
//   - Two hard links are two files to the kernel's page cache, so shared mappings
//     of both are not coherent with each other.
//   - fallocate, SEEK_HOLE, copy_file_range, O_TMPFILE and reflinks are not
//     offered. Programs fall back.
//
// # Processes of the caller
//
// The process that serves a mount must not start a program with its working
// directory, or the program itself, inside that mount: between fork and exec the
// Go runtime waits for the child while the child waits for the mount, and a garbage
// collection at that moment stops both for ever. Let a child outside the mount
// change directory by itself. Mapping a file of the mount into this process is
// unsafe for the same reason.
package cgofusefs
