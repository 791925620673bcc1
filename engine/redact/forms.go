package redact

import "strings"

// form is a kind of token that is told by how it begins.
type form struct {
	prefix string
	length int // of what follows, at least
	needs  need
	parts  int // how many more follow, each behind a dot
}

// need is what else a token must have, so that no word is taken for one.
type need int

const (
	nothing need = iota
	digit        // at least one, as names in lower case seldom have
	upper        // capital letters and digits only
)

// forms are the known tokens that begin with c.
func forms(c byte) []form {
	switch c {
	case 'g':
		return gForms
	case 's':
		return sForms
	case 'x':
		return xForms
	case 'A':
		return aForms
	case 'r', 'n', 'p', 'h', 'd', 'y', 'S', 'e':
		return otherForms
	}
	return nil
}

var (
	gForms = []form{{"ghp_", 20, nothing, 0}, {"gho_", 20, nothing, 0}, {"ghu_", 20, nothing, 0}, {"ghs_", 20, nothing, 0}, {"ghr_", 20, nothing, 0},
		{"github_pat_", 20, nothing, 0}, {"glpat-", 16, nothing, 0}, {"glrt-", 16, nothing, 0}}
	sForms = []form{{"sk-", 20, digit, 0}, {"sk_live_", 16, nothing, 0}, {"sk_test_", 16, nothing, 0}, {"shpat_", 20, nothing, 0}, {"sntrys_", 20, nothing, 0}}
	xForms = []form{{"xoxb-", 10, digit, 0}, {"xoxp-", 10, digit, 0}, {"xoxa-", 10, digit, 0}, {"xoxr-", 10, digit, 0}, {"xoxs-", 10, digit, 0},
		{"xoxe-", 10, digit, 0}, {"xapp-", 10, digit, 0}}
	aForms     = []form{{"AKIA", 16, upper, 0}, {"ASIA", 16, upper, 0}, {"AIza", 30, nothing, 0}, {"AGE-SECRET-KEY-", 20, nothing, 0}}
	otherForms = []form{{"rk_live_", 16, nothing, 0}, {"npm_", 30, nothing, 0}, {"pypi-", 30, digit, 0}, {"hf_", 20, nothing, 0}, {"hvs.", 20, nothing, 0},
		{"dop_v1_", 30, nothing, 0}, {"dckr_pat_", 20, nothing, 0}, {"ya29.", 20, nothing, 0}, {"SG.", 16, nothing, 1}, {"eyJ", 8, nothing, 2}}
)

// scan looks for tokens, and for names that are followed by a secret.
func (f *finder) scan() {
	s := f.text
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '=' || c == ':':
			if c == ':' && strings.HasPrefix(s[i:], "://") {
				f.url(i + 3)
			}
			i = max(i, f.named(i)-1)
		case isWord(c) && (i == 0 || !isWord(s[i-1])):
			if to := f.tokenEnd(i); to > i {
				f.add(i, to)
				i = to - 1
			}
		}
	}
}

// tokenEnd is where the token ends that begins at i; i if there is none.
func (f *finder) tokenEnd(i int) int {
	for _, k := range forms(f.text[i]) {
		if !strings.HasPrefix(f.text[i:], k.prefix) {
			continue
		}
		from := i + len(k.prefix)
		to := f.run(0, from)
		if to-from < k.length || !k.needs.met(f.text[from:min(to, from+maxName)]) {
			continue
		}
		for part := 1; part <= k.parts && to > i; part++ {
			next := to + 1
			if to == len(f.text) || f.text[to] != '.' {
				to = i
			} else if to = f.run(part, next); to == next {
				to = i
			}
		}
		if to > i {
			return to
		}
	}
	return i
}

