package policy

import (
	"slices"
	"strings"
	"sync"
)

// wrapper says how a program that runs another one reads its arguments.
type wrapper struct {
	short   string   // letters of short options that take a value
	long    []string // long options that take a value in the next word
	code    []string // options whose value is shell code
	dir     []string // options whose value is the directory that the command runs in
	writes  []string // options whose value is a file that the wrapper writes, or a program behind "|" or "!"
	nothing []string // options with which no other program is run
	skip    int      // operands in front of the command
	assigns bool     // name=value words may stand in front of the command
	mere    bool     // it only changes how the command runs, so it is not judged itself
	join    bool     // the words of the command are joined into shell code
	soft    bool     // where no rule speaks about the command, only the wrapper counts
}

// wrappers lists the programs that run the command which follows on their own
// command line.
var wrappers = map[string]wrapper{
	"env":               {short: "uC", long: []string{"--unset", "--chdir", "--block-signal", "--default-signal", "--ignore-signal"}, code: []string{"-S", "--split-string"}, dir: []string{"-C", "--chdir"}, assigns: true, mere: true},
	"nice":              {short: "n", long: []string{"--adjustment"}, mere: true},
	"nohup":             {mere: true},
	"setsid":            {mere: true},
	"timeout":           {short: "ks", long: []string{"--kill-after", "--signal"}, skip: 1, mere: true},
	"gtimeout":          {short: "ks", long: []string{"--kill-after", "--signal"}, skip: 1, mere: true},
	"time":              {short: "fo", long: []string{"--format", "--output"}, writes: []string{"-o", "--output"}, mere: true},
	"stdbuf":            {short: "ioe", long: []string{"--input", "--output", "--error"}, mere: true},
	"unbuffer":          {mere: true},
	"ionice":            {short: "cnpPu", long: []string{"--class", "--classdata", "--pid"}, mere: true},
	"chrt":              {short: "pTPD", skip: 1, mere: true},
	"taskset":           {skip: 1, mere: true},
	"numactl":           {short: "NmCpiP", mere: true},
	"prlimit":           {short: "po", mere: true},
	"caffeinate":        {short: "tw", mere: true},
	"command":           {nothing: []string{"-v", "-V"}, mere: true},
	"builtin":           {mere: true},
	"noglob":            {mere: true},
	"nocorrect":         {mere: true},
	"exec":              {short: "a", mere: true},
	"watch":             {short: "nq", long: []string{"--interval", "--equexit"}, mere: true, join: true},
	"strace":            {short: "abeEIoOpPsSuUX", long: []string{"--output", "--trace", "--string-limit"}, writes: []string{"-o", "--output"}, mere: true},
	"ltrace":            {short: "aADeFlLnopsuwxX", long: []string{"--output"}, writes: []string{"-o", "--output"}, mere: true},
	"valgrind":          {writes: []string{"--log-file", "--xml-file", "--massif-out-file", "--callgrind-out-file", "--cachegrind-out-file"}, mere: true},
	"perf":              {skip: 1, short: "eopFgcCt", long: []string{"--output"}, writes: []string{"-o", "--output"}, mere: true},
	"catchsegv":         {mere: true},
	"eatmydata":         {mere: true},
	"fakeroot":          {short: "lsib", mere: true},
	"rlwrap":            {short: "abcdDfFgHIlmopPqrsSVwz", mere: true},
	"tini":              {short: "pe", mere: true},
	"dumb-init":         {short: "r", mere: true},
	"xvfb-run":          {short: "enpfs", mere: true},
	"dbus-run-session":  {mere: true},
	"faketime":          {skip: 1, mere: true},
	"hyperfine":         {short: "wmMrpscSNn", long: []string{"--warmup", "--runs", "--min-runs", "--max-runs", "--export-json", "--export-markdown", "--shell"}, code: []string{"-p", "--prepare", "--setup", "--cleanup"}, mere: true, join: true},
	"chronic":           {mere: true},
	"ts":                {mere: false},
	"flock":             {short: "wE", long: []string{"--wait", "--timeout", "--conflict-exit-code"}, code: []string{"-c", "--command"}, skip: 1, mere: true},
	"script":            {short: "EIOBTmo", code: []string{"-c", "--command"}, skip: 1, mere: true},
	"sudo":              {short: "ugpCDhRrtTU", long: []string{"--user", "--group", "--prompt", "--chdir", "--host", "--role", "--type", "--chroot", "--close-from", "--other-user", "--command-timeout"}, dir: []string{"-D", "--chdir"}, assigns: true},
	"doas":              {short: "uC", assigns: true},
	"pkexec":            {long: []string{"--user"}},
	"run0":              {short: "uDg", long: []string{"--user", "--chdir", "--unit", "--property"}, dir: []string{"-D", "--chdir"}, assigns: true},
	"su":                {short: "sgGw", long: []string{"--shell", "--group", "--supp-group"}, code: []string{"-c", "--command"}, skip: 1},
	"runuser":           {short: "ugGs", long: []string{"--user", "--group", "--shell"}, code: []string{"-c", "--command"}},
	"gosu":              {skip: 1},
	"su-exec":           {skip: 1},
	"setpriv":           {long: []string{"--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set", "--ambient-caps"}},
	"capsh":             {},
	"chroot":            {long: []string{"--userspec", "--groups"}, skip: 1},
	"unshare":           {short: "SGRw", long: []string{"--setuid", "--setgid", "--root", "--wd", "--propagation"}, dir: []string{"-w", "--wd"}},
	"nsenter":           {short: "tSG", long: []string{"--target", "--setuid", "--setgid"}},
	"systemd-run":       {short: "HMpuEtd", long: []string{"--unit", "--property", "--setenv", "--slice", "--uid", "--gid"}},
	"bwrap":             {},
	"firejail":          {},
	"proxychains":       {short: "f", mere: true},
	"proxychains4":      {short: "f", mere: true},
	"torsocks":          {mere: true},
	"ssh":               {short: "bcDEeFIiJLlmOopQRSWw", code: nil, skip: 1, join: true},
	"npx":               {short: "pcw", long: []string{"--package", "--workspace"}, code: []string{"-c", "--call"}, soft: true},
	"bunx":              {short: "p", long: []string{"--package"}, soft: true},
	"uvx":               {short: "p", long: []string{"--from", "--with", "--python"}, soft: true},
	"nix-shell":         {short: "pAEI", code: []string{"--run", "--command"}, nothing: []string{"-p"}},
	"entr":              {mere: true},
	"reflex":            {short: "rgRG", mere: true},
	"watchexec":         {short: "ewif", long: []string{"--exts", "--watch", "--ignore"}, mere: true},
	"cpulimit":          {short: "lpe", mere: true},
	"sem":               {short: "j", mere: true, join: true},
	"dotenv":            {short: "fe", mere: true},
	"direnv":            {skip: 2},
	"xdg-terminal-exec": {},
	"proot":             {short: "rRSbmqwkiv", dir: []string{"-w"}},
	"sg":                {skip: 1, code: []string{"-c", "--command"}},
	"arch":              {short: "de", mere: true},
	"setarch":           {mere: true},
	"linux32":           {mere: true},
	"linux64":           {mere: true},
	"choom":             {short: "np", long: []string{"--adjust", "--pid"}, mere: true},
	"ifne":              {mere: true},
	"cgexec":            {short: "g", mere: true},
	"dtach":             {skip: 1, short: "Ee", soft: true},
	"systemd-inhibit":   {mere: true},
	"ssh-agent":         {short: "aEPt", nothing: []string{"-k"}, mere: true},
	"sshpass":           {short: "fdpP", mere: true},
}

