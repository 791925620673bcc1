// Package patch writes the difference of two states as text: unified, for people, or in
// git's format, for git.
//
// Write takes the changes that engine.Store.Diff lists and the two states. What it
// writes is what "git diff" would: one section for each file, with modes, renames and
// the ids of git's blobs. With Options.Binary it is a patch that "git apply" takes from
// the first state to the second, and "git apply -R" back, in every byte: content, the
// executable bit, symbolic links, empty files, files without a last line break, binary
// files, and names of any bytes.
//
// Git knows files, symbolic links and one bit of mode. Everything else that differs is
// not in the text, and Report.LeftOut names it: directories without files, FIFOs,
// sockets and devices, owners, extended attributes, other bits of modes, hard links, and
// names that git refuses, such as those below a .git. Two things follow from git's own
// habits: it removes a directory with its last file, and gives files the modes 0644 and
// 0755 as the umask lets it.
//
// Lines are compared with Myers' algorithm, in pieces, so that time and memory are
// proportional to the size: up to MaxText bytes of a file are held in memory. What is
// larger is binary in a patch for git, and only named in one for people. Of files that
// differ in more than maxLines lines, what lies between the equal beginning and the equal
// end is one replaced block, and FileStat.Coarse says so.
package patch
