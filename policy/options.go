package policy

import (
	"math"
	"slices"
	"strings"
)

// optModel says how a program reads its options, as far as rules need it.
type optModel struct {
	short    string   // letters of the short options that take a value
	long     []string // long options that take a value in the next word
	flags    []string // options in front of the subcommand that take none
	harmless string   // of these and the valued ones: those that change neither what runs nor how, space-separated
	single   bool     // long options begin with one dash, so letters do not cluster
	sub      bool     // the first word is a subcommand
}

// noModel serves programs that are not listed.
var noModel = &optModel{}

// modelOf returns the model of a program by its lower-case name.
func modelOf(base string) *optModel {
	if m, ok := optModels[base]; ok {
		return m
	}
	return noModel
}

// optModels lists well-known programs. What is missing here is read in the common
// way: "-abc" is a cluster, and a word after an unknown option may be its value.
var optModels = map[string]*optModel{
	"git": {short: "CcmF", long: []string{"--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source",
		"--message", "--file", "--author", "--date", "--reuse-message", "--template", "--onto", "--format", "--since", "--until", "--grep", "--depth", "--branch", "--exec", "--strategy"},
		flags:    []string{"--no-pager", "-p", "--paginate", "-P", "--bare", "--no-replace-objects", "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs", "--no-optional-locks", "--no-lazy-fetch", "--no-advice"},
		harmless: "-C --no-pager -P --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-optional-locks --no-advice", sub: true},
	"npm":       {short: "Cw", long: []string{"--prefix", "--workspace", "--registry", "--loglevel", "--cache", "--userconfig", "--tag", "--otp", "--access"}, flags: []string{"-g", "--global", "-s", "--silent", "-q", "--quiet", "--verbose", "--json"}, harmless: "-s --silent -q --quiet --verbose --json -C --prefix", sub: true},
	"pnpm":      {short: "CF", long: []string{"--dir", "--filter", "--prefix", "--loglevel", "--registry", "--tag"}, flags: []string{"-w", "-s", "--silent", "-r", "--recursive"}, sub: true},
	"yarn":      {long: []string{"--cwd", "--registry", "--tag"}, flags: []string{"--silent", "-s"}, sub: true},
	"bun":       {long: []string{"--cwd", "--filter", "--tag"}, sub: true},
	"cargo":     {short: "CZpj", long: []string{"--config", "--color", "--manifest-path", "--target-dir", "--package", "--features", "--target", "--index", "--registry", "--token"}, flags: []string{"-q", "--quiet", "-v", "--verbose", "--locked", "--offline", "--frozen"}, harmless: "-q --quiet -v --verbose --locked --offline --frozen --color --manifest-path", sub: true},
	"docker":    {short: "HlcvpeufwnmhtP", long: []string{"--host", "--context", "--config", "--log-level", "--tlscacert", "--tlscert", "--tlskey", "--file", "--project-name", "--profile", "--name", "--volume", "--env", "--network", "--user", "--workdir", "--mount", "--entrypoint", "--pid", "--tag", "--platform", "--publish", "--env-file"}, flags: []string{"-D", "--debug", "--tls", "--tlsverify"}, sub: true},
	"podman":    {short: "Hcvpeufwnmht", long: []string{"--connection", "--log-level", "--root", "--runroot", "--url", "--name", "--volume", "--env", "--network", "--user", "--workdir", "--mount", "--entrypoint", "--tag"}, flags: []string{"-r", "--remote"}, sub: true},
	"kubectl":   {short: "nsfloc", long: []string{"--namespace", "--context", "--cluster", "--kubeconfig", "--user", "--server", "--token", "--as", "--as-group", "--certificate-authority", "--request-timeout", "--filename", "--selector", "--output", "--cache-dir"}, flags: []string{"--insecure-skip-tls-verify"}, sub: true},
	"helm":      {short: "nf", long: []string{"--namespace", "--kube-context", "--kubeconfig", "--values", "--set", "--version"}, flags: []string{"--debug"}, sub: true},
	"systemctl": {short: "HMtpsno", long: []string{"--host", "--machine", "--type", "--property", "--signal", "--lines", "--output", "--root", "--state"}, flags: []string{"--user", "--system", "--no-pager", "-q", "--quiet", "--now", "-l", "--full", "-a", "--all", "--no-ask-password"}, sub: true},
	"aws":       {long: []string{"--profile", "--region", "--output", "--endpoint-url", "--query", "--ca-bundle"}, flags: []string{"--debug", "--no-cli-pager", "--no-paginate", "--no-verify-ssl"}, sub: true},
	"gcloud":    {long: []string{"--project", "--account", "--configuration", "--format", "--zone", "--region"}, flags: []string{"--quiet", "-q"}, sub: true},
	"az":        {long: []string{"--subscription", "--output"}, sub: true},
	"terraform": {single: true, flags: []string{"-version", "-help"}, sub: true},
	"tofu":      {single: true, sub: true},
	"gh":        {short: "RHFfXBbtqj", long: []string{"--repo", "--hostname", "--body", "--title", "--jq", "--method", "--field", "--raw-field"}, sub: true},
	"pip":       {long: []string{"--log", "--proxy", "--cache-dir", "--python", "--timeout", "--retries", "--index-url"}, short: "rcei", flags: []string{"-q", "-v", "--quiet", "--verbose", "--isolated", "--no-input"}, sub: true},
	"pip3":      {long: []string{"--log", "--proxy", "--cache-dir", "--python", "--timeout", "--retries", "--index-url"}, short: "rcei", flags: []string{"-q", "-v", "--quiet", "--verbose", "--isolated", "--no-input"}, sub: true},
	"uv":        {long: []string{"--directory", "--project", "--config-file", "--cache-dir", "--color", "--python"}, short: "p", flags: []string{"-q", "-v", "--offline", "--native-tls"}, sub: true},
	"poetry":    {short: "CP", long: []string{"--directory", "--project"}, flags: []string{"-q", "-n", "-v", "--no-interaction"}, sub: true},
	"go":        {short: "C", single: true, sub: true},
	"apt":       {short: "otca", long: []string{"--option", "--target-release", "--config-file"}, flags: []string{"-y", "-q", "-qq", "--yes", "-f"}, sub: true},
	"apt-get":   {short: "otca", long: []string{"--option", "--target-release", "--config-file"}, flags: []string{"-y", "-q", "-qq", "--yes", "-f"}, sub: true},
	"dnf":       {short: "cx", flags: []string{"-y", "-q"}, sub: true},
	"brew":      {flags: []string{"-q", "-v"}, sub: true},
	"avfs":      {long: []string{"--vault", "--backend", "--shell", "--cwd", "--fork", "--timeout", "--env", "--checkpoint", "--driver", "--changes", "--policy", "--session", "--file", "--env-file", "--secret", "--memory", "--pids", "--cpu", "--file-size", "--approval", "--from", "--parallel", "--name", "--keep"}, flags: []string{"--json", "--quiet", "-q", "--trace"}, sub: true},
	"svn":       {short: "mFru", long: []string{"--message", "--username", "--password"}, sub: true},
	"hg":        {short: "Rm", long: []string{"--repository", "--cwd", "--config", "--message"}, sub: true},
	"redis-cli": {short: "hpsanu", sub: true},
	"find":      {single: true},
	"java":      {single: true},
	"openssl":   {single: true, sub: true},
	"dd":        {single: true},
	"rsync":     {short: "efTBM", long: []string{"--rsh", "--exclude", "--include", "--filter", "--files-from", "--rsync-path"}},
	"bsdtar":    {short: "fCTXIbgHKLNV", long: []string{"--file", "--directory", "--exclude", "--files-from", "--use-compress-program"}},
	"gtar":      {short: "fCTXIbgHKLNV", long: []string{"--file", "--directory", "--exclude", "--files-from", "--use-compress-program"}},
	"cpio":      {short: "CDEFHIMORW", long: []string{"--directory", "--file", "--format", "--pattern-file", "--owner"}},
	"tar":       {short: "fCTXIbgHKLNV", long: []string{"--file", "--directory", "--exclude", "--files-from", "--use-compress-program"}},
	"cp":        {short: "tS", long: []string{"--target-directory", "--suffix"}},
	"mv":        {short: "tS", long: []string{"--target-directory", "--suffix"}},
	"ln":        {short: "tS", long: []string{"--target-directory", "--suffix"}},
	"install":   {short: "tSgmo", long: []string{"--target-directory", "--group", "--mode", "--owner"}},
	"curl": {short: "oXHdAbcCDeEFKmPQrTuUwxyYz", long: []string{"--output", "--request", "--header", "--data", "--data-raw", "--data-binary", "--user", "--user-agent", "--form", "--upload-file", "--url", "--max-time", "--connect-timeout", "--write-out", "--config", "--proxy", "--retry"},
		flags: []string{"-s", "-S", "-f", "-L", "-sSL", "-fsSL"}},
	"wget":     {short: "oOaietTPQUlADIXB", long: []string{"--output-document", "--directory-prefix", "--post-data", "--header", "--post-file"}},
	"grep":     {short: "efmABCdD", long: []string{"--regexp", "--file", "--include", "--exclude"}},
	"rg":       {short: "efmABCgtTjMr", long: []string{"--regexp", "--file", "--glob", "--type"}},
	"sed":      {short: "efl", long: []string{"--expression", "--file", "--line-length"}},
	"chmod":    {long: []string{"--reference"}},
	"chown":    {long: []string{"--reference", "--from"}},
	"kill":     {short: "sn", long: []string{"--signal"}},
	"pkill":    {short: "sgGPtuUF", long: []string{"--signal"}},
	"killall":  {short: "suo", long: []string{"--signal", "--user"}},
	"crontab":  {short: "u"},
	"ssh":      {short: "bcDEeFIiJLlmOopQRSWw"},
	"tee":      {},
	"truncate": {short: "sr", long: []string{"--size", "--reference"}},
	"shred":    {short: "ns", long: []string{"--iterations", "--size"}},
	"mount":    {short: "toLUOT"},
	"rm":       {},
	"sort":     {short: "oktST", long: []string{"--output", "--key", "--field-separator", "--buffer-size", "--temporary-directory", "--files0-from", "--parallel"}},
	"shuf":     {short: "oni", long: []string{"--output", "--head-count", "--input-range"}},
	"patch":    {short: "ipdorDFVYBz", long: []string{"--input", "--output", "--directory", "--strip", "--reject-file"}},
	"touch":    {short: "rdt", long: []string{"--reference", "--date"}},
	"mkdir":    {short: "m", long: []string{"--mode"}},
	"split":    {short: "abClnt"},
	"unzip":    {short: "dPx"},
	"zstd":     {short: "oDTM"},
	"scp":      {short: "iFPcloSJX"},
	"perl":     {short: "eEMmI"},
	"ruby":     {short: "eErI"},
	"awk":      {short: "vFfiel", long: []string{"--file", "--assign", "--field-separator", "--include", "--source", "--load"}},
	"gawk":     {short: "vFfiel", long: []string{"--file", "--assign", "--field-separator", "--include", "--source", "--load"}},
	"make":     {short: "CfIoWEj", long: []string{"--directory", "--file", "--makefile", "--include-dir", "--eval"}},
	"gmake":    {short: "CfIoWEj", long: []string{"--directory", "--file", "--makefile", "--include-dir", "--eval"}},
	"ninja":    {short: "Cfjkldt"},
	"cmake":    {short: "BSDGCPUT", long: []string{"--build", "--install", "--prefix", "--target", "--config", "--parallel", "--preset"}},
	"jq":       {short: "fL", long: []string{"--from-file"}},
	"gcc":      {single: true},
	"cc":       {single: true},
	"g++":      {single: true},
	"c++":      {single: true},
	"clang":    {single: true},
	"clang++":  {single: true},
	"ld":       {single: true},
	"rustc":    {single: true},
	"tcc":      {single: true},
}

