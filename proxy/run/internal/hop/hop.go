//go:build linux || darwin

// Package hop is the second half of starting a program whose directory or file
// lies in a file system that the starting process may itself serve.
//
// Go starts a child by vfork: the parent's thread stands still, with its share of
// the scheduler, until the child has executed. If changing the directory or
// opening the program needs an answer from a FUSE server in the same process, the
// server may be unable to run: always with GOMAXPROCS=1, and else whenever the
// garbage collector wants to stop the world just then. Nothing ends that deadlock.
//
// So the parent executes its own binary, which is in no such place, and this
// package's init does the rest there, while the parent runs.
package hop

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Self is the path to execute, name the argv[0] that makes init act, and status
// the descriptor for the error number.
const (
	Self   = "/proc/self/exe"
	name   = "avfs: starting"
	status = 3
)

// Able reports whether Self is a Go program, whose start runs this package's init,
// and not one that has loaded it as a library.
func Able() bool {
	info, ok := debug.ReadBuildInfo()
	return !ok || !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-buildmode" && strings.HasPrefix(s.Value, "c-")
	})
}

// Args returns the argument list with which Self changes to dir, if it is not
// empty, and executes argv with the program at path. Descriptor 3 must be a pipe's
// write end: it is closed on success and receives what Parse reads on failure.
func Args(dir, path string, argv []string) []string {
	return append([]string{name, dir, path}, argv...)
}

// Parse returns the error that text from the pipe stands for, nil for none.
func Parse(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	return syscall.Errno(n)
}

func init() {
	if len(os.Args) < 4 || os.Args[0] != name {
		return
	}
	syscall.CloseOnExec(status)
	err := start(os.Args[1], os.Args[2], os.Args[3:])
	no := syscall.EINVAL
	errors.As(err, &no)
	f := os.NewFile(status, "status")
	// A parent that is gone needs no answer.
	_, _ = f.WriteString(strconv.Itoa(int(no)))
	os.Exit(1)
}

// start returns only on failure.
func start(dir, path string, argv []string) error {
	if dir != "" {
		if err := syscall.Chdir(dir); err != nil {
			return err
		}
	}
	err := Busy(func() error { return syscall.Exec(path, argv, os.Environ()) })
	if errors.Is(err, syscall.ENOEXEC) && !IsBinary(path) {
		return syscall.Exec(Shell, ShellArgs(path, argv), os.Environ())
	}
	return err
}

// Shell reads scripts that have no interpreter line.
const Shell = "/bin/sh"

// ShellArgs is the argument list with which Shell runs the script at path as argv.
func ShellArgs(path string, argv []string) []string {
	return append([]string{"sh", path}, argv[1:]...)
}

// Busy repeats fn for a moment while it fails because the program's file is being
// written: another fork may still hold the descriptor of a writer that is done.
func Busy(fn func() error) error {
	for pause := time.Millisecond; ; pause *= 4 {
		err := fn()
		if !errors.Is(err, syscall.ETXTBSY) || pause > 100*time.Millisecond {
			return err
		}
		time.Sleep(pause)
	}
}

// IsBinary reports whether a shell would refuse to read the file as a script: its
// first line has a NUL byte, or it cannot be read.
func IsBinary(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, 256)
	n, err := io.ReadFull(f, buf)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return true
	}
	line, _, _ := bytes.Cut(buf[:n], []byte("\n"))
	return bytes.IndexByte(line, 0) >= 0
}
