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
				w.run(withInput(words, repl), "fd "+t.text, input{})
			}
			return
		}
	}
}

// tar judges the commands that tar starts.
func (w *walker) tar(it *item, in input) {
	w.a.add(*it)
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
		case strings.HasPrefix(s, "--file="):
			given = true
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

// awk judges the program text of awk.
func (w *walker) awk(it *item, in input) {
	w.a.add(*it)
	lang := language{shells: awkShells}
	for i := 0; i < len(it.args); i++ {
		t := it.args[i]
		s := t.certain()
		switch {
		case s == "-v" || s == "-F" || s == "-i" || s == "-l":
			i++
		case s == "-f" || s == "--file":
			if i+1 < len(it.args) && (it.args[i+1].text == "-" || strings.HasPrefix(it.args[i+1].certain(), "/dev/")) {
				w.a.opaque(w.via, it.display(), "awk reads its program from an input")
			}
			return
		case s == "-e" || s == "--source":
			if i++; i < len(it.args) {
				w.languageCode(it, lang, it.args[i])
			}
		case len(s) > 1 && s[0] == '-' && s != "--":
		case s == "--":
		default:
			w.languageCode(it, lang, t)
			return
		}
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