// positions are the places of the words that are neither options nor their values.
type positions struct {
	plain []int
	// shifted is the other reading, where the word after an unknown option in
	// front of the subcommand is that option's value; nil if there is none.
	shifted []int
	// open is the number of leading words in plain that surely stand there: a
	// word after it may have become any number of words.
	open int
	// dash is the index in args of "--", or the number of arguments.
	dash int
	// start is the index in args where the subcommand stands, or the number of
	// arguments.
	start int
}

// positionals finds the words that are neither options nor values of options.
func (it *item) positionals() *positions {
	if it.pos != nil {
		return it.pos
	}
	p := &positions{open: math.MaxInt, dash: len(it.args), start: len(it.args), plain: make([]int, 0, len(it.args))}
	it.pos = p
	unsure := false
	for i := 0; i < len(it.args); i++ {
		t := it.args[i]
		c := t.certain()
		switch {
		case p.dash < i:
		case t.known() && t.text == "--":
			p.dash = i
			continue
		case len(c) > 1 && c[0] == '-':
			takes, known := it.opts.takesValue(t)
			if takes {
				i++
			} else if !known && len(p.plain) == 0 && it.opts.sub && !strings.Contains(c, "=") {
				unsure = true
			}
			continue
		}
		if t.multi {
			p.open = min(p.open, len(p.plain))
		}
		if len(p.plain) == 0 {
			p.start = i
		}
		p.plain = append(p.plain, i)
	}
	if unsure && len(p.plain) > 0 {
		p.shifted = p.plain[1:]
	}
	return p
}

