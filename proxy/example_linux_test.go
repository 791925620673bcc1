package proxy_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/gofusefs"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// fuse mounts vaults natively.
type fuse struct{}

func (fuse) Mount(ctx context.Context, v *engine.Vault, point string, how workspace.MountHow) (workspace.Mounted, error) {
	return gofusefs.Mount(ctx, v, point, &gofusefs.Options{ReadOnly: how.ReadOnly})
}

func (fuse) Recover(point string) error { return gofusefs.Recover(point) }

func (fuse) FreeKilled(pid int) (bool, error) { return gofusefs.FreeKilled(pid) }

// A program runs an agent's commands in a fork of a vault, without the program avfs:
// it owns the store, which makes the mounts, takes back what goes wrong, and merges
// the fork in the end.
func Example_agentLoop() {
	ctx, stop := context.WithCancel(context.Background())
	home, err := os.MkdirTemp("", "avfs-example-")
	must(err)
	defer os.RemoveAll(home)
	w, err := workspace.Open(workspace.Config{Home: home, Drivers: backends.All(), Mounter: fuse{}, EndCommand: proxy.EndCommand, Version: "example"})
	must(err)
	project, err := w.CreateVault(ctx, "project", "")
	must(err)

	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- w.Serve(ctx, project.Store, workspace.ServeOptions{Linger: -1, Ready: func() { close(ready) }})
	}()
	defer func() { stop(); must(<-served) }()
	<-ready

	_, err = w.Fork(ctx, workspace.ForkRequest{Vault: "project", Name: "task"})
	must(err)
	p := &proxy.Proxy{Workspace: w, Policy: policy.Default()}
	for _, script := range []string{ // what the agent asks for, one after the other
		"echo hello > greeting",
		"echo half > half-done; false",
		"rm -rf /",
	} {
		env := p.Exec(ctx, proxy.Request{Vault: "task", Shell: script})
		fmt.Printf("%s: %s, %d changed\n", script, env.Status, env.ChangedTotal)
		switch {
		case env.Status == proxy.StatusError:
			log.Fatal(env.Error.Message)
		case env.Status == proxy.StatusDenied:
			fmt.Println("  ", env.Decision.Reason)
		case *env.ExitCode != 0:
			_, err := workspace.CallVault(ctx, w, "task", workspace.OpUndo, func(vault string) workspace.UndoRequest {
				return workspace.UndoRequest{Vault: vault}
			}, workspace.Streams{})
			must(err)
		}
	}

	merged, err := w.Merge(ctx, workspace.MergeRequest{Vault: "project", Source: "task"})
	must(err)
	for _, c := range merged.Changes {
		fmt.Println(c.Kind, c.Path)
	}
	_, err = w.Discard(ctx, workspace.DiscardRequest{Vault: "task"})
	must(err)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
