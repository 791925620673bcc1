// Package transfer moves trees between the host's file system and a vault.
//
// Import reads a directory of the host into a vault, Export writes a directory of
// a vault, or of a past state of one, to the host. Both keep what cp -a keeps:
// permissions with the set-id and sticky bits, owners where the process may set
// them, times to the nanosecond (a directory's after its entries), symbolic links
// byte for byte, hard links, user extended attributes, holes, FIFOs, and as root
// device nodes. Sockets are left out with a note.
//
// Apply brings the changes of a vault since an Import back to the host: only paths that
// changed, and none where the host has drifted from what was imported.
//
// Import and Export go on past entries that fail, list them in the report, and return a
// *PartialError at the end. What no later entry could survive, such as a full
// disk, a closed vault or a cancelled context, ends them at once; the report then
// says what was done until then.
//
// ImportTar and ExportTar do the same with archives, and GitTar makes an archive of a
// commit of a Git repository.
//
// # Confinement
//
// On Linux and macOS every directory of the host is opened relative to the one
// above it without following a link, so that swapping a directory for a symbolic
// link while a transfer runs leads to an error and never out of the tree. Elsewhere
// os.Root confines each step. The directory that the caller names is the exception:
// links on the way to it are followed.
//
// # Files that are replaced
//
// An existing file is replaced as rename does it: readers see the old or the new
// one, other hard links of the old one keep its content, and a symbolic link is
// replaced, never written through. A large file grows under a name that begins with
// ".avfs-" and is renamed when it is whole.
package transfer
