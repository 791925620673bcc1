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
	parents := map[string]string{}
	for _, d := range docs {
		parents[d.Name] = d.Parent
	}
	// An ancestor that is deleted still counts by its name; whose fork it was is lost.
	for range docs {
		if vault = parents[vault]; vault == "" {
			return "", nil
		}
		if there, err := w.policyThere(w.VaultPolicyFile(vault)); err != nil || there {
			return w.VaultPolicyFile(vault), err
		}
	}
	return "", nil
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
	mounts, err := filepath.EvalSymlinks(w.mountsDir())
	if err == nil && strings.HasPrefix(real, mounts+string(filepath.Separator)) {
		return false, &engine.Error{Kind: engine.Invalid, Op: "policy", Path: file, Err: errors.New("it lies in a vault, where what it judges could change it")}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}
