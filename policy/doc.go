// Package policy decides whether a command may run, and says why.
//
// It is pure: a decision depends on the command and the rules alone. It reads no
// file, looks up no name, asks no clock and runs nothing, so that the same
// question always has the same answer and `avfs policy check` shows exactly what
// an execution would be told.
//
// # How a decision is made
//
// The command is taken apart into segments: every simple command of a shell
// string wherever it stands (lists, pipes, substitutions, functions, the code
// handed to `sh -c`, the command behind `sudo` or `xargs`), and every file that a
// redirection writes. Each segment is judged by every rule. The strictest rule
// that matches wins, rules marked as fallback count only where nothing else
// matched, and the policy's default answers for what no rule knows. The decision
// is the strictest answer of all segments.
//
// What cannot be understood (a program name that only the run will know, text
// that is no shell, input past the limits) gets the policy's opaque action, which
// is never allow. A rule that may match, because one of the words it looks at is
// only known at run time, lifts the answer as far as the opaque action does.
//
// # What it is not
//
// Policy is advice about an honest but fallible agent. A build tool or a script
// does what it likes once it runs; checkpoints and undo are the net for that.
package policy
