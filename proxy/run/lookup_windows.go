package run

import (
	"os"
	"path/filepath"
	"strings"
)

const defaultExt = ".com;.exe;.bat;.cmd"

// envKey is the form of a variable's name that is compared.
func envKey(name string) string { return strings.ToUpper(name) }

// lookup finds the program in Env's PATH with Env's PATHEXT. The current directory
// is not searched. The error is a *notStarted.
func lookup(name, dir string, env []string) (string, error) {
	exts, ok := getenv(env, "PATHEXT")
	if !ok {
		exts = defaultExt
	}
	dirs := []string{""}
	if !strings.ContainsAny(name, `:\/`) {
		path, _ := getenv(env, "PATH")
		dirs = filepath.SplitList(path)
	}
	for _, d := range dirs {
		if d == "" && len(dirs) > 1 {
			continue
		}
		base := filepath.Join(d, name)
		if !filepath.IsAbs(base) {
			base = filepath.Join(dir, base)
		}
		if file, ok := withExt(base, exts); ok {
			return file, nil
		}
	}
	return "", &notStarted{code: ExitNotFound, path: name, err: errNotFound}
}

// withExt finds base as it is, if it has an extension, or with one of exts.
func withExt(base, exts string) (string, bool) {
	if filepath.Ext(base) != "" && isFile(base) {
		return base, true
	}
	for ext := range strings.SplitSeq(exts, ";") {
		if ext != "" && isFile(base+ext) {
			return base + ext, true
		}
	}
	return "", false
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}
