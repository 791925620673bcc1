package main

import (
	"fmt"
	"regexp"
	"strings"
)

// The marks in the asynchronous module. What stands before the first is not taken
// over.
const beginMark = "# The synchronous module is made of what follows.\n"

// rewrites turn the asynchronous module into the synchronous one, in this order.
var rewrites = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`Pending\[(\w+)\]`), "$1"},
	{regexp.MustCompile(`(?m)\bPending\((.*)\)$`), "$1"},
	{regexp.MustCompile(`\bAsync(\w+)`), "$1"},
	{regexp.MustCompile(`\basync (def|with|for)\b`), "$1"},
	{regexp.MustCompile(`\bawait `), ""},
	{regexp.MustCompile(`\bStopAsyncIteration\b`), "StopIteration"},
	{regexp.MustCompile(`__a(enter|exit|iter|next)__`), "__${1}__"},
	{regexp.MustCompile(`\baclose\b`), "close"},
}

const syncHead = `# Generated from _async.py by "make sdk-types". Do not edit.
"""The synchronous API: what _async.py has, without await."""

from __future__ import annotations

`

// synchronous makes the synchronous module.
func synchronous(async string) (string, error) {
	_, text, ok := strings.Cut(async, beginMark)
	if !ok {
		return "", fmt.Errorf("%s lacks the line %q", pythonAsync, beginMark)
	}
	for _, r := range rewrites {
		text = r.from.ReplaceAllString(text, r.to)
	}
	return syncHead + text, nil
}