// wrapperOf returns how a program that runs another one reads its arguments.
func wrapperOf(base string) (wrapper, bool) {
	if strings.HasPrefix(base, "ld-linux") || strings.HasPrefix(base, "ld-musl") || base == "ld.so" { // the loader of programs
		return wrapper{long: []string{"--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend"}, mere: true}, true
	}
	spec, ok := wrappers[base]
	return spec, ok
}

// runners lists subcommands that run the program which follows: package managers
// and tool managers.
var runners = map[string][]string{
	"poetry": {"run"}, "pipenv": {"run"}, "uv": {"run"}, "pdm": {"run"}, "hatch": {"run"}, "rye": {"run"}, "pipx": {"run"},
	"bundle": {"exec"}, "npm": {"exec", "x"}, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx"}, "mise": {"exec", "x"}, "asdf": {"exec"},
	"rbenv": {"exec"}, "pyenv": {"exec"}, "conda": {"run"}, "micromamba": {"run"}, "opam": {"exec"}, "cabal": {"exec"}, "stack": {"exec"}, "doppler": {"run"}, "op": {"run"}, "dotnet": {"exec"},
}

// wrapper judges a program that runs another one.
func (w *walker) wrapper(it *item, spec wrapper, in input) {
	if spec.mere {
		it.kind = kindWrapper
	}
	o := w.wrapperOptions(it, spec)
	n := *w
	if o.dir != nil {
		n.st = w.st.clone()
		n.changeDir([]token{*o.dir})
	}
	rest := it.args[min(o.at, len(it.args)):]
	for _, code := range o.code {
		if it.base == "env" && len(rest) > 0 { // which splits the text, and goes on with the words behind it
			code = joinCode(append([]token{code}, quoted(rest)...))
		}
		n.code(code, it.base, nil, true)
	}
	switch {
	case len(o.code) > 0 || o.nothing:
		w.a.add(*it)
		return
	case len(rest) == 0:
		if it.kind == kindWrapper && it.base != "exec" && it.base != "command" {
			it.kind = kindCall
		} else if it.kind == kindWrapper {
			it.kind = kindNeutral
		}
		w.a.add(*it)
		return
	}
	w.a.add(*it)
	n.soft = spec.soft
	if spec.join {
		n.joined(rest, it.base)
	} else {
		n.run(rest, it.base, in)
	}
	for _, at := range o.others {
		// The word may be the value of an option that is not known.
		if at < len(it.args) {
			n.soft = true
			n.run(it.args[at:], it.base, in)
		}
	}
}

