package policy

import (
	"regexp"
	"strings"
	"sync"
)

// scanner finds places in code where it starts other programs or evaluates text.
type scanner struct {
	starts pattern // code that matches needs approval
	calls  pattern // a call whose first argument, a literal, is a command; nil: none
	ticks  bool    // text between backticks is a command
}

// pattern is a regular expression that is compiled when it is first needed: most
// decisions need none, and a program that starts should not wait for it.
type pattern func() *regexp.Regexp

func compiled(expr string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// The scanners look for the names that the languages use. They read no syntax: a
// name inside a string is found too, and code that hides the name is not.
var (
	pythonShells = &scanner{
		starts: compiled(`\bos\s*\.\s*(system|popen|exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?|startfile|fork)\b|\bimport\b[^\n;]*\bsubprocess\b|\bfrom\s+subprocess\b|\bsubprocess\s*\.|\bpty\s*\.\s*spawn|\bgetoutput\b|__import__|\bimportlib\b|\bctypes\b|\bcreate_subprocess_|(^|[^.\w])(eval|exec|compile)\s*\(|\bfrom\s+os\s+import\b[^\n;]*\b(system|popen|exec|spawn|fork|\*)|\bgetattr\s*\(\s*os\b|\brmtree\s*\(\s*['"](/|~|\.\.)`),
		calls:  compiled(`\b(system|popen|run|call|check_call|check_output|Popen|getoutput|getstatusoutput|execvp?|spawn)\s*\(\s*`),
	}
	nodeShells = &scanner{
		starts: compiled(`child_process|\b(exec|spawn|fork)(File)?Sync\b|\bexecFile\b|process\s*\.\s*binding|\bDeno\s*\.\s*(run|Command)\b|\bBun\s*\.\s*(spawn|\$)|(^|[^.\w])eval\s*\(|\bnew\s+Function\b|\bexeca\b|\bshelljs\b|\bzx\b|\b(rm|rmdir|remove)(Sync)?\s*\(\s*(['"` + "`" + `](/|~|\.\.)|process\.env\.HOME|os\.homedir)`),
		calls:  compiled(`\b(exec|execSync|spawn|spawnSync|execFile|execFileSync|fork)\s*\(\s*`),
	}
	perlShells = &scanner{
		starts: compiled("\\b(system|exec|spawn|popen2?e?|syscall)\\b\\s*[\\s(\"'$@\\[{q]|\\b(fork|eval|instance_eval|class_eval)\\b|`|\\bqx\\b|%x\\W|\\bOpen3\\b|\\bIO\\s*[.:]|\\bPTY\\b|\\bopen\\b[^;]*\\||\\bdo\\s+['\"]|s/[^/]*/[^/]*/[gimsx]*ee|\\b(rmtree|remove_tree|rm_rf|rm_r|remove_entry_secure)\\b\\s*\\(?\\s*['\"](/|~|\\.\\.)"),
		calls:  compiled(`\b(system|exec|spawn|popen|popen2e?|capture2e?|capture3)\s*\(?\s*`),
		ticks:  true,
	}
	phpShells = &scanner{
		starts: compiled("\\b(shell_exec|exec|system|passthru|popen|proc_open|pcntl_exec|eval|assert|create_function)\\s*\\(|`"),
		calls:  compiled(`\b(shell_exec|exec|system|passthru|popen|proc_open)\s*\(\s*`),
		ticks:  true,
	}
	luaShells = &scanner{
		starts: compiled(`\bos\s*\.\s*execute\b|\bio\s*\.\s*popen\b|\bload(string)?\s*\(`),
		calls:  compiled(`\b(execute|popen)\s*\(?\s*`),
	}
	rShells = &scanner{
		starts: compiled(`\b(system2?|shell|pipe|eval)\s*\(`),
		calls:  compiled(`\b(system2?|shell|pipe)\s*\(\s*`),
	}
	appleShells = &scanner{
		starts: compiled(`(?i)do\s+shell\s+script|\btell\s+app|run\s+script`),
		calls:  compiled(`(?i)do\s+shell\s+script\s*`),
	}
	anyShells = &scanner{
		starts: compiled("\\b(system|exec|execute|shell|popen|spawn|process|Runtime|shell-command|call-process|start-process|run)\\b|`"),
		calls:  compiled(`\b(system|exec|execute|shell|popen|shell-command|run)\s*\(?\s*`),
		ticks:  true,
	}
	editorShells = &scanner{
		starts: compiled(`(^|[:|]\s*)(silent\s+|sil\s+)?[%\d,.$]*(r\s*)?!|\bsystem(list)?\s*\(|\bshell\b|\bterm(inal)?\b|\bjobstart\b|\bos\.execute\b|\bpy(thon)?3?\b|\bpipe\b`),
		calls:  compiled(`\b(system|systemlist|execute)\s*\(\s*|\bshell\s+`),
	}
	sqlShells = &scanner{
		starts: compiled(`(^|\n)\s*\.(shell|system|load|excel|once\s*\||output\s*\|)|\\!|\bCOPY\b[^;]*\bPROGRAM\b|\\(o|g|w|copy)\s[^\n]*\|`),
	}
	awkShells = &scanner{
		starts: compiled(`\bsystem\s*\(|\|&?\s*getline\b|\|\s*&?\s*"|"\s*\|&?\s*getline|@load\b|@include\b|print[^;}\n]*[^|]\|[^|]`),
		calls:  compiled(`\bsystem\s*\(\s*|[^|]\|&?\s*`),
	}
)

// awkFile finds a literal file name that an awk program prints into.
var awkFile = compiled(`\bprintf?\b[^;}\n]*>\s*"([^"]+)"`)

// maxScans bounds the literals that are judged in one piece of code.
const maxScans = 16

// scanCode notes that code starts programs, and judges those that it names.
func (w *walker) scanCode(base string, s *scanner, code string) {
	if s == awkShells && strings.Contains(code, ">") {
		for _, m := range awkFile().FindAllStringSubmatch(code, maxScans) {
			w.write(literal(m[1]), ">")
		}
	}
	w.codeFiles(code)
	if !s.starts().MatchString(code) {
		return
	}
	via := joinVia(w.via, base)
	w.a.floor(RequireApproval, "code-starts-programs", via, code, "the code looks as if it starts other programs or evaluates text")
	if s.calls != nil {
		for _, m := range s.calls().FindAllStringIndex(code, maxScans) {
			w.literalCommand(base, code[m[1]:])
		}
	}
	if s == awkShells {
		w.awkPipes(base, code)
	}
	if s.ticks {
		parts := strings.Split(code, "`")
		for i := 1; i+1 < len(parts) && i < 2*maxScans; i += 2 {
			w.softCode(base, parts[i])
		}
	}
}

// codeWrites finds calls that remove or write a file whose absolute name stands in them:
// the ways of Python, JavaScript, Perl, Ruby and PHP.
var codeWrites = compiled(`(?:\b(?:os|shutil|fs|fsp|promises|Deno|Bun|File|FileUtils|Dir|IO)\s*\.\s*(?:unlink|remove|removedirs|rmdir|rename|replace|truncate|chmod|chown|lchown|symlink|delete|write|binwrite|mkdir|makedirs|rm|rm_f|rm_r|rm_rf|rmtree|writeFile|appendFile|writeTextFile)\s*\(?\s*|\b(?:unlink|file_put_contents|(?:rm|unlink|rmdir|writeFile|appendFile|writeTextFile|truncate|rename|chmod|chown)Sync)\s*\(?\s*|\bPath\s*\(\s*r?|\bopen\s*\(?\s*(?:my\s+)?[$\w]*\s*,?\s*(?:['"]\s*>>?\s*['"]\s*,\s*)?)['"]\s*(>*)\s*((?:/|~)[^'"\n]*)['"]([^;\n]{0,40})`)

// writingMode finds what makes the opening of a file, or a path, one that is written.
var writingMode = compiled(`^\s*,\s*(?:mode\s*=\s*)?['"][^'"]*[wax+]|^\s*\)\s*\.\s*(?:unlink|write_text|write_bytes|rmdir|rename|replace|touch|mkdir|chmod|open\([^)]*['"][wax])`)

// codeFiles judges the absolute names that code removes or writes.
func (w *walker) codeFiles(code string) {
	if !strings.Contains(code, "'/") && !strings.Contains(code, "\"/") && !strings.Contains(code, "'~") && !strings.Contains(code, "\"~") && !strings.Contains(code, ">/") {
		return
	}
	for _, m := range codeWrites().FindAllStringSubmatchIndex(code, maxScans) {
		call, mark, name, rest := code[m[0]:m[2]], code[m[2]:m[3]], code[m[4]:m[5]], code[m[6]:m[7]]
		opens := strings.HasPrefix(call, "open") || strings.HasPrefix(call, "Path")
		if opens && mark == "" && !strings.Contains(call, ">") && !writingMode().MatchString(rest) {
			continue
		}
		w.write(literal(name), ">")
	}
}

// awkPipes judges the literal in front of a pipe into getline.
func (w *walker) awkPipes(base, code string) {
	for i := range strings.FieldsFuncSeq(code, func(r rune) bool { return r == '|' }) {
		i = strings.TrimRight(i, " \t")
		if !strings.HasSuffix(i, `"`) {
			continue
		}
		if j := strings.LastIndexByte(i[:len(i)-1], '"'); j >= 0 {
			w.softCode(base, i[j+1:len(i)-1])
		}
	}
}

// literalCommand judges a string or a list of strings at the start of code.
func (w *walker) literalCommand(base, code string) {
	if strings.HasPrefix(code, "[") {
		var toks []token
		code = code[1:]
		for len(toks) < 64 {
			s, rest, ok := quotedLiteral(strings.TrimLeft(code, " \t\n,"))
			if !ok {
				break
			}
			toks, code = append(toks, literal(s)), rest
		}
		if len(toks) > 0 {
			n := *w
			n.soft = true
			n.run(toks, base, input{})
		}
		return
	}
	s, rest, ok := quotedLiteral(code)
	if !ok {
		return
	}
	// A call may give the arguments one by one: system("rm", "-rf", "/").
	toks := []token{literal(s)}
	for len(toks) < 64 {
		rest = strings.TrimLeft(rest, " \t\n")
		if !strings.HasPrefix(rest, ",") {
			break
		}
		if s, rest, ok = quotedLiteral(strings.TrimLeft(rest[1:], " \t\n[")); !ok {
			break
		}
		toks = append(toks, literal(s))
	}
	if len(toks) > 1 {
		n := *w
		n.soft = true
		n.run(toks, base, input{})
	}
	w.softCode(base, toks[0].text)
}

// softCode judges text that is probably shell code: what it surely runs counts,
// what nothing is known of does not, because the code around it was noted.
func (w *walker) softCode(base, code string) {
	n := *w
	n.soft = true
	n.code(literal(code), base, nil, true)
}

// quotedLiteral reads a string literal at the start of code.
func quotedLiteral(code string) (s, rest string, ok bool) {
	code = strings.TrimLeft(code, " \t")
	for len(code) > 1 && strings.IndexByte("rbfuRBFU", code[0]) >= 0 && (code[1] == '"' || code[1] == '\'') {
		code = code[1:]
	}
	if code == "" || strings.IndexByte("\"'`", code[0]) < 0 {
		return "", code, false
	}
	q := code[0]
	var b strings.Builder
	for i := 1; i < len(code); i++ {
		switch {
		case code[i] == '\\' && i+1 < len(code):
			i++
			b.WriteString(ansiC(code[i-1 : i+1]))
		case code[i] == q:
			return b.String(), code[i+1:], true
		default:
			b.WriteByte(code[i])
		}
	}
	return "", code, false
}
