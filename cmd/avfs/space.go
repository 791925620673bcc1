package main

import (
	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// workspace opens the workspace that the environment names.
func (a *app) workspace() (*workspace.Workspace, error) {
	return a.workspaceWith(a.getenv(driverVar))
}

// workspaceWith is workspace; what this process mounts it mounts with the driver.
func (a *app) workspaceWith(driver string) (*workspace.Workspace, error) {
	linger, err := lingerTime(a.getenv)
	if err != nil {
		return nil, err
	}
	s := &spawner{linger: linger, getenv: a.getenv, trace: a.trace}
	return workspace.Open(workspace.Config{
		Drivers: backends.All(), Mounter: mounter{driver}, Spawn: s.spawn, Away: a.inner,
		EndCommand: proxy.EndCommand, Version: version(),
	})
}

// call runs an operation on the vault that the flags name.
func call[Req, Res any](a *app, op workspace.Op[Req, Res], bind func(vault string) Req, s workspace.Streams) (Res, error) {
	w, err := a.workspace()
	if err != nil {
		var none Res
		return none, err
	}
	return workspace.CallVault(a.ctx, w, a.flags.Vault, op, bind, s)
}
