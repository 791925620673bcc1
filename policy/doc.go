// Package policy decides whether a command may run, and says why.
//
// It is pure: a decision depends on the command, the rules and the facts that the
// caller hands over. It reads no file, looks up no name, asks no clock and runs nothing, so that the same
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
// # Rules
//
// A rule has conditions, which must all hold: prog, prefix, any_flag, all_flags,
// any_arg, last_arg, reads, writes and network. docs/policy.md is the reference of the
// file. What a program reads, writes and tells others is known for usual programs and
// for redirections (pathmodels.go, network.go); a rule that restricts holds where one
// path matches, a rule that allows where all of them do. A rule that restricts matches
// every spelling; a rule that allows matches only what it surely means, so that a
// program of the vault that has the name of a known one gets no better than the
// default.
//
// # Repositories
//
// git runs programs that a repository's own configuration names, and an agent can
// write that configuration. The caller may hand over [Facts] about the vault; a git
// command is then judged by the repository that it will work in, whichever way the
// command leads there (cd, -C, --git-dir). A setting that makes the subcommand run a
// program needs approval, and the reason names the key: core.fsmonitor for what
// refreshes the index, credential.helper for what talks to others, and so on.
// Settings that only show or edit text (core.pager = less) and git-lfs are known.
// Hooks are code of the project like its makefile, and many repositories have them:
// a subcommand that is meant to change something runs them behind a checkpoint
// (`git commit` with pre-commit), and one that only reads asks (`git status` with
// post-index-change). Samples and files that cannot be executed are no hooks.
// What is not looked at: repositories outside the vault, which are never simply
// allowed; submodules that no .gitmodules and no .git/modules knows; other programs
// that run git on their own.
//
// # What it is not
//
// Policy is advice about an honest but fallible agent. A build tool or a script
// does what it likes once it runs; checkpoints and undo are the net for that.
package policy
