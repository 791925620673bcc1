package policy

import (
	"slices"
	"strings"
)

// handler judges a program that can run others in its own way.
type handler func(w *walker, it *item, in input)

// specialOf returns the handler for a program that has one, by lower-case name.
func specialOf(base string) handler {
	switch base {
	case "find", "gfind":
		return (*walker).find
	case "fd", "fdfind":
		return (*walker).fd
	case "git":
		return (*walker).git
	case "tar", "gtar", "bsdtar":
		return (*walker).tar
	case "make", "gmake":
		return (*walker).makeTool
	case "sed", "gsed":
		return (*walker).sed
	case "awk", "gawk", "mawk", "nawk":
		return (*walker).awk
	case "xargs", "gxargs":
		return (*walker).xargs
	case "parallel":
		return (*walker).parallel
	case "at", "batch":
		return (*walker).later
	case "busybox", "toybox":
		return (*walker).busybox
	case "rsync", "scp", "sftp":
		return (*walker).remoteCopy
	case "ssh":
		return (*walker).ssh
	case "avfs":
		return (*walker).avfs
	case "cmake":
		return (*walker).cmake
	case "pee":
		return (*walker).pee
	case "tmux", "screen", "zellij", "byobu":
		return (*walker).multiplexer
	}
	if _, ok := shells[base]; ok {
		return (*walker).shell
	}
	if _, ok := runners[base]; ok {
		return (*walker).runner
	}
	return nil
}

// find judges what find runs, deletes and writes. The names that it finds lie below
// its starting points.
func (w *walker) find(it *item, in input) {
	w.a.add(*it)
	found := foundBelow(it.args)
	for i := 0; i < len(it.args); i++ {
		switch s := it.args[i].text; s {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(it.args) && it.args[end].text != ";" && it.args[end].text != "+" {
				end++
			}
			words := withInput(it.args[i+1:end], "{}")
			for j, t := range words {
				if t.text == "{}" {
					words[j] = found
				}
			}
			w.run(words, "find "+s, input{})
			if start, ok := w.systemStart(it.args); ok && slices.ContainsFunc(words, func(t token) bool { return t.repl == "{}" }) {
				// What find finds first is the place where it starts.
				n := *w
				n.soft = true
				n.run(replaceFound(words, start), "find "+s, input{})
			}
			i = end
		case "-delete":
			n := *w
			n.soft = true
			n.run([]token{literal("rm"), found}, "find -delete", input{})
			if start, ok := unknownStart(it.args); ok {
				n.run([]token{literal("rm"), literal("-r"), start}, "find -delete", input{})
			}
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(it.args) {
				w.write(it.args[i+1], ">")
			}
		}
	}
}

// systemStart returns the first starting point of find that is a root or a home of the
// host.
func (w *walker) systemStart(args []token) (token, bool) {
	for _, a := range args {
		if a.dyn || strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" {
			break
		}
		if w.loc().is(classSystem, a) == yes {
			return a, true
		}
	}
	return token{}, false
}

// unknownStart returns the first starting point of find that only the run will know,
// where no test chooses among what lies below it.
func unknownStart(args []token) (token, bool) {
	start := slices.IndexFunc(args, func(t token) bool { return t.dyn || strings.HasPrefix(t.text, "-") })
	if start < 0 || !args[start].dyn {
		return token{}, false
	}
	for _, t := range args {
		switch t.text {
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-newer", "-mtime", "-mmin", "-empty", "-size":
			return token{}, false
		}
	}
	return args[start], true
}

func replaceFound(words []token, start token) []token {
	out := slices.Clone(words)
	for i, t := range out {
		if t.repl == "{}" {
			out[i] = start
		}
	}
	return out
}

// foundBelow returns the token for a name that find found.
func foundBelow(args []token) token {
	t := token{text: "{}", dyn: true, repl: "{}", head: "./"}
	starts := 0
	for _, a := range args {
		if a.dyn || strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" {
			if a.dyn && starts == 0 {
				t.head = ""
			}
			break
		}
		if starts++; starts == 1 || strings.HasPrefix(a.text, "/") || strings.HasPrefix(a.text, "~") || strings.HasPrefix(a.text, "..") {
			t.head = strings.TrimRight(a.text, "/") + "/"
		}
	}
	return t
}

// fd judges the command behind fd's -x and -X.
func (w *walker) fd(it *item, in input) {
	w.a.add(*it)
	for i, t := range it.args {
		switch t.text {
		case "-x", "-X", "--exec", "--exec-batch":
			words := it.args[i+1:]
			if end := slices.IndexFunc(words, func(t token) bool { return t.text == ";" }); end >= 0 {
				words = words[:end]
			}
			repl := ""
			if slices.ContainsFunc(words, func(t token) bool { return strings.Contains(t.text, "{}") }) {
				repl = "{}"
			}
			if len(words) > 0 {
				words = withInput(words, repl)
				w.run(words, "fd "+t.text, input{})
				w.fdStarts(it.args[:i], words, "fd "+t.text)
			}
			return
		}
	}
}

