package policy

import (
	"slices"
	"strings"
	"sync"
)

// pathModels lists the programs whose paths are known, by lower-case name. How options
// take their values stands in optModels.
var pathModels = sync.OnceValue(buildPathModels)

func buildPathModels() map[string]pathModel {
	all := map[string]pathModel{
		"cp":       {operands: useCopy, target: []string{"-t", "--target-directory"}},
		"ditto":    {operands: useCopy},
		"install":  {operands: useCopy, target: []string{"-t", "--target-directory"}, more: installDirs},
		"ln":       {operands: useCopy, target: []string{"-t", "--target-directory"}},
		"mv":       {operands: useMove, target: []string{"-t", "--target-directory"}},
		"rsync":    {operands: useCopy, reads: []string{"--files-from", "--exclude-from", "--include-from"}, writes: []string{"--log-file", "--backup-dir", "--temp-dir"}, more: rsyncPaths},
		"scp":      {operands: useCopy, reads: []string{"-i", "-F"}, more: rsyncPaths},
		"dd":       {more: ddPaths},
		"tee":      {operands: useWrite},
		"touch":    {operands: useWrite, reads: []string{"-r", "--reference"}},
		"mkdir":    {operands: useWrite},
		"rmdir":    {operands: useWrite},
		"rm":       {operands: useWrite},
		"unlink":   {operands: useWrite},
		"shred":    {operands: useWrite},
		"truncate": {operands: useWrite, reads: []string{"-r", "--reference"}},
		"mkfifo":   {operands: useWrite},
		"chmod":    {operands: useWrite, skip: 1, instead: []string{"--reference"}, reads: []string{"--reference"}},
		"chown":    {operands: useWrite, skip: 1, instead: []string{"--reference"}, reads: []string{"--reference"}},
		"setfacl":  {operands: useWrite},
		"chattr":   {operands: useWrite, skip: 1},
		"sed":      {operands: useRead, skip: 1, instead: []string{"-e", "-f", "--expression", "--file"}, reads: []string{"-f", "--file"}, inPlace: []string{"-i", "--in-place"}},
		"perl":     {operands: useRead, inPlace: []string{"-i"}},
		"ruby":     {operands: useRead, inPlace: []string{"-i"}},
		"yq":       {operands: useRead, skip: 1, inPlace: []string{"-i", "--inplace"}},
		"sort":     {operands: useRead, writes: []string{"-o", "--output"}, reads: []string{"--files0-from"}},
		"shuf":     {operands: useRead, writes: []string{"-o", "--output"}},
		"uniq":     {operands: useCopy},
		"split":    {more: splitPaths},
		"csplit":   {more: splitPaths},
		"patch":    {operands: useWrite, reads: []string{"-i", "--input"}, writes: []string{"-o", "--output", "-d", "--directory", "-r", "--reject-file"}},
		"curl":     {reads: []string{"-T", "--upload-file", "-K", "--config", "-E", "--cert"}, writes: []string{"-o", "--output", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar", "--trace"}, more: curlPaths},
		"wget":     {reads: []string{"-i", "--input-file", "--post-file"}, writes: []string{"-O", "--output-document", "-o", "--output-file", "-a", "--append-output", "-P", "--directory-prefix"}},
		"tar":      {more: tarPaths},
		"unzip":    {more: unzipPaths},
		"cpio":     {operands: useWrite, reads: []string{"-I", "-F", "--file"}, writes: []string{"-D", "--directory", "-O"}},
		"zip":      {operands: useCreate},
		"7z":       {more: sevenZipPaths},
		"gzip":     {operands: useWrite, toStdout: []string{"-c", "--stdout", "--to-stdout", "-l", "-t", "--list", "--test"}},
		"zstd":     {operands: useRead, writes: []string{"-o"}},
		"find":     {more: findPaths},
		"git":      {more: gitPaths},
		"go":       {writes: []string{"-C", "-o", "-coverprofile", "-cpuprofile", "-memprofile", "-trace", "-outputdir"}},
		"gcc":      {operands: useRead, writes: []string{"-o"}},
		"openssl":  {reads: []string{"-in", "-key", "-inkey", "-config"}, writes: []string{"-out", "-keyout"}},
		"ssh":      {reads: []string{"-i", "-F"}, writes: []string{"-E"}},
		"xxd":      {operands: useCopy},
		"objcopy":  {operands: useCopy},
		"strip":    {operands: useWrite},
		"cat":      {operands: useRead},
		"grep":     {operands: useRead, skip: 1, instead: []string{"-e", "-f", "--regexp", "--file"}, reads: []string{"-f", "--file"}},
		"jq":       {operands: useRead, skip: 1, reads: []string{"-f", "--from-file"}},
		"awk":      {operands: useRead, skip: 1, instead: []string{"-f", "--file", "-e", "--source"}, reads: []string{"-f", "--file"}, more: awkPaths},
		"python":   {operands: useRead},
		"make":     {writes: []string{"-C", "--directory"}},
		"ninja":    {writes: []string{"-C"}},
		"cmake":    {writes: []string{"-B", "--build", "--install", "--prefix"}},
		"npm":      {writes: []string{"--prefix", "-C"}},
		"pnpm":     {writes: []string{"-C", "--dir"}},
		"yarn":     {writes: []string{"--cwd"}},
		"cargo":    {writes: []string{"-C", "--target-dir", "--root", "--out-dir"}},
		"sponge":   {operands: useWrite},
	}
	for model, names := range map[string][]string{
		"cat": {"head", "tail", "less", "more", "most", "bat", "nl", "tac", "rev", "wc", "od", "hexdump", "strings", "file", "stat", "ls", "tree", "du", "readlink", "realpath", "diff", "cmp", "comm", "cut", "paste", "join", "fold", "fmt", "column",
			"md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "shasum", "cksum", "sum", "base64", "base32", "zcat", "bzcat", "xzcat", "nm", "objdump", "readelf", "size", "source", ".", "look", "expand", "unexpand", "tsort", "getfattr", "getfacl", "lsattr"},
		"grep": {"egrep", "fgrep", "zgrep", "rg", "ag", "ack", "ugrep"}, "awk": {"gawk", "mawk", "nawk"}, "sed": {"gsed"}, "tar": {"gtar", "bsdtar"}, "gcc": {"cc", "g++", "c++", "clang", "clang++", "ld", "rustc", "tcc"},
		"make": {"gmake"}, "gzip": {"gunzip", "bzip2", "bunzip2", "xz", "unxz", "lzma", "compress", "uncompress"}, "chown": {"chgrp"}, "find": {"gfind"}, "7z": {"7za", "7zz"}, "python": {"python3"},
	} {
		for _, name := range names {
			all[name] = all[model]
		}
	}
	return all
}

// installDirs: with -d all operands are directories that are made.
func installDirs(it *item, e *effects) {
	if it.hasFlag([]string{"-d", "--directory"}, true) != no {
		e.writes = append(e.writes, it.operandTokens()...)
	}
}

// rsyncPaths adds the sources that go, and drops what lies on another host: host:path, and URLs.
func rsyncPaths(it *item, e *effects) {
	if it.base == "rsync" && it.hasFlag([]string{"--remove-source-files", "--remove-sent-files"}, true) != no {
		e.writes = append(e.writes, e.reads...)
	}
	e.reads, e.writes = slices.DeleteFunc(e.reads, remoteName), slices.DeleteFunc(e.writes, remoteName)
}

// remoteName reports whether a word names something on another host.
func remoteName(t token) bool {
	c := t.certain()
	i := strings.IndexByte(c, ':')
	drive := i == 1 && len(c) > 2 && c[2] == '\\' // C:\x
	return i > 0 && !strings.Contains(c[:i], "/") && !drive && !strings.HasPrefix(c, "file://")
}

func ddPaths(it *item, e *effects) {
	for _, t := range it.args {
		switch name, v, _ := t.splitAssign(); name {
		case "if":
			e.reads = append(e.reads, v)
		case "of":
			e.writes = append(e.writes, v)
		}
	}
}

// splitPaths: the second operand begins the names of what is written.
func splitPaths(it *item, e *effects) {
	ops := it.operandTokens()
	if len(ops) > 0 {
		e.reads = append(e.reads, ops[0])
	}
	if len(ops) > 1 {
		e.writes = append(e.writes, ops[len(ops)-1])
	}
}

// curlPaths adds the files behind "@", and the working directory for -O.
func curlPaths(it *item, e *effects) {
	it.eachOption(pathModel{}, func(name string, value token, has bool) {
		switch name {
		case "-O", "-J", "--remote-name", "--remote-name-all", "--remote-header-name":
			e.writes = append(e.writes, literal("."))
		case "-d", "--data", "--data-binary", "--data-ascii", "--data-urlencode", "-F", "--form", "-H", "--header", "-b", "--cookie":
			c := value.certain()
			if i := strings.IndexByte(c, '@'); has && i >= 0 && (i == 0 || c[i-1] == '=') {
				e.reads = append(e.reads, value.after(i+1))
			}
		}
	})
	for _, t := range it.operandTokens() {
		if strings.HasPrefix(t.certain(), "file://") {
			e.reads = append(e.reads, t)
		}
	}
}

// awkPaths: with the library inplace awk writes the files that it reads.
func awkPaths(it *item, e *effects) {
	it.eachOption(pathModel{}, func(name string, value token, has bool) {
		if (name == "-i" || name == "--include") && has && value.certain() == "inplace" {
			e.writes = append(e.writes, e.reads...)
		}
	})
}

// tarPaths reads what tar does from its first cluster, with or without a dash.
func tarPaths(it *item, e *effects) {
	ops := it.operandTokens()
	mode := byte(0)
	note := func(letters string) {
		if i := strings.IndexAny(letters, "cxtrud"); i >= 0 && mode == 0 {
			mode = letters[i]
		}
	}
	var archive []token
	dir := literal(".")
	if len(it.args) > 0 && !strings.HasPrefix(it.args[0].certain(), "-") { // tar xzf a.tgz
		old := it.args[0].certain()
		note(old)
		ops = ops[min(1, len(ops)):]
		if strings.Contains(old, "f") && len(ops) > 0 {
			archive, ops = append(archive, ops[0]), ops[1:]
		}
	}
	it.eachOption(pathModel{target: []string{"--directory"}, reads: []string{"--file", "--files-from"}}, func(name string, value token, has bool) {
		switch name {
		case "-f", "--file":
			archive = append(archive, value)
		case "-C", "--directory":
			dir = value
		case "-T", "--files-from":
			e.reads = append(e.reads, value)
		case "--create", "--append", "--update":
			note("c")
		case "--extract", "--get":
			note("x")
		case "--list", "--diff", "--compare":
			note("t")
		default:
			if len(name) == 2 {
				note(name[1:])
			}
		}
	})
	switch mode {
	case 'c', 'r', 'u':
		e.writes, e.reads = append(e.writes, archive...), append(e.reads, ops...)
	case 'x':
		e.reads, e.writes = append(e.reads, archive...), append(e.writes, dir)
	default:
		e.reads = append(e.reads, archive...)
	}
}

func unzipPaths(it *item, e *effects) {
	if ops := it.operandTokens(); len(ops) > 0 {
		e.reads = append(e.reads, ops[0])
	}
	dir := literal(".")
	for i, t := range it.args {
		switch s := t.certain(); {
		case s == "-d" && i+1 < len(it.args):
			dir = it.args[i+1]
		case len(s) > 2 && strings.HasPrefix(s, "-d"):
			dir = t.after(2)
		}
	}
	if it.hasFlag([]string{"-l", "-t", "-p", "-v", "-z"}, false) != yes {
		e.writes = append(e.writes, dir)
	}
}

func sevenZipPaths(it *item, e *effects) {
	ops := it.operandTokens()
	if len(ops) < 2 {
		return
	}
	switch ops[0].text {
	case "a", "u", "d", "rn":
		e.writes, e.reads = append(e.writes, ops[1]), append(e.reads, ops[2:]...)
	default:
		e.reads = append(e.reads, ops[1])
	}
	for _, t := range it.args {
		if strings.HasPrefix(t.certain(), "-o") && ops[0].text != "l" {
			e.writes = append(e.writes, t.after(2))
		}
	}
}

// findPaths: find reads below its starting points, and may delete there.
func findPaths(it *item, e *effects) {
	for _, t := range it.args {
		s := t.certain()
		if strings.HasPrefix(s, "-") || s == "(" || s == "!" {
			break
		}
		e.reads = append(e.reads, t)
		if hasWord(it.args, "-delete") {
			e.writes = append(e.writes, t)
		}
	}
}

// gitPaths adds what git writes outside its repository, or where it puts a new one.
func gitPaths(it *item, e *effects) {
	ops := it.operandTokens()
	if len(ops) == 0 {
		return
	}
	sub, rest := ops[0].text, ops[1:]
	gitPlaces(it, sub, e)
	switch sub {
	case "bundle":
		if len(rest) > 1 && rest[0].text == "create" {
			e.writes = append(e.writes, rest[1])
		}
	case "clone":
		if len(rest) > 1 {
			e.writes = append(e.writes, rest[len(rest)-1])
		} else {
			e.writes = append(e.writes, literal("."))
		}
		if len(rest) > 0 && !remoteName(rest[0]) {
			e.reads = append(e.reads, rest[0])
		}
	case "init":
		if len(rest) == 0 {
			rest = []token{literal(".")}
		}
		e.writes = append(e.writes, rest...)
	case "rm", "mv", "restore":
		e.writes = append(e.writes, rest...)
	case "worktree":
		if len(rest) > 1 && slices.Contains([]string{"add", "remove", "move", "repair"}, rest[0].text) {
			e.writes = append(e.writes, rest[1:]...)
		}
	}
	for i, t := range it.args {
		name, v, ok := t.splitAssign()
		if !ok {
			name = t.certain()
			if i+1 < len(it.args) {
				v = it.args[i+1]
			}
		}
		switch {
		case name == "--output", name == "-o" && (sub == "archive" || sub == "format-patch"), name == "--output-directory", name == "--prefix" && sub == "checkout-index":
			e.writes = append(e.writes, v)
		case sub == "config" && (name == "--file" || name == "-f" && !ok):
			e.writes = append(e.writes, v)
		}
	}
}

// gitPlaces adds the places outside the vault that git's own options make it work in:
// what a subcommand changes is there, and no checkpoint has it.
func gitPlaces(it *item, sub string, e *effects) {
	args := it.args[:it.positionals().start]
	note := func(t token) {
		if t.known() && it.loc.resolve(t.text).kind == placeVault {
			return
		}
		if _, reads := gitReaders()[sub]; reads {
			e.reads = append(e.reads, t)
		} else {
			e.writes = append(e.writes, t)
		}
	}
	for i, t := range args {
		s := t.certain()
		name, value, ok := t.splitAssign()
		switch {
		case ok && (name == "--git-dir" || name == "--work-tree"):
			note(value)
		case (s == "-C" || s == "--git-dir" || s == "--work-tree") && i+1 < len(args):
			note(args[i+1])
		case len(s) > 2 && strings.HasPrefix(s, "-C"):
			note(t.after(2))
		}
	}
}

// gitReaders lists the subcommands of git that change nothing, or only in forms that
// name what they change.
var gitReaders = sync.OnceValue(func() map[string]struct{} {
	return newSet(`status log diff show blame annotate grep shortlog describe rev-parse rev-list ls-files ls-tree cat-file show-ref show-branch for-each-ref name-rev merge-base
	whatchanged cherry range-diff diff-tree diff-index diff-files count-objects check-ignore check-attr help version var verify-commit verify-tag fsck archive format-patch bundle ls-remote`)
})