// wrapperCall is what a wrapper's own arguments say.
type wrapperCall struct {
	at      int     // where the command begins
	others  []int   // other places where it may begin
	code    []token // shell code in options, which is run instead
	dir     *token  // the directory that the command runs in
	nothing bool    // no other program is run
}

// wrapperOptions steps over a wrapper's own arguments.
func (w *walker) wrapperOptions(it *item, spec wrapper) (o wrapperCall) {
	args, skip := it.args, spec.skip
	i := 0
	for i < len(args) {
		t := args[i]
		s := t.certain()
		switch {
		case t.known() && t.text == "--":
			i++
			if spec.assigns {
				i = w.stepAssigns(args, i)
			}
			o.at = i + skip
			return o
		case t.known() && s == "-" && spec.assigns:
			i++ // env's old spelling of -i
		case len(s) > 1 && s[0] == '-':
			name, value, next := w.wrapperOption(args, i, spec)
			switch {
			case slices.Contains(spec.writes, name):
				w.wrapperFile(value, it.base)
			case slices.Contains(spec.code, name):
				o.code = append(o.code, value)
			case slices.Contains(spec.dir, name):
				o.dir = &value
			case slices.Contains(spec.nothing, name):
				it.kind = kindNeutral
				o.at, o.nothing, o.others = len(args), true, nil
				return o
			}
			if next == i+1 && strings.HasPrefix(s, "--") && !strings.Contains(s, "=") && len(o.others) < 4 {
				o.others = append(o.others, i+2+skip)
			}
			i = next
		case spec.assigns && isAssignment(t):
			i = w.stepAssigns(args, i)
		case skip > 0:
			skip--
			i++
		default:
			o.at = i
			return o
		}
	}
	o.at = i
	return o
}

// wrapperFile judges where a wrapper writes what it has to say.
func (w *walker) wrapperFile(t token, base string) {
	if c := t.certain(); strings.HasPrefix(c, "|") || strings.HasPrefix(c, "!") {
		w.code(t.after(1), base, nil, true)
		return
	}
	w.write(t, ">")
}

// wrapperOption reads the option at args[i]: its name, its value where it takes
// one, and the index of the next word.
func (w *walker) wrapperOption(args []token, i int, spec wrapper) (name string, value token, next int) {
	t := args[i]
	s := t.certain()
	following := token{}
	if i+1 < len(args) {
		following = args[i+1]
	}
	if strings.HasPrefix(s, "--") {
		if n, v, ok := t.splitAssign(); ok {
			return spec.fullName(n), v, i + 1
		}
		if full := spec.fullName(s); slices.Contains(spec.long, full) || slices.Contains(spec.code, full) || slices.Contains(spec.dir, full) {
			return full, following, i + 2
		}
		return s, token{}, i + 1
	}
	for j := 1; j < len(s); j++ {
		opt := "-" + s[j:j+1]
		if slices.Contains(spec.nothing, opt) {
			return opt, token{}, i + 1
		}
		if strings.IndexByte(spec.short, s[j]) >= 0 || slices.Contains(spec.code, opt) {
			if j+1 < len(s) || t.dyn {
				return opt, t.after(min(j+1, len(s))), i + 1
			}
			return opt, following, i + 2
		}
	}
	return s, token{}, i + 1
}