// fdStarts judges the command with the places of the host where fd starts, which it
// finds first.
func (w *walker) fdStarts(args, words []token, via string) {
	for _, a := range args {
		if w.loc().is(classSystem, a) != yes {
			continue
		}
		at := slices.Clone(words)
		for i, t := range at {
			if t.operand || t.repl == "{}" {
				at[i] = a
			}
		}
		n := *w
		n.soft = true
		n.run(at, via, input{})
		return
	}
}

// tarAbsolute reports whether tar extracts members under absolute names.
func tarAbsolute(args []token) bool {
	extracts, absolute := false, false
	for i, t := range args {
		s := t.certain()
		letters := ""
		switch {
		case s == "--extract" || s == "--get":
			extracts = true
		case s == "--absolute-names" || s == "--absolute-paths":
			absolute = true
		case len(s) > 1 && s[0] == '-' && s[1] != '-':
			letters, _, _ = strings.Cut(s[1:], "f") // what follows is the archive
			if strings.HasSuffix(s, "f") {
				letters = s[1:]
			}
		case i == 0: // tar xPf a
			letters = s
		}
		extracts = extracts || strings.Contains(letters, "x")
		absolute = absolute || strings.Contains(letters, "P")
	}
	return extracts && absolute
}

// tar judges the commands that tar starts.
func (w *walker) tar(it *item, in input) {
	w.a.add(*it)
	if tarAbsolute(it.args) {
		w.a.floor(RequireApproval, "tar-absolute", w.via, it.display(), "the names in the archive may lead anywhere")
	}
	for i, t := range it.args {
		s := t.certain()
		name, value, ok := t.splitAssign()
		if !ok {
			name = s
			if i+1 < len(it.args) {
				value = it.args[i+1]
			}
		}
		switch {
		case name == "--to-command", name == "--info-script", name == "--new-volume-script", name == "-F" && !ok, name == "--rsh-command":
			w.code(value, "tar "+name, nil, true)
		case name == "--checkpoint-action":
			if v, found := strings.CutPrefix(value.certain(), "exec="); found {
				w.code(value.after(len(value.certain())-len(v)), "tar "+name, nil, true)
			}
		case name == "--use-compress-program", name == "-I" && !ok:
			n := *w
			n.soft = true
			n.code(value, "tar "+name, nil, true)
		}
	}
}

// cmakeTools are the commands of cmake's -E that other programs do as well.
var cmakeTools = map[string][]string{
	"rm": {"rm"}, "remove": {"rm"}, "remove_directory": {"rm", "-r"}, "copy": {"cp"}, "copy_directory": {"cp", "-r"}, "copy_if_different": {"cp"},
	"rename": {"mv"}, "touch": {"touch"}, "tar": {"tar"}, "env": {"env"}, "time": {"time"}, "create_symlink": {"ln", "-s"}, "make_directory": {"mkdir"},
}

// cmake judges its command line tools as the programs that do the same.
func (w *walker) cmake(it *item, in input) {
	w.a.add(*it)
	for i, t := range it.args {
		if t.text != "-E" || i+1 >= len(it.args) {
			continue
		}
		tool := it.args[i+1].certain()
		rest := it.args[i+2:]
		if tool == "chdir" && len(rest) > 1 {
			n := *w
			n.st = w.st.clone()
			n.changeDir(rest[:1])
			n.run(rest[1:], "cmake -E", in)
			return
		}
		if as, ok := cmakeTools[tool]; ok {
			words := make([]token, 0, len(as)+len(rest))
			for _, s := range as {
				words = append(words, literal(s))
			}
			w.run(append(words, rest...), "cmake -E", in)
		}
		return
	}
}

// pee judges the commands that it hands its input to, each of which is shell code.
func (w *walker) pee(it *item, in input) {
	it.kind = kindWrapper
	w.a.add(*it)
	for _, t := range it.args {
		w.code(t, it.base, nil, true)
	}
}

// makeTool judges arguments with which make runs other things than its makefile
// says. What the makefile says is not known here.
func (w *walker) makeTool(it *item, in input) {
	w.a.add(*it)
	for i, t := range it.args {
		s := t.certain()
		name, _, _ := strings.Cut(s, "=")
		switch name {
		case "SHELL", ".SHELLFLAGS", "MAKEFILES", "MAKEFLAGS":
			if strings.Contains(s, "=") {
				w.a.opaque(w.via, t.text, "make is told to run its commands in another way: "+name)
			}
		case "--eval", "-E":
			w.a.opaque(w.via, t.text, "make is given rules on its command line")
		case "-f", "--file", "--makefile":
			file := s[min(len(name)+1, len(s)):]
			if !strings.Contains(s, "=") && i+1 < len(it.args) {
				file = it.args[i+1].certain()
			}
			if file == "-" || strings.HasPrefix(file, "/dev/") {
				w.a.opaque(w.via, it.display(), "make reads its rules from an input")
			}
		case "-f-":
			w.a.opaque(w.via, it.display(), "make reads its rules from an input")
		}
	}
}

