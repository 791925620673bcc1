package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentvfs/avfs/engine"
)

// CommandHome is the home directory that commands of a vault get: one of this machine
// beside the stores, for that vault alone, so that it is in no diff and no checkpoint.
// It is made if it is not there, readable for nobody else, and goes with the vault.
func (w *Workspace) CommandHome(vault string) (string, error) {
	if err := engine.CheckVaultName(vault); err != nil {
		return "", err
	}
	dir := w.homePath(vault)
	return dir, os.MkdirAll(dir, 0o700)
}

func (w *Workspace) homePath(vault string) string { return filepath.Join(w.cfg.Home, "homes", vault) }

// dropHome removes the home of the commands of a vault, if there is one. Tools leave
// directories in it that nobody may write to, which keep what is in them.
func (w *Workspace) dropHome(vault string) error {
	dir := w.homePath(vault)
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	werr := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d == nil || !d.IsDir() {
			return nil // gone, or removed with its directory
		}
		if cerr := os.Chmod(path, 0o700); cerr != nil || err == nil {
			return cerr
		}
		return fs.SkipDir // it could not be listed before
	})
	return errors.Join(werr, os.RemoveAll(dir))
}
