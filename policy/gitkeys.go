package policy

import "strings"

// gitUse says what of git's configuration and hooks a subcommand makes matter.
type gitUse uint16

const (
	useIndex  gitUse = 1 << iota // it refreshes the index, or filters content
	useDiff                      // it may show differences
	useNet                       // it may talk to another repository
	useEditor                    // it may open an editor or write a message
	usePager                     // it may page its output
	useMerge                     // it may merge content
	useSign                      // it may sign, or check signatures
	useTool                      // it starts a tool for differences or merges
	useHelp                      // it shows help
	useRefs                      // it changes references
	useChange                    // it is meant to change the repository or the files
	useSwitch                    // it may check files out
	useCommit                    // it may make commits
	usePush                      // it may push
	useOther                     // what only subcommands do that gitUses does not list
	useAll    gitUse = 1<<iota - 1
)

// gitUses lists subcommands that are known well enough to say what they use. All
// others use everything.
var gitUses = map[string]gitUse{
	"status": useIndex | useDiff, "diff": useIndex | useDiff | usePager, "diff-files": useIndex | useDiff, "diff-index": useIndex | useDiff,
	"diff-tree": useDiff, "log": useDiff | usePager | useSign, "show": useDiff | usePager | useSign, "whatchanged": useDiff | usePager | useSign,
	"shortlog": usePager, "reflog": useDiff | usePager, "range-diff": useDiff | usePager, "format-patch": useDiff | useEditor,
	"blame": useIndex | useDiff | usePager, "annotate": useIndex | useDiff | usePager, "grep": useIndex | useDiff | usePager,
	"describe": useIndex, "ls-files": useIndex, "check-ignore": useIndex, "check-attr": useIndex, "cat-file": useIndex | useDiff, "hash-object": useIndex,
	"rev-parse": 0, "rev-list": 0, "show-ref": 0, "for-each-ref": usePager, "merge-base": 0, "ls-tree": 0, "name-rev": 0, "var": 0, "version": 0,
	"count-objects": 0, "symbolic-ref": useRefs, "show-branch": 0, "cherry": 0, "check-ref-format": 0, "help": useHelp | usePager, "config": useEditor | usePager,
	"branch": useRefs | useEditor | usePager | useChange, "tag": useRefs | useEditor | usePager | useSign | useChange, "fsck": 0,
	"verify-commit": useSign, "verify-tag": useSign, "remote": useNet | useRefs | useChange, "ls-remote": useNet,
	"fetch": useNet | useRefs | useChange, "push": useNet | useSign | useRefs | usePush | useChange,
	"add": useIndex | useDiff | useEditor | useChange, "rm": useIndex | useChange, "mv": useIndex | useChange, "clean": useIndex | useChange, "update-index": useIndex | useChange,
	"stash": useIndex | useDiff | useMerge | usePager | useRefs | useChange, "reset": useIndex | useDiff | useRefs | useChange | useSwitch, "restore": useIndex | useDiff | useMerge | useChange | useSwitch,
	"checkout": useIndex | useDiff | useMerge | useRefs | useChange | useSwitch, "switch": useIndex | useMerge | useRefs | useChange | useSwitch,
	"commit": useIndex | useDiff | useEditor | useSign | useRefs | useChange | useCommit, "notes": useEditor | useRefs | useChange | usePager, "init": useChange,
}

// gitUsesOf returns what a subcommand uses; an empty one is git alone, which only
// prints something.
func gitUsesOf(sub string) gitUse {
	if sub == "" {
		return 0
	}
	if u, ok := gitUses[sub]; ok {
		return u
	}
	return useAll
}

// hookUses says for each hook which uses run it.
var hookUses = map[string]gitUse{
	"applypatch-msg": useOther, "pre-applypatch": useOther, "post-applypatch": useOther, "sendemail-validate": useOther,
	"pre-commit": useCommit, "prepare-commit-msg": useCommit, "commit-msg": useCommit, "post-commit": useCommit, "pre-merge-commit": useOther,
	"post-merge": useOther, "pre-rebase": useOther, "post-rewrite": useCommit, "post-checkout": useSwitch, "pre-push": usePush,
	"pre-receive": usePush, "update": usePush, "proc-receive": usePush, "post-receive": usePush, "post-update": usePush, "push-to-checkout": usePush,
	"reference-transaction": useRefs | useNet, "pre-auto-gc": useCommit | useNet, "post-index-change": useIndex,
	"p4-changelist": useOther, "p4-prepare-changelist": useOther, "p4-post-changelist": useOther, "p4-pre-submit": useOther,
}

