package main

import (
	"errors"
	"os"
	"runtime/pprof"
)

// profileVar names the variable with the file that takes a CPU profile of the
// process that serves a store, and so of its mounts. It is for those who work on
// avfs.
const profileVar = "AVFS_PPROF"

// profileOwner runs serve, and writes its CPU profile if the environment asks for
// one.
func profileOwner(serve func() error) (err error) {
	path := os.Getenv(profileVar)
	if path == "" {
		return serve()
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return serve()
}
