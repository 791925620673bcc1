package policy

import (
	"strings"
	"testing"
	"time"
)

// hardCommands are the command lines that cost most to decide.
func hardCommands() map[string]string {
	return map[string]string{
		"pipe2000":   strings.Repeat("a | ", 1999) + "a",
		"pipe":       strings.Repeat("a | ", maxSegments-1) + "a",
		"list":       strings.Repeat("ls -la; ", maxSegments-1) + "ls",
		"git":        strings.Repeat("git -C x status\n", maxSegments-1),
		"rm":         strings.Repeat("rm -rf a/b /tmp/x\n", maxSegments-1),
		"curl":       strings.Repeat("curl -o a/b -d @x h\n", maxSegments-1),
		"tar":        strings.Repeat("tar -xf a -C /x/y\n", maxSegments-1),
		"redirects":  strings.Repeat("a > /x/b\n", maxSegments/2),
		"rmMany":     "rm " + strings.Repeat("dir/file ", maxWords-2),
		"rmOutside":  "rm " + strings.Repeat("/x/file ", maxWords-2),
		"cpMany":     "cp " + strings.Repeat("../../file ", maxWords-2),
		"curlMany":   "curl" + strings.Repeat(" -o /x/f", maxWords/2-2),
		"gitMany":    "git" + strings.Repeat(" -c a=b", maxWords/2-2) + " status",
		"findMany":   "find" + strings.Repeat(" -exec a {} ;", maxSegments-2),
		"envMany":    "env " + strings.Repeat("A=1 ", maxWords-3) + "ls",
		"bare":       "echo " + strings.Repeat("a", maxBareWord-1),
		"list20000":  strings.Repeat("a;", 20000),
		"words":      "echo " + strings.Repeat("a ", 32000),
		"words4000":  "rm " + strings.Repeat("file.txt ", 4000),
		"oneWord":    "echo " + strings.Repeat("a", 65000),
		"quoted":     "echo '" + strings.Repeat("a", 65000) + "'",
		"heredoc":    "cat <<'E' > f\n" + strings.Repeat("hello | world; foo && bar\n", 2400) + "E\n",
		"parens":     strings.Repeat("(", 65000),
		"closed":     strings.Repeat("(", 32000) + strings.Repeat(")", 32000),
		"subst":      "echo " + strings.Repeat("$(a ", 8000) + strings.Repeat(")", 8000),
		"substDq":    "echo " + strings.Repeat(`"$(a `, 6000) + strings.Repeat(`)"`, 6000),
		"arith":      "echo $((" + strings.Repeat("(", 30000) + "1" + strings.Repeat(")", 30000) + "))",
		"vars":       "echo " + strings.Repeat("$a", 32000),
		"varsDq":     `echo "` + strings.Repeat("$a", 32000) + `"`,
		"if":         strings.Repeat("if ", 20000),
		"nots":       strings.Repeat("! ", 30000) + "ls",
		"env":        strings.Repeat("env ", 4000) + "ls",
		"sudo":       strings.Repeat("sudo ", 13000) + "ls",
		"shc":        nestShell("ls", 8),
		"braces":     "echo " + strings.Repeat("{a,b}", 5000),
		"braces2":    strings.Repeat("echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b};", 500),
		"backticks":  "echo " + strings.Repeat("`a` ", 15000),
		"assigns":    strings.Repeat("a=b ", 16000) + "ls",
		"assignsSub": strings.Repeat("(a=b; ls $a);", 500),
		"case":       strings.Repeat("case x in x) ", 5000),
		"function":   strings.Repeat("f() { ", 8000),
		"test":       "[[ " + strings.Repeat("! ", 30000) + "x ]]",
		"testParens": "[[ " + strings.Repeat("( ", 30000) + "x ]]",
		"and":        strings.Repeat("a && ", 13000) + "a",
		"globs":      "echo " + strings.Repeat("*", 65000),
		"escapes":    "echo " + strings.Repeat(`\a`, 32000),
		"python":     "python3 -c '" + strings.Repeat("os.system(\"ls\"); ", 3700) + "'",
		"sed":        "sed '" + strings.Repeat("s/a/b/;", 9000) + "' f",
		"awk":        "awk '" + strings.Repeat("{ print | \"x\" }", 4000) + "'",
		"eval":       "eval " + strings.Repeat("eval ", 12000),
		"forLoops":   strings.Repeat("for i in a b c; do ", 1500) + "ls" + strings.Repeat("; done", 1500),
		"dollarPar":  "echo \"" + strings.Repeat("$(", 30000),
		"comment":    strings.Repeat("#\n", 30000),
		"newlines":   strings.Repeat("\n", 60000),
		"hereMany":   strings.Repeat("cat <<E\nx\nE\n", 5000),
		"params":     "echo " + strings.Repeat("${a:-", 10000),
	}
}

func nestShell(s string, n int) string {
	for range n {
		s = "sh -c '" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// maxDecision is what a decision may take at most; the race detector and a busy
// machine get a wide margin on top of the figure of a millisecond.
const maxDecision = 100 * time.Millisecond

// TestHardCommandsAreQuick holds that no command line makes a decision slow. The
// best of several runs counts, so that a busy machine does not fail it.
func TestHardCommandsAreQuick(t *testing.T) {
	p := Default()
	for name, s := range hardCommands() {
		best := time.Hour
		for range 5 {
			start := time.Now()
			p.Decide(Command{Shell: s})
			best = min(best, time.Since(start))
		}
		if best > maxDecision {
			t.Errorf("%s: %v", name, best)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	p := Default()
	for _, s := range []string{"ls", "git -C sub --no-pager push origin main", "sudo env A=1 rm -fr ~", "for f in *.go; do gofmt -l \"$f\" | head -1 >> out; done"} {
		b.Run(s, func(b *testing.B) {
			for b.Loop() {
				p.Decide(Command{Shell: s})
			}
		})
	}
	b.Run("argv", func(b *testing.B) {
		c := Command{Argv: []string{"git", "status", "--porcelain"}}
		for b.Loop() {
			p.Decide(c)
		}
	})
}

func BenchmarkHard(b *testing.B) {
	p := Default()
	for name, s := range hardCommands() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.Decide(Command{Shell: s})
			}
		})
	}
}
