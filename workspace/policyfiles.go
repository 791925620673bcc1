package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/mountpoint"
)

// PolicyFile is where the user's policy is.
func (w *Workspace) PolicyFile() string { return filepath.Join(w.cfg.Home, "policy.yaml") }

// VaultPolicyFile is where the policy of a vault is, if it has one of its own.
func (w *Workspace) VaultPolicyFile(vault string) string {
	return filepath.Join(w.policiesDir(), vault+policySuffix)
}

func (w *Workspace) policiesDir() string { return filepath.Join(w.cfg.Home, "policies") }

const policySuffix = ".yaml"

// PolicyFiles lists the files whose policies together judge what runs in a vault: the
// user's, and the vault's own or, where a fork has none, that of the nearest ancestor
// that has one. Each is there. The store is opened only for a fork without a file of
// its own, and only where other vaults have one.
func (w *Workspace) PolicyFiles(ctx context.Context, vault string) ([]string, error) {
	var files []string
	there, err := w.policyThere(w.PolicyFile())
	if err != nil {
		return nil, err
	}
	if there {
		files = append(files, w.PolicyFile())
	}
	if vault == "" {
		return files, nil
	}
	own, err := w.policyOf(ctx, vault)
	if own != "" {
		files = append(files, own)
	}
	return files, err
}

// policyOf finds the policy file of a vault or of its nearest ancestor with one.
func (w *Workspace) policyOf(ctx context.Context, vault string) (string, error) {
	if err := engine.CheckVaultName(vault); err != nil {
		return "", err
	}
	there, err := w.policyThere(w.VaultPolicyFile(vault))
	if err != nil || there {
		return w.VaultPolicyFile(vault), err
	}
	if some, err := w.vaultPolicies(); err != nil || !some {
		return "", err
	}
	_, store, err := w.Locate(vault)
	if err != nil {
		return "", err
	}
	docs, err := Call(ctx, w, store, opVaults, Nothing{}, Streams{})
	if err != nil {
		return "", err
	}
	for _, name := range ancestors(docs, vault) {
		if there, err := w.policyThere(w.VaultPolicyFile(name)); err != nil || there {
			return w.VaultPolicyFile(name), err
		}
	}
	return "", nil
}

// ancestors lists the names of the vaults that a vault is a fork of, the nearest first.
// One that is deleted counts, too. Where a vault does not know all of its own, since
// they are many or it is old, those of the last that it knows follow.
func ancestors(docs []VaultDoc, vault string) []string {
	known := map[string][]string{}
	for _, d := range docs {
		known[d.Name] = d.Ancestors
		if len(d.Ancestors) == 0 && d.Parent != "" {
			known[d.Name] = []string{d.Parent}
		}
	}
	var list []string
	for last := vault; len(known[last]) > 0; {
		next := known[last]
		delete(known, last) // a name may come again, for another vault
		list = append(list, next...)
		last = next[len(next)-1]
	}
	return list
}

// vaultPolicies reports whether any vault has a policy file.
func (w *Workspace) vaultPolicies() (bool, error) {
	entries, err := os.ReadDir(w.policiesDir())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), policySuffix) {
			return true, nil
		}
	}
	return false, err
}

// policyThere reports whether a policy file exists, and refuses one that lies in a
// vault, where what it judges could change it.
func (w *Workspace) policyThere(file string) (bool, error) {
	real, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(file); lerr == nil {
			return false, fmt.Errorf("the policy %s leads to nothing: %w", file, err)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	inVault, err := w.liesInVault(real)
	if err == nil && inVault {
		err = &engine.Error{Kind: engine.Invalid, Op: "policy", Path: file, Err: errors.New("it lies in a vault, where what it judges could change it")}
	}
	return err == nil, err
}

// liesInVault reports whether a path without links leads into the mount of a vault,
// wherever that is, or to where one is mounted when nobody says where.
func (w *Workspace) liesInVault(real string) (bool, error) {
	mounts, err := filepath.EvalSymlinks(w.mountsDir())
	if err == nil && strings.HasPrefix(real, mounts+string(filepath.Separator)) {
		return true, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	point, err := mountpoint.Over(real)
	return point != "", err
}