// fullName completes the abbreviated name of a long option.
func (spec wrapper) fullName(name string) string {
	if len(name) < 4 {
		return name
	}
	for _, list := range [][]string{spec.code, spec.dir, spec.long} {
		for _, o := range list {
			if strings.HasPrefix(o, name) {
				return o
			}
		}
	}
	return name
}

func isAssignment(t token) bool {
	name, _, ok := t.splitAssign()
	return ok && isName(name)
}

// stepAssigns judges assignments in front of a wrapped command and returns the
// index of the word behind them.
func (w *walker) stepAssigns(args []token, i int) int {
	for i < len(args) && isAssignment(args[i]) {
		name, v, _ := args[i].splitAssign()
		w.checkAssign(name, v, false)
		i++
	}
	return i
}

// joined judges words that a wrapper joins into shell code. A word that is only
// known at run time may bring any code with it.
func (w *walker) joined(words []token, wrapper string) {
	for _, t := range words {
		if t.dyn && t.repl == "" && !t.operand {
			w.a.opaque(joinVia(w.via, wrapper), t.text, "a part of the shell code is only known at run time")
			break
		}
	}
	w.code(joinCode(words), wrapper, nil, true)
}

// joinCode joins words with blanks. Words that are not known become a variable of
// unknown value.
func joinCode(words []token) token {
	parts := make([]string, len(words))
	for i, t := range words {
		switch {
		case t.dyn && t.repl != "":
			parts[i] = strings.ReplaceAll(t.text, t.repl, "${_}")
		case t.dyn:
			parts[i] = t.head + "${_}"
		default:
			parts[i] = t.text
		}
	}
	return literal(strings.Join(parts, " "))
}

// quoted are words as shell code in which each is one word.
func quoted(words []token) []token {
	out := slices.Clone(words)
	for i, t := range out {
		if t.known() {
			out[i] = literal("'" + strings.ReplaceAll(t.text, "'", `'\''`) + "'")
		}
	}
	return out
}

// unknownTail judges what a program that nobody knows may be told to run: the words
// behind "--", and those that begin with a program that destroys or with a shell and its
// code. They count only where a rule speaks about them.
func (w *walker) unknownTail(it *item, in input) {
	n := *w
	n.soft, n.known = true, true
	for i, t := range it.args[:min(len(it.args), maxTail)] {
		rest := it.args[i:]
		switch {
		case !t.known() || len(rest) < 2:
		case t.text == "--":
			n.run(rest[1:], it.base, in)
			return
		case destroys(t.text), isShellName(t.text) && carriesCode(rest[1:]):
			n.run(rest, it.base, in)
			return
		}
	}
}

// knownPrograms are those of which more is known than their names: what they run, read
// and write, or at least what the default policy says about them.
var knownPrograms = sync.OnceValue(func() map[string]struct{} {
	all := map[string]struct{}{}
	for base := range pathModels() {
		all[base] = struct{}{}
	}
	for base := range optModels {
		all[base] = struct{}{}
	}
	for _, spec := range defaultSpecs {
		for _, name := range spec.Prog {
			all[name] = struct{}{}
		}
	}
	return all
})

func isKnown(it *item) bool {
	_, known := knownPrograms()[it.base]
	return known
}

// maxTail is among how many words of an unknown program a command is looked for.
const maxTail = 32

// destroys reports whether a word names a program that does little but harm where it is
// not meant.
func destroys(word string) bool {
	_, base, _ := programName(word)
	switch base {
	case "rm", "shred", "dd", "wipefs", "sudo", "doas":
		return true
	}
	return strings.HasPrefix(base, "mkfs.")
}

func isShellName(word string) bool {
	_, base, _ := programName(word)
	_, ok := shells[base]
	return ok
}

// carriesCode reports whether the arguments of a shell begin with code.
func carriesCode(args []token) bool {
	s := args[0].certain()
	return len(args) > 1 && len(s) > 1 && s[0] == '-' && s[1] != '-' && strings.HasSuffix(s, "c")
}

// runner judges "poetry run X" and its kind: the call itself, and X where a rule
// speaks about it.
func (w *walker) runner(it *item, in input) {
	w.a.add(*it)
	subs := runners[it.base]
	pos := it.positionals()
	if len(pos.plain) < 2 || !slices.Contains(subs, it.args[pos.plain[0]].text) {
		return
	}
	n := *w
	n.soft = true
	wrapper := it.base + " " + it.args[pos.plain[0]].text
	n.run(it.args[pos.plain[1]:], wrapper, in)
	for i := pos.plain[0] + 1; i < len(it.args) && i < pos.plain[0]+8; i++ {
		// The word after an option may be its value, so the next may be the command.
		if i > pos.plain[1] && len(it.args[i-2].text) > 1 && it.args[i-2].text[0] == '-' {
			n.run(it.args[i:], wrapper, in)
		}
	}
}