// takesValue says whether an option takes the next word as its value, and whether
// the model knows the option at all.
func (m *optModel) takesValue(t token) (takes, known bool) {
	s := t.certain()
	if strings.HasPrefix(s, "--") {
		name, _, has := strings.Cut(s, "=")
		if slices.Contains(m.long, name) || !m.sub && m.abbreviates(name) {
			return !has, true
		}
		return false, slices.Contains(m.flags, name)
	}
	if m.single {
		return false, !m.sub || slices.Contains(m.flags, s)
	}
	for i := 1; i < len(s); i++ {
		if strings.IndexByte(m.short, s[i]) >= 0 {
			return i == len(s)-1, true
		}
	}
	return false, slices.Contains(m.flags, s)
}

// abbreviates reports whether name begins the name of a long option with a value.
func (m *optModel) abbreviates(name string) bool {
	return len(name) > 3 && slices.ContainsFunc(m.long, func(o string) bool { return strings.HasPrefix(o, name) })
}

// plainArgs returns the arguments from the subcommand on, where everything in
// front of it is a known option. lenient accepts all known options; otherwise only
// those count that change neither what runs nor how.
func (it *item) plainArgs(lenient bool) []token {
	if !it.opts.sub {
		return it.args
	}
	p := it.positionals()
	if p.shifted != nil || p.start == len(it.args) || p.open == 0 {
		return it.args
	}
	if !lenient {
		for _, t := range it.args[:p.start] {
			name, _, _ := strings.Cut(t.certain(), "=")
			if strings.HasPrefix(name, "-") && !it.opts.isHarmless(name) {
				return it.args
			}
		}
	}
	return it.args[p.start:]
}