// sed judges the scripts of sed: they can run commands and write files.
func (w *walker) sed(it *item, in input) {
	w.a.add(*it)
	given := false
	var operands []token
	for i := 0; i < len(it.args); i++ {
		t := it.args[i]
		s := t.certain()
		switch {
		case s == "-e" || s == "--expression":
			given = true
			if i++; i < len(it.args) {
				w.sedScript(it.args[i])
			}
		case strings.HasPrefix(s, "--expression="):
			given = true
			w.sedScript(t.after(len("--expression=")))
		case s == "-f" || s == "--file":
			given = true
			i++
			w.scriptFile(it)
		case strings.HasPrefix(s, "--file="), strings.HasPrefix(s, "-f"):
			given = true
			w.scriptFile(it)
		case len(s) > 2 && s[0] == '-' && s[1] != '-' && strings.HasSuffix(s, "e") && strings.Trim(s[1:], "nrEsuze") == "":
			given = true
			if i++; i < len(it.args) {
				w.sedScript(it.args[i])
			}
		case len(s) > 1 && s[0] == '-':
		default:
			operands = append(operands, t)
		}
	}
	if !given && len(operands) > 0 {
		w.sedScript(operands[0])
	}
}

// scriptFile notes that a program of the text tools comes from a file, which can make
// them write files and run others.
func (w *walker) scriptFile(it *item) {
	w.a.floor(AllowWithCheckpoint, "script-file", joinVia(w.via, it.base), it.display(), "the script in a file can do anything")
}

// awk judges the program text of awk.
func (w *walker) awk(it *item, in input) {
	w.a.add(*it)
	lang := language{shells: awkShells}
	vars := map[string]string{}
	given := false
	it.eachOption(pathModel{}, func(name string, value token, has bool) {
		switch name {
		case "-v", "--assign":
			if n, v, ok := value.splitAssign(); ok && v.known() {
				vars[n] = v.text
			}
		case "-f", "--file":
			given = true
			if value.text == "-" || strings.HasPrefix(value.certain(), "/dev/") {
				w.a.opaque(w.via, it.display(), "awk reads its program from an input")
			}
			w.scriptFile(it)
		case "-e", "--source":
			given = true
			w.awkProgram(it, lang, value, vars)
		case "-i", "--include":
			if value.text != "inplace" {
				w.scriptFile(it)
			}
		case "-l", "--load":
			w.a.floor(RequireApproval, "awk-library", w.via, it.display(), "awk is told to load a library")
		}
	})
	if ops := it.operandTokens(); !given && len(ops) > 0 {
		w.awkProgram(it, lang, ops[0], vars)
	}
}

// awkTarget finds what an awk program prints into where that is no literal.
var awkTarget = compiled(`\bprintf?\b[^;}\n"(]*>+\s*([A-Za-z_$(]\w*)`)

// awkProgram judges the text of a program whose variables may have been set.
func (w *walker) awkProgram(it *item, lang language, code token, vars map[string]string) {
	w.languageCode(it, lang, code)
	if !strings.Contains(code.text, ">") {
		return
	}
	for _, m := range awkTarget().FindAllStringSubmatch(code.text, maxScans) {
		if v, ok := vars[m[1]]; ok {
			w.write(literal(v), ">")
			continue
		}
		w.a.floor(AllowWithCheckpoint, "awk-writes", joinVia(w.via, it.base), code.text, "it may write a file whose name is only known at run time")
	}
}

// later judges at and batch, which read shell code from their input.
func (w *walker) later(it *item, in input) {
	w.a.add(*it)
	switch {
	case hasWord(it.args, "-f"), hasWord(it.args, "-l"), hasWord(it.args, "-d"):
	case in.kind == inputLiteral:
		w.code(literal(in.text), it.base, nil, true)
	case in.kind == inputPipe:
		w.a.opaque(joinVia(w.via, it.base), it.display(), "the code that will run later comes from an input that is not known")
		if in.text != "" {
			w.code(literal(in.text), it.base, nil, true)
		}
	}
}

// avfsRunners are the commands of avfs that run another one, with how many words stand
// in front of it.
var avfsRunners = map[string]int{"exec": 1, "shell": 1, "fanout": 2, "terminal-of": 2}

