package main

import "os"

// brokenPipe stands in for SIGPIPE, which Windows has not.
var brokenPipe = os.Interrupt

// surviveBrokenPipe has nothing to do: a broken pipe is an error here.
func surviveBrokenPipe() {}
