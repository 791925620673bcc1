package run

import "errors"

var (
	errNoArgv   = errors.New("no command given")
	errNUL      = errors.New("a NUL byte in the command, environment or directory")
	errNotDir   = errors.New("not a directory")
	errNotFound = errors.New("command not found")
	errIsDir    = errors.New("is a directory")
)

// Error is a failure to run a command: avfs's own when Run returns it, the
// command's when it is in Result.StartError.
type Error struct {
	Op   string // what failed, such as "working directory"
	Path string // the program or directory concerned, may be empty
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "run: " + e.Op + ": " + e.Err.Error()
	}
	return "run: " + e.Op + ": " + e.Path + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// notStarted is a program that cannot be started, with the exit code that a
// shell gives.
type notStarted struct {
	code int
	path string
	err  error
}

func (e *notStarted) Error() string { return e.err.Error() }

func (e *notStarted) Unwrap() error { return e.err }