// avfs judges the command that avfs itself is told to run.
func (w *walker) avfs(it *item, in input) {
	w.a.add(*it)
	ops := it.operandTokens()
	if len(ops) > 0 && ops[0].text == "proxy" {
		ops = ops[1:]
	}
	if len(ops) == 0 {
		return
	}
	verb := ops[0].text
	skip, runs := avfsRunners[verb]
	if !runs {
		return
	}
	via := "avfs " + verb
	for i, t := range it.args {
		name, value, ok := t.splitAssign()
		switch {
		case ok && name == "--shell":
			w.code(value, via, nil, true)
		case t.text == "--shell" && i+1 < len(it.args):
			w.code(it.args[i+1], via, nil, true)
		}
	}
	if len(ops) > skip {
		w.run(ops[skip:], via, in)
	}
}

// multiplexer judges the programs that keep commands running behind a terminal of
// their own: whatever runs there outlives the command, and nobody judges it.
func (w *walker) multiplexer(it *item, in input) {
	w.a.add(*it)
	ops := it.operandTokens()
	if onlyInforms(it) || hasWord(it.args, "-ls") || hasWord(it.args, "-list") || len(ops) > 0 && slices.Contains([]string{"ls", "list-sessions", "list-windows", "list-panes", "capture-pane", "has-session", "info"}, ops[0].text) {
		return
	}
	w.a.floor(RequireApproval, "multiplexer", w.via, it.display(), "it runs commands that nobody judges and that outlive this one")
	for i := range ops[:min(len(ops), 4)] {
		n := *w
		n.soft, n.known = true, true
		n.run(ops[i:], it.base, input{})
		w.softCode(it.base, ops[i].text)
	}
}

// codeOptions lists options whose value a program runs.
var codeOptions = map[string][]string{
	"go": {"-exec", "-toolexec", "-vettool"}, "sort": {"--compress-program"}, "split": {"--filter"}, "rg": {"--pre", "--hostname-bin"},
	"gcc": {"-wrapper"}, "cc": {"-wrapper"}, "g++": {"-wrapper"}, "c++": {"-wrapper"}, "clang": {"-wrapper"},
	"tcpdump": {"-z"}, "fzf": {"--preview", "--with-shell"}, "bat": {"--pager"}, "delta": {"--pager"}, "ag": {"--pager"},
}

// optionCode judges what options make a program run.
func (w *walker) optionCode(it *item) {
	options := codeOptions[it.base]
	if options == nil {
		return
	}
	for i, t := range it.args {
		name, value, ok := t.splitAssign()
		if !ok {
			name = t.certain()
			if i+1 < len(it.args) {
				value = it.args[i+1]
			}
		}
		if strings.HasPrefix(name, "--") && it.base == "go" {
			name = name[1:]
		}
		if !slices.ContainsFunc(options, func(o string) bool {
			return o == name || len(name) > 5 && strings.HasPrefix(o, "--") && strings.HasPrefix(o, name)
		}) {
			continue
		}
		if value.known() && name == "-wrapper" {
			value = literal(strings.ReplaceAll(value.text, ",", " "))
		}
		w.code(value, it.base+" "+name, nil, true)
	}
}

// busybox runs the applet that its first argument names.
func (w *walker) busybox(it *item, in input) {
	if len(it.args) == 0 || strings.HasPrefix(it.args[0].certain(), "-") {
		w.a.add(*it)
		return
	}
	it.kind = kindWrapper
	w.a.add(*it)
	w.run(it.args, it.base, in)
}

// remoteCopy judges the programs that rsync, scp and sftp use for their connection.
func (w *walker) remoteCopy(it *item, in input) {
	w.a.add(*it)
	w.connection(it, "-e", "--rsh", "--rsync-path", "-S")
}

// ssh judges the programs for the connection, then the command for the other side.
func (w *walker) ssh(it *item, in input) {
	w.connection(it)
	w.wrapper(it, wrappers["ssh"], in)
}

// connection judges options that name a program for a connection.
func (w *walker) connection(it *item, options ...string) {
	n := *w
	n.soft = true
	for i, t := range it.args {
		s := t.certain()
		name, value, ok := t.splitAssign()
		if !ok && i+1 < len(it.args) {
			name, value = s, it.args[i+1]
		}
		if slices.Contains(options, name) {
			n.code(value, it.base+" "+name, nil, true)
			continue
		}
		opt := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(s, "-o"), " "))
		for _, key := range []string{"proxycommand", "localcommand", "knownhostscommand"} {
			if rest, found := strings.CutPrefix(opt, key); found && rest != "" && strings.IndexByte("= ", rest[0]) >= 0 && rest[1:] != "none" {
				w.a.floor(RequireApproval, "ssh-command", w.via, t.text, "the option makes ssh run a program: "+key)
				n.code(t.after(len(s)-len(rest)+1), it.base+" "+key, nil, true)
			}
		}
	}
}
