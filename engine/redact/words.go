package redact

import "strings"

// word is one word of a command line.
type word struct {
	text       string  // without quotes
	in         *finder // the text that it is in
	begin, end int     // what is to be taken out, if it is a secret
}

// hide takes the word out from the byte skip on, unless it is a reference.
func (w word) hide(skip int) {
	if from := w.begin + skip; from < w.end && !isReference(w.in.text[from:w.end]) {
		w.in.add(from, w.end)
	}
}

// commands looks at the simple commands of a shell script. It splits them well enough
// for flags and their values: quotes count, expansions do not.
func (f *finder) commands() {
	var now []word
	s := f.text
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case ' ', '\t', '\r':
			i++
		case '\n', ';', '|', '&', '(', ')', '{', '}':
			command(now)
			now = now[:0]
			i++
		default:
			w := f.nextWord(i)
			now = append(now, w)
			i = w.end
			if i < len(s) && (s[i] == '"' || s[i] == '\'') {
				i++ // what closes a word that is quoted whole
			}
		}
	}
	command(now)
}

// nextWord is the word that begins at i.
func (f *finder) nextWord(i int) word {
	s := f.text
	if q := s[i]; q == '"' || q == '\'' {
		to := i + 1
		for to < len(s) && s[to] != q {
			if s[to] == '\\' && q == '"' && to+1 < len(s) {
				to++
			}
			to++
		}
		to = min(to, len(s))
		return word{text: s[i+1 : to], in: f, begin: i + 1, end: to}
	}
	to := i
	for to < len(s) && strings.IndexByte(" \t\r\n;|&()", s[to]) < 0 {
		switch q := s[to]; {
		case q == '\\' && to+1 < len(s):
			to++
		case q == '"' || q == '\'':
			if n := strings.IndexByte(s[to+1:], q); n >= 0 {
				to += n + 1
			}
		}
		to++
	}
	to = min(to, len(s))
	return word{text: s[i:to], in: f, begin: i, end: to}
}

// passwords are the flags that take a password with one program only.
var passwords = map[string][]progFlag{
	"sshpass": {{"-p", apart, ""}, {"-p", attached, ""}}, "mysql": {{"-p", attached, ""}}, "mysqldump": {{"-p", attached, ""}},
	"mysqladmin": {{"-p", attached, ""}}, "mariadb": {{"-p", attached, ""}}, "docker": {{"-p", apart, "login"}}, "podman": {{"-p", apart, "login"}},
	"helm": {{"-p", apart, "login"}}, "curl": {{"-u", user, ""}, {"--user", user, ""}, {"--proxy-user", user, ""}, {"-U", user, ""}}, "redis-cli": {{"-a", apart, ""}},
	"zip": {{"-P", apart, ""}}, "unzip": {{"-P", apart, ""}}, "7z": {{"-p", attached, ""}}, "ldapsearch": {{"-w", apart, ""}}, "ldapmodify": {{"-w", apart, ""}},
	"openssl": {{"-passin", source, ""}, {"-passout", source, ""}, {"-pass", source, ""}, {"-k", apart, "enc"}}, "az": {{"-p", apart, "login"}},
}

// Bounds for commands that are there to take long: how many flags are looked for, and
// among how many words one that comes before a flag.
const (
	maxFlags  = 8
	maxBefore = 32
)

// How a flag takes its password.
const (
	apart    = iota // as the next word
	attached        // as the rest of its own
	user            // behind a user and a colon, as the next word
	source          // behind "pass:", as the next word
)

type progFlag struct {
	flag string
	how  int
	with string // a word that must come before it
}

// command looks for flags whose value is a secret, in one command.
func command(words []word) {
	var flags []progFlag
	for i, w := range words {
		if !strings.HasPrefix(w.text, "-") {
			if w.text != "" && len(w.text) < maxName && len(flags) < maxFlags {
				flags = append(flags, passwords[w.text[strings.LastIndexByte(w.text, '/')+1:]]...)
			}
			continue
		}
		special := false
		for _, f := range flags {
			if f.with == "" || has(words[:min(i, maxBefore)], f.with) {
				f.apply(words, i)
				special = special || f.flag == w.text
			}
		}
		if !special && len(w.text) > 2 && len(w.text) < maxName && strings.IndexByte(w.text, '=') < 0 && isSecret(plain(w.text)) {
			next(words, i)
		}
	}
}

// apply takes out the password of the flag if the word i is it.
func (f progFlag) apply(words []word, i int) {
	w := words[i]
	switch {
	case f.how == attached:
		if strings.HasPrefix(w.text, f.flag) && len(w.text) > len(f.flag) && w.end-w.begin == len(w.text) {
			w.hide(len(f.flag))
		}
	case w.text != f.flag || i+1 == len(words):
	case f.how == user:
		if colon := strings.IndexByte(words[i+1].text, ':'); colon >= 0 {
			words[i+1].hide(colon + 1)
		}
	case f.how == source:
		if strings.HasPrefix(words[i+1].text, "pass:") {
			words[i+1].hide(len("pass:"))
		}
	default:
		next(words, i)
	}
}

// next takes out the word behind i, unless it is a flag.
func next(words []word, i int) {
	if i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "-") {
		words[i+1].hide(0)
	}
}

func has(words []word, text string) bool {
	for _, w := range words {
		if w.text == text {
			return true
		}
	}
	return false
}
