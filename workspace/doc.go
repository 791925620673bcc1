// Package workspace finds vaults by name and makes every command work on them,
// whoever has the store open.
//
// # Names
//
// A workspace is a directory (~/.avfs, moved by AVFS_HOME). Its vaults folder
// holds the stores: NAME.avfs is the store whose first vault is NAME. A fork adds
// a vault to its parent's store and a small file NAME.ref that says which one, so
// that a name is unique in the workspace and is found without opening anything.
//
// # One owner per store
//
// A back end may allow one process only, and a mount keeps changes in memory, so
// one process owns an open store. Every operation is an Op: a typed request and
// result, with optional streams. Call runs it in this process if nobody has the
// store open, and sends it to the owner otherwise, over a Unix socket beside the
// store: HTTP, with the request as a JSON line in the body before the input
// stream, and frames (data, progress, result, error) in the answer. The code that
// does the work is the same either way.
//
// A command that only needs the store for a moment opens it, works and closes it;
// others wait for it. What takes long or must outlive the command (a mount, an
// exec, an import) goes through an owner in a process of its own, which is started
// when it is needed and ends by itself when nothing has needed it for a while.
//
// A killed owner leaves a socket that nobody listens on; the next one replaces it.
// The lock that decides is the back end's own, on the database.
package workspace