// isHarmless reports whether name is among the harmless options.
func (m *optModel) isHarmless(name string) bool {
	for h := range strings.FieldsSeq(m.harmless) {
		if h == name || len(h) == 2 && strings.HasPrefix(name, h) && strings.IndexByte(m.short, h[1]) >= 0 {
			return true
		}
	}
	return false
}

// hasDoubleDash reports whether "--" stands among the arguments.
func (it *item) hasDoubleDash() tri {
	if it.positionals().dash < len(it.args) {
		return yes
	}
	for _, t := range it.args {
		if t.multi {
			return maybe
		}
	}
	return no
}

// hasFlag reports whether one of the options is given, in any spelling: alone, in
// a cluster, with a value attached. With abbrev also as an abbreviation of a long
// option, and in the place of another option's value: a letter can mean one thing in
// one subcommand and another in the next (docker's -t), and who restricts must not
// miss what follows it.
func (it *item) hasFlag(options []string, abbrev bool) tri {
	got := no
	end := it.positionals().dash
	for i := 0; i < end; i++ {
		t := it.args[i]
		if t.multi && !t.operand || t.dyn && t.head == "-" {
			got = maybe
			continue
		}
		s := t.certain()
		if len(s) < 2 || s[0] != '-' && s[0] != '+' {
			continue
		}
		for _, o := range options {
			if it.opts.flagIs(s, o, abbrev) {
				return yes
			}
		}
		if takes, _ := it.opts.takesValue(t); takes && !(abbrev && i+1 < len(it.args) && strings.HasPrefix(it.args[i+1].certain(), "-")) {
			i++
		}
	}
	return got
}

// flagIs compares one word with one option.
func (m *optModel) flagIs(s, option string, abbrev bool) bool {
	name, _, _ := strings.Cut(s, "=")
	if name == option || s == option {
		return true
	}
	if strings.HasPrefix(option, "--") {
		return abbrev && len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(option, name)
	}
	if len(option) != 2 || option[0] != s[0] || m.single || strings.HasPrefix(s, "--") {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] == option[1] {
			return true
		}
		if strings.IndexByte(m.short, s[i]) >= 0 {
			return false
		}
	}
	return false
}