func (n need) met(text string) bool {
	switch n {
	case digit:
		return strings.ContainsAny(text, "0123456789")
	case upper:
		return strings.IndexFunc(text, func(c rune) bool { return !(c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') }) < 0
	}
	return true
}

// run is where the letters, digits, '_' and '-' end that are at i. What was found
// out last for the same part is remembered, so that no text takes long which has the
// beginnings of many tokens in one run.
func (f *finder) run(part, i int) int {
	if last := f.runs[part]; last.from <= i && i < last.to {
		return last.to
	}
	to := i
	for to < len(f.text) && (isWord(f.text[to]) || f.text[to] == '-') {
		to++
	}
	f.runs[part] = span{i, to}
	return to
}

// keys looks for private keys.
func (f *finder) keys() {
	const begin, end = "-----BEGIN ", "-----END "
	for at := 0; ; {
		i := strings.Index(f.text[at:], begin)
		if i < 0 {
			return
		}
		from := at + i
		at = from + len(begin)
		title := f.text[at:min(at+40, len(f.text))]
		if !strings.Contains(title, "PRIVATE KEY") {
			continue
		}
		to := len(f.text) // cut off: all that is left belongs to it
		if j := strings.Index(f.text[at:], end); j >= 0 {
			to = at + j + len(end)
			if k := strings.Index(f.text[to:], "-----"); k >= 0 {
				to += k + len("-----")
			}
		}
		f.add(from, to)
		at = to
	}
}

// maxUserinfo is how far a password in a URL is looked for, in bytes.
const maxUserinfo = 1024

// url looks for a password in a URL whose host, or user, begins at i.
func (f *finder) url(i int) {
	s := f.text[i:min(i+maxUserinfo, len(f.text))]
	colon := -1
	for j := range len(s) {
		switch s[j] {
		case '@':
			if colon >= 0 && !isReference(s[colon+1:j]) {
				f.add(i+colon+1, i+j)
			}
			return
		case ':':
			if colon < 0 {
				colon = j
			}
		case '/', '?', '#', ' ', '\t', '\n', '"', '\'', '`', '<', '>':
			return
		}
	}
}

// headers are the names of HTTP headers that identify somebody.
var headers = map[string]bool{
	"authorization": true, "proxyauthorization": true, "xapikey": true, "apikey": true, "xauthtoken": true, "privatetoken": true,
	"jobtoken": true, "xvaulttoken": true, "xgithubtoken": true, "xaccesstoken": true, "cookie": true, "setcookie": true,
}

// schemes are the words between the name of a header and the secret.
var schemes = []string{"bearer ", "basic ", "token ", "digest ", "apikey ", "negotiate "}

// named looks for a secret behind the name that ends at i, where '=' or ':' stands,
// and returns where it ends; i if there is none.
func (f *finder) named(i int) int {
	s := f.text
	end := i
	quoted := end > 0 && (s[end-1] == '"' || s[end-1] == '\'')
	if quoted {
		end--
	}
	from := end
	for from > 0 && (isWord(s[from-1]) || s[from-1] == '-' || s[from-1] == '.') && end-from < maxName {
		from--
	}
	name := plain(s[from:end])
	switch {
	case name == "":
	case s[i] == ':' && headers[name]:
		return f.header(i + 1)
	case isSecret(name) && (s[i] == '=' || quoted):
		return f.value(i+1, s[i] == ':')
	}
	return i
}

// maxName is the longest name that is looked at, in bytes.
const maxName = 100

// header takes out the value of a header, up to the end of the line or the quotes,
// and returns where it ends.
func (f *finder) header(i int) int {
	s := f.text
	for i < len(s) && s[i] == ' ' {
		i++
	}
	for _, scheme := range schemes {
		if len(s)-i > len(scheme) && strings.EqualFold(s[i:i+len(scheme)], scheme) {
			i += len(scheme)
			break
		}
	}
	if isReference(s[i:]) {
		return i
	}
	to := i
	for to < len(s) && s[to] != '"' && s[to] != '\'' && s[to] != '\n' && s[to] != '\r' {
		to++
	}
	f.add(i, to)
	return to
}

// value takes out a value that begins at i, in quotes or up to the end of the word,
// and returns where it ends.
func (f *finder) value(i int, spaced bool) int {
	s := f.text
	for spaced && i < len(s) && s[i] == ' ' {
		i++
	}
	quote := byte(0)
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		quote = s[i]
		i++
	}
	if i == len(s) || isReference(s[i:]) {
		return i
	}
	to := i
	for to < len(s) && s[to] != quote && (quote != 0 || !endsValue(s[to])) {
		if s[to] == '\\' && quote == '"' {
			to++
		}
		to++
	}
	to = min(to, len(s))
	f.add(i, to)
	return to
}

func endsValue(c byte) bool { return strings.IndexByte(" \t\r\n;|&()<>\"'`,", c) >= 0 }

// isReference reports whether a value only says where the secret is.
func isReference(v string) bool { return strings.HasPrefix(v, "$") || strings.HasPrefix(v, "`") }

// secretWords are what the names of secrets end in, in lower case and without
// separators.
var secretWords = []string{
	"password", "passwd", "passphrase", "passcode", "mysqlpwd", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey",
	"signingkey", "encryptionkey", "authkey", "accountkey", "sharedkey", "bearer", "sessionkey", "pgpassword", "dbpass", "authpass",
}

// isSecret reports whether a plain name is that of a secret.
func isSecret(name string) bool {
	for _, w := range secretWords {
		if strings.HasSuffix(name, w) {
			return true
		}
	}
	return name == "pass"
}

// plain is a name in lower case without separators and the dashes of a flag.
func plain(name string) string {
	if !strings.ContainsAny(name, "-_.") {
		return strings.ToLower(name)
	}
	return strings.ToLower(separators.Replace(name))
}

var separators = strings.NewReplacer("-", "", "_", "", ".", "")

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
