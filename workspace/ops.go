package workspace

import "maps"

// operations lists every operation that an owner answers.
func operations() map[string]handler {
	all := map[string]handler{}
	maps.Copy(all, vaultOps())
	maps.Copy(all, mergeOps())
	maps.Copy(all, fileOps())
	maps.Copy(all, lookOps())
	maps.Copy(all, historyOps())
	maps.Copy(all, diffOps())
	maps.Copy(all, versionOps())
	maps.Copy(all, moveOps())
	add(all, OpApply)
	maps.Copy(all, runOps())
	maps.Copy(all, careOps())
	maps.Copy(all, quotaOps())
	maps.Copy(all, approvalOps())
	maps.Copy(all, sessionOps())
	maps.Copy(all, serviceOps())
	return all
}

func add[Req, Res any](all map[string]handler, op Op[Req, Res]) {
	all[op.Name] = erase(op)
}

// InVault is the request of an operation that needs a vault and nothing else.
type InVault struct {
	Vault string `json:"vault"`
}

// Nothing is the result of an operation that says nothing.
type Nothing struct{}
