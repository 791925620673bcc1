// Package gofusefs makes a vault visible as a directory on Linux, through go-fuse's
// low-level interface: pure Go, with no library to install. It translates the
// kernel's node numbers and handles to the engine's inodes and files; a node number
// is the engine's inode number.
//
// # What the kernel keeps
//
// The kernel keeps names, also those that are not there, attributes, listings, the
// targets of symbolic links and file content for as long as it likes, so most of
// what programs look at costs no call. What keeps that right:
//
//   - Every change through this mount passes through the kernel, which knows what
//     it means.
//   - Every other change (the command line, a restore, another mount of the vault)
//     is told to us by the engine (engine.Watcher), and we tell the kernel before
//     the call that made it returns. See type notifier. A call that is a request
//     of another mount waits for that no longer than 20 ms, lest both kernels wait
//     for each other (stall).
//   - What is on its way to the kernel while such a change happens is sent without
//     leave to keep it (vaultFS.changes).
//
// Writes go to the engine at once. The kernel could gather them (the writeback
// cache), but then it believes its own size and times of a file, and a change from
// outside would stay invisible to whoever has the file open.
//
// A file that is removed or replaced through this mount lives on until the kernel
// has forgotten it, because a program may have found it and be about to open it. One
// that goes from outside at that moment is looked for once more, by its name.
//
// # Where the time goes
//
// Measured on two processors, with a tree of 4,000 files. A request costs its caller
// 13 to 20 us, most of it for the change to our process and back. What we do of that is
// little when it is done again and again (attributes 0.5 us, open and release 1 us, 8
// names with attributes 13 us, unlink and forget 8 us), and more once in a while: in a
// rm -rf an unlink takes 20 us and a directory of 8 names 80 us, with nodes that come from
// the database and a processor that has forgotten them. The number of requests is that
// of a file system in memory (bench/memfs) for find, grep, git and rm -rf: a find of what
// was unpacked makes 2 a directory, a second grep -r 2 a file (open and release). When a
// file is written the kernel asks once for file capabilities, and once more at a chown,
// which only a file system without extended attributes is spared; in exchange a close
// asks nothing. A third of our processor time is the Go runtime's watch over threads that
// wait in the kernel for requests; it is so in any such server.
//
// Without gain: to remember inode records and names past the tree's own cache; more
// processors for Go (GOMAXPROCS), which calms that watch and costs as much elsewhere.
// Not possible: to answer opens with ENOSYS, after which the kernel makes none. It would
// not for writers either, and we must know who has a mapping to write back (writeBack).
//
// # What is not offered
//
// ioctl, and with it reflinks by FICLONE (copy_file_range shares chunks all the
// same), and access control lists. Programs fall back. Locks are the kernel's own,
// among the programs of this machine.
//
// # Processes of the caller
//
// The process that serves a mount must not start a program with its working
// directory, or the program itself, inside that mount: between fork and exec the
// Go runtime waits for the child while the child waits for the mount, and a garbage
// collection at that moment stops both for ever. Let a child outside the mount
// change directory by itself. Mapping a file of the mount into this process is
// unsafe for the same reason.
package gofusefs
