//go:build !unix

package main

import "os/exec"

// ownSession does nothing: this system does not share processors out by sessions.
func ownSession(*exec.Cmd) {}
