//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// brokenPipe is what a program gets that writes where nobody reads any more.
const brokenPipe = syscall.SIGPIPE

// surviveBrokenPipe turns the death of this process by a broken standard output
// into an error of the write.
func surviveBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