// xargs judges what xargs runs: its words come from the input.
func (w *walker) xargs(it *item, in input) {
	it.kind = kindWrapper
	spec := wrapper{short: "aEeIiLlnPsd", long: []string{"--arg-file", "--delimiter", "--eof", "--replace", "--max-lines", "--max-args", "--max-procs", "--max-chars", "--process-slot-var"}}
	repl := ""
	i := 0
	for i < len(it.args) {
		s := it.args[i].certain()
		if it.args[i].text == "--" {
			i++
			break
		}
		if len(s) < 2 || s[0] != '-' {
			break
		}
		// -i, -e and -l take a value only where it is attached.
		if s == "-i" || s == "-e" || s == "-l" || s == "--replace" {
			if s == "-i" || s == "--replace" {
				repl = "{}"
			}
			i++
			continue
		}
		name, value, next := w.wrapperOption(it.args, i, spec)
		if name == "-I" || name == "-i" || name == "--replace" {
			repl = value.text
		}
		i = next
	}
	w.a.add(*it)
	rest := it.args[min(i, len(it.args)):]
	if len(rest) == 0 {
		rest = []token{literal("echo")}
	}
	words := withInput(rest, repl)
	switch {
	case in.kind == inputPipe && in.found != nil:
		for i, t := range words {
			if t.operand || t.repl != "" && t.text == repl {
				words[i] = *in.found
			}
		}
	case in.kind == inputPipe && repl == "":
		for f := range strings.FieldsSeq(in.text) {
			words = append(words, literal(strings.Trim(f, `"'`)))
		}
	}
	w.run(words, it.base, input{kind: inputFile})
}

// withInput marks where words from elsewhere come in: in place of repl, or at the
// end.
func withInput(words []token, repl string) []token {
	out := slices.Clone(words)
	if repl == "" {
		more := unknown("...", true)
		more.operand = true
		return append(out, more)
	}
	for i, t := range out {
		if j := strings.Index(t.text, repl); j >= 0 && !t.dyn {
			out[i] = token{text: t.text, head: t.text[:j], dyn: true, repl: repl}
		}
	}
	return out
}

// parallel judges GNU parallel: the words in front of ":::" are shell code.
func (w *walker) parallel(it *item, in input) {
	it.kind = kindWrapper
	spec := wrapper{short: "jaICdEnNLlsSP", long: []string{"--jobs", "--arg-file", "--colsep", "--delimiter", "--max-args", "--sshlogin", "--joblog", "--results", "--timeout", "--tmpdir", "--workdir", "--delay", "--retries", "--tagstring"}}
	i := 0
	for i < len(it.args) {
		s := it.args[i].certain()
		if len(s) < 2 || s[0] != '-' {
			break
		}
		_, _, i = w.wrapperOption(it.args, i, spec)
	}
	w.a.add(*it)
	rest := it.args[min(i, len(it.args)):]
	n := 0
	for n < len(rest) && !strings.HasPrefix(rest[n].certain(), ":::") {
		n++
	}
	w.parallelCode(it, rest[:n], rest[n:])
}

// maxParallel bounds the literal values that parallel's code is judged with.
const maxParallel = 8

// parallelCode judges the code once for each literal value, or for an unknown one.
func (w *walker) parallelCode(it *item, words, values []token) {
	literals := []token{}
	for _, v := range values {
		if !v.known() || strings.HasPrefix(v.text, "::::") || len(values) > maxParallel {
			literals = nil
			break
		}
		if v.text != ":::" && v.text != ":::+" {
			literals = append(literals, v)
		}
	}
	if len(words) == 0 {
		if len(literals) == 0 {
			w.a.opaque(joinVia(w.via, it.base), it.display(), "the commands come from an unknown input")
		}
		for _, v := range literals {
			w.code(v, it.base, nil, true)
		}
		return
	}
	code := joinCode(words).text
	if !strings.Contains(code, "{}") {
		code += " {}"
	}
	if len(literals) == 0 {
		w.code(literal(strings.ReplaceAll(code, "{}", "${_}")), it.base, nil, true)
		return
	}
	for _, v := range literals {
		w.code(literal(strings.ReplaceAll(code, "{}", v.text)), it.base, nil, true)
	}
}
