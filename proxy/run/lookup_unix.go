//go:build linux || darwin

package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// defaultPath is searched when the environment has no PATH, as shells do.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// envKey is the form of a variable's name that is compared.
func envKey(name string) string { return name }

// lookup finds the program that a shell in dir would run. The result is relative
// to dir, absolute, or name itself. The error is a *notStarted.
func lookup(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if err := executable(under(dir, name)); err != nil {
			return "", &notStarted{code: shellCode(err), path: name, err: err}
		}
		return name, nil
	}
	path, ok := getenv(env, "PATH")
	if !ok {
		path = defaultPath
	}
	found := errNotFound
	for _, elem := range strings.Split(path, ":") {
		if name == "" {
			break
		}
		if elem == "" {
			elem = "."
		}
		// The plain join keeps "./", without which the kernel's lookup and argv
		// of a script would search PATH again.
		candidate := elem + "/" + name
		err := executable(under(dir, candidate))
		if err == nil {
			return candidate, nil
		}
		// A directory of PATH that may not be searched has nothing, as in bash.
		if exists(under(dir, candidate)) && errors.Is(found, errNotFound) {
			found = err
		}
	}
	return "", &notStarted{code: shellCode(found), path: name, err: found}
}

func under(dir, path string) string {
	if filepath.IsAbs(path) || dir == "" {
		return path
	}
	return dir + "/" + path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// executable returns nil if this process may execute the file.
func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			return pe.Err
		}
		return err
	}
	if st.IsDir() {
		return errIsDir
	}
	if !st.Mode().IsRegular() {
		return syscall.EACCES
	}
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}

// shellCode is the exit code of a shell that fails to execute with err.
func shellCode(err error) int {
	if errors.Is(err, errNotFound) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
		return ExitNotFound
	}
	return ExitNotExecutable
}
