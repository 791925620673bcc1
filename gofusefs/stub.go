//go:build !linux

package gofusefs

import (
	"errors"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/view"
)

// errNotLinux is why other systems have no such mount.
var errNotLinux = errors.New("the native mount is for Linux; use cgofuse here")

func probe() error { return errNotLinux }

// plan is never reached, because Available fails first.
func plan(*engine.Vault, *Options) (func(string) *view.Server, error) { return nil, errNotLinux }
