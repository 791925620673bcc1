package proxy

import (
	"testing"

	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/workspace"
)

// TestLinksThatLeadOut asks before a command changes what a symbolic link of the vault
// makes of a path outside, however the path is spelled; the link itself may go.
func TestLinksThatLeadOut(t *testing.T) {
	d := newDesk(t, false)
	_, err := workspace.CallVault(t.Context(), d.Workspace, "v", workspace.OpLink, func(v string) workspace.LinkRequest {
		return workspace.LinkRequest{Vault: v, From: []workspace.Path{"/etc"}, To: "esc", Symbolic: true}
	}, workspace.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	d.Policy = policy.Default()
	for script, asks := range map[string]bool{
		"rm -rf esc/ssl": true, "cd esc && rm -rf foo": true, "echo x > esc/y": true, "cp a esc": true, "touch ./esc/../esc/z": true, "env -C esc rm a": true, "tee esc/x": true,
		"rm esc": false, "rm esc; mkdir esc; echo y > esc/f": false, "echo y > esc/f; rm esc": true, "mv esc b": false, "cat esc/hosts": false, "rm -rf other/ssl": false, "cp a b": false,
	} {
		env := d.Exec(t.Context(), Request{Shell: script, DryRun: true})
		if got := env.Status == StatusApprovalRequired; got != asks || env.Status == StatusError {
			t.Errorf("%q: %s by %s", script, env.Status, env.Decision.Rule)
		}
	}
}
