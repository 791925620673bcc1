package main

import (
	"context"
	"os"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/workspace"
)

// policy is the policy in a file, or the one in force: the user's, and with --vault
// that of the vault.
func (a *app) policy(file string) (*policy.Policy, error) {
	if file != "" {
		return readPolicy(file)
	}
	w, err := a.workspace()
	if err != nil {
		return nil, err
	}
	return loadPolicy(a.ctx, w, a.flags.Vault, "")
}

// loadPolicy reads what judges the commands in a vault, or in a fork that is to be made
// of it: the user's policy, or the one that ships with avfs, together with that of the
// vault; the strictest answer counts. One that cannot be read is an error: what it
// forbids must not run.
func loadPolicy(ctx context.Context, w *workspace.Workspace, vault, fork string) (*policy.Policy, error) {
	files, err := w.PolicyFiles(ctx, vault)
	if err != nil {
		return nil, err
	}
	if fork != "" {
		own := w.VaultPolicyFile(fork)
		if _, err := os.Lstat(own); err == nil {
			if files, err = w.PolicyFiles(ctx, fork); err != nil {
				return nil, err
			}
		}
	}
	var parts []*policy.Policy
	if len(files) == 0 || files[0] != w.PolicyFile() {
		parts = append(parts, policy.Default())
	}
	for _, f := range files {
		p, err := readPolicy(f)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return policy.Combine(parts...), nil
}

// readPolicy reads one file.
func readPolicy(file string) (*policy.Policy, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, err := policy.Parse(text)
	if err != nil {
		return nil, &engine.Error{Kind: engine.Invalid, Op: "policy", Path: file, Err: err}
	}
	return p, nil
}