// gitKeyMatters reports whether a setting that makes git run a program does so for a
// subcommand.
func gitKeyMatters(key, sub string, uses gitUse) bool {
	first, rest, _ := strings.Cut(strings.ToLower(key), ".")
	last := rest[strings.LastIndexByte(rest, '.')+1:]
	switch first {
	case "alias":
		return false // the alias is judged where it is called
	case "pager":
		return rest == sub
	case "filter", "interactive":
		return uses&useIndex != 0
	case "diff":
		return uses&useDiff != 0
	case "merge":
		return uses&useMerge != 0
	case "mergetool", "difftool", "guitool":
		return uses&useTool != 0
	case "gpg":
		return uses&useSign != 0
	case "credential", "remote", "url", "protocol", "submodule", "uploadpack":
		return uses&useNet != 0
	case "man", "browser", "web":
		return uses&useHelp != 0
	case "sequence", "trailer":
		return uses&useEditor != 0
	}
	switch first + "." + last {
	case "core.fsmonitor":
		return uses&useIndex != 0
	case "core.editor":
		return uses&useEditor != 0
	case "core.pager":
		return uses&usePager != 0
	case "core.sshcommand", "core.askpass", "core.gitproxy", "core.alternaterefscommand":
		return uses&useNet != 0
	}
	return true
}

// riskyGitKey reports whether a setting makes git run a program.
func riskyGitKey(key, value string) bool {
	key = strings.ToLower(key)
	first, rest, _ := strings.Cut(key, ".")
	last := rest[strings.LastIndexByte(rest, '.')+1:]
	switch first + "." + last {
	case "core.fsmonitor":
		return !gitBool(value)
	case "core.editor", "core.pager", "sequence.editor", "interactive.difffilter", "gpg.program":
		return !harmlessProgram(literal(value)) && value != "gpg" && value != "gpg2"
	case "core.hookspath", "core.sshcommand", "core.askpass", "core.gitproxy", "core.alternaterefscommand", "core.worktree",
		"diff.external", "diff.command", "diff.textconv", "merge.driver", "mergetool.cmd", "mergetool.path", "difftool.cmd", "difftool.path",
		"uploadpack.packobjectshook", "remote.uploadpack", "remote.receivepack", "remote.vcs", "include.path", "includeif.path",
		"man.cmd", "man.path", "browser.cmd", "browser.path", "web.browser", "trailer.command", "trailer.cmd", "init.templatedir", "tar.command",
		"hook.command", "guitool.cmd", "gpg.defaultkeycommand", "lfs.path", "lfs.clean", "lfs.smudge", "imap.tunnel", "instaweb.httpd", "instaweb.browser", "sendemail.smtpserver", "sendemail.sendmailcmd", "sendemail.tocmd", "sendemail.cccmd", "credential.usehttppath.helper", "gc.recentobjectshook", "ssh.command", "core.commentcommand":
		return value != ""
	case "filter.clean", "filter.smudge", "filter.process":
		return value != "" && !strings.HasPrefix(value, "git-lfs ") || strings.ContainsAny(value, ";|&$`\n")
	case "credential.helper":
		return strings.HasPrefix(value, "!") || strings.ContainsAny(value, "/;|&$`")
	case "protocol.allow":
		return strings.HasPrefix(rest, "ext.") && value != "never"
	case "remote.url", "remote.pushurl", "submodule.url", "url.insteadof", "url.pushinsteadof":
		return strings.HasPrefix(value, "ext::") || strings.HasPrefix(rest, "ext::")
	case "submodule.update":
		return strings.HasPrefix(value, "!")
	}
	switch first {
	case "alias":
		return strings.HasPrefix(strings.TrimSpace(value), "!") || strings.Contains(value, "-c ")
	case "pager":
		return !gitBool(value) && !harmlessProgram(literal(value))
	}
	return false
}

func gitBool(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "yes", "no", "on", "off", "1", "0", "":
		return true
	}
	return false
}
