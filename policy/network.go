package policy

import (
	"slices"
	"strings"
	"sync"
)

// networkPrograms lists programs that talk to others whatever their arguments say.
var networkPrograms = sync.OnceValue(func() map[string]struct{} {
	return newSet(`curl wget nc ncat netcat socat telnet ftp lftp tftp sftp scp ssh mosh autossh sshpass aria2c http https httpie xh axel rclone
	s3cmd mc nmap masscan tcpdump ngrok cloudflared localtunnel lynx links w3m mail mailx sendmail mutt swaks msmtp websocat grpcurl iperf iperf3 yt-dlp youtube-dl
	proxychains proxychains4 torsocks ping ping6 traceroute tracepath mtr dig nslookup host whois ntpdate rdate chisel frpc gost hydra nikto sqlmap rsh rlogin rcp finger
	aws gcloud gsutil bq az doctl hcloud linode-cli oci ibmcloud gh glab hub tea twine ssh-copy-id ssh-keyscan vercel netlify wrangler firebase heroku fly flyctl
	kubectl oc eksctl istioctl argocd flux mosquitto_pub mosquitto_sub kafkacat kcat pssh mussh uvx`)
})

// networkSubcommands lists subcommands that talk to others, by program. A subcommand of
// two words is written with a dot.
var networkSubcommands = sync.OnceValue(buildNetworkSubcommands)

func buildNetworkSubcommands() map[string]map[string]struct{} {
	lists := map[string]string{
		"git":    "push fetch pull clone ls-remote remote.update remote.show remote.prune submodule.update submodule.add send-email send-pack fetch-pack imap-send svn p4 lfs.pull lfs.push lfs.fetch archive.--remote daemon instaweb request-pull http-push http-fetch subtree.push subtree.pull subtree.add",
		"npm":    "install i in ins inst insta instal isnt isnta isntal isntall ci clean-install ic install-clean isntall-clean install-ci-test cit clean-install-test sit add udpate find s se v dlx update up upgrade view info show search publish unpublish deprecate audit outdated login logout adduser owner access token dist-tag team profile hook star install-test it create init ping whoami",
		"pip":    "install download wheel index search",
		"cargo":  "install search fetch update publish login logout owner yank add generate-lockfile vendor",
		"go":     "get install mod.download mod.tidy mod.vendor mod.why work.sync",
		"uv":     "add sync lock pip.install pip.sync pip.compile pip.download tool.install tool.run tool.upgrade publish self.update python.install build",
		"poetry": "add install update lock publish self search source",
		"pdm":    "add install update lock publish sync", "hatch": "publish", "flit": "publish", "pipenv": "install sync update lock", "pipx": "install run upgrade inject",
		"gem": "install fetch push update search yank owner signin", "bundle": "install update add outdated", "composer": "install update require global search outdated self-update create-project",
		"apt": "install update upgrade full-upgrade dist-upgrade download source build-dep", "dnf": "install update upgrade download", "brew": "install update upgrade fetch reinstall search", "apk": "add update upgrade fetch", "pacman": "-S -Sy -Syu",
		"docker": "pull push login logout search build run compose.up compose.pull compose.push compose.build compose.run compose.create compose.watch compose.publish buildx create", "crane": "pull push copy auth", "skopeo": "copy inspect sync login",
		"helm": "install upgrade uninstall rollback repo pull push search registry list status get test dependency.update dependency.build", "svn": "checkout co update up commit ci", "hg": "pull push clone incoming outgoing", "rustup": "update install toolchain.install target.add component.add self",
		"terraform": "init plan apply destroy refresh import login get", "pulumi": "up preview destroy refresh login", "openssl": "s_client s_server ocsp", "conda": "install create update search", "nix": "build run develop shell flake profile",
		"deno": "publish cache install add", "dart": "publish", "flutter": "publish", "mvn": "deploy", "dotnet": "restore nuget.push nuget.add", "nuget": "push install restore", "swift": "package.update package.resolve", "pod": "install update", "bun": "install i add update publish create x",
		"yarn": "install add upgrade up publish npm dlx create info login import",
	}
	for name, like := range map[string]string{"pnpm": "npm", "pip3": "pip", "podman": "docker", "nerdctl": "docker", "buildah": "docker", "apt-get": "apt", "yum": "dnf", "zypper": "apt", "tofu": "terraform", "mamba": "conda", "micromamba": "conda", "nix-env": "nix"} {
		lists[name] = lists[like]
	}
	all := map[string]map[string]struct{}{}
	for name, list := range lists {
		all[name] = newSet(list)
	}
	return all
}

func newSet(words string) map[string]struct{} {
	set := map[string]struct{}{}
	for w := range strings.FieldsSeq(words) {
		set[w] = struct{}{}
	}
	return set
}

// offline lists options with which a program keeps to itself.
var offline = []string{"--offline", "--no-index", "--frozen-offline"}

// usesNetwork reports whether a command talks to others, as far as its words tell.
func usesNetwork(it *item) bool {
	if _, ok := networkPrograms()[it.base]; ok {
		return !onlyInforms(it) && !localOnly(it)
	}
	switch it.base {
	case "rsync":
		return slices.ContainsFunc(it.operandTokens(), remoteName)
	case "python", "python3":
		return pythonNetwork(it.args)
	}
	subs, ok := networkSubcommands()[it.base]
	if !ok {
		return false
	}
	if slices.ContainsFunc(it.args, func(t token) bool { return slices.Contains(offline, t.text) }) {
		return false
	}
	ops := it.operandTokens()
	if it.base == "pacman" {
		ops = it.args
	}
	if len(ops) == 0 {
		return it.base == "yarn" && len(it.args) == 0
	}
	return networkSubcommand(it, subs, ops)
}

func networkSubcommand(it *item, subs map[string]struct{}, ops []token) bool {
	two := ""
	if len(ops) > 1 {
		two = ops[0].text + "." + ops[1].text
	}
	switch {
	case it.base == "deno" && ops[0].text == "run":
		return slices.ContainsFunc(ops, func(t token) bool {
			c := t.certain()
			return strings.HasPrefix(c, "http:") || strings.HasPrefix(c, "https:") || strings.HasPrefix(c, "npm:") || strings.HasPrefix(c, "jsr:")
		})
	case it.base == "go" && ops[0].text == "run":
		return len(ops) > 1 && strings.Contains(ops[1].certain(), "@")
	case ops[0].text == "init" && len(ops) == 1: // npm init without a template
		return false
	}
	_, first := subs[ops[0].text]
	_, second := subs[two]
	if it.base != "git" || !first {
		return first || second || it.base == "git" && ops[0].text == "archive" && it.hasFlag([]string{"--remote"}, true) == yes
	}
	if ops[0].text == "clone" && len(ops) > 1 && localRepository(ops[1]) {
		return false // from a directory of this machine
	}
	if slices.Contains([]string{"fetch", "pull", "push", "ls-remote"}, ops[0].text) && len(ops) > 1 && strings.Contains(ops[1].text, "/") && localRepository(ops[1]) {
		return false
	}
	return true
}

// localRepository reports whether a word surely names a directory.
func localRepository(t token) bool {
	return t.known() && !remoteName(t) && (strings.HasPrefix(t.text, ".") || strings.HasPrefix(t.text, "/") || strings.HasPrefix(t.text, "file://") || !strings.Contains(t.text, ":"))
}

// onlyInforms reports whether a program just tells about itself.
func onlyInforms(it *item) bool {
	return len(it.args) == 1 && slices.Contains([]string{"--version", "-V", "--help", "-h"}, it.args[0].text) && it.base != "host"
}

// pythonNetwork finds python's modules that talk to others.
func pythonNetwork(args []token) bool {
	for i, t := range args {
		at := moduleOption(t.certain())
		if at == 0 {
			continue
		}
		words := args[i+1:]
		if at+1 < len(t.certain()) {
			words = append([]token{t.after(at + 1)}, words...)
		}
		if len(words) == 0 {
			return false
		}
		switch words[0].text {
		case "http.server", "smtpd", "twine", "ftplib", "telnetlib":
			return true
		case "pip":
			return len(words) > 1 && slices.Contains([]string{"install", "download", "wheel", "index", "search"}, words[1].text)
		}
		return false
	}
	return false
}

// localOnly reports whether everything that a client is told to talk to is this machine,
// where a command tests what it has started. Options that send it elsewhere, and words
// that only the run knows, make it no.
func localOnly(it *item) bool {
	switch it.base {
	case "curl", "wget", "http", "https", "xh", "nc", "ncat", "netcat", "telnet", "ping":
	default:
		return false
	}
	local := false
	for i := 0; i < len(it.args); i++ {
		t := it.args[i]
		s := t.certain()
		name, _, _ := strings.Cut(s, "=")
		switch {
		case t.dyn && !strings.HasPrefix(t.head, "-"):
			return false
		case elsewhere(it.base, name), strings.Contains(s, "%output"), i+1 < len(it.args) && strings.Contains(it.args[i+1].certain(), "%output"):
			return false
		case len(s) > 1 && s[0] == '-':
			if takes, _ := it.opts.takesValue(t); takes {
				i++
			}
		case localAddress(s):
			local = true
		case it.base == "nc" || it.base == "ncat" || it.base == "netcat" || it.base == "telnet" || it.base == "http" || it.base == "https" || it.base == "xh":
			if !local { // the address comes first; a port or items of the request follow
				return false
			}
		default:
			return false
		}
	}
	return local
}

// elsewhere reports whether an option may make a client talk to another machine than its
// words name, or run a program.
func elsewhere(base, option string) bool {
	switch base {
	case "curl":
		return slices.Contains([]string{"-x", "--proxy", "--preproxy", "-K", "--config", "--connect-to", "--resolve", "--doh-url", "--socks4", "--socks4a", "--socks5", "--socks5-hostname", "--url", "--interface"}, option) || strings.HasPrefix(option, "-x") || strings.HasPrefix(option, "-K")
	case "wget":
		return slices.Contains([]string{"-i", "--input-file", "-e", "--execute", "--config", "--use-askpass", "-B", "--base"}, option) || strings.HasPrefix(option, "-e") || strings.HasPrefix(option, "-i")
	case "nc", "ncat", "netcat":
		return !strings.HasPrefix(option, "--") && strings.ContainsAny(option, "ecxX") && strings.HasPrefix(option, "-") || slices.Contains([]string{"--exec", "--sh-exec", "--lua-exec", "--proxy"}, option)
	}
	return option == "--proxy"
}

// localAddress reports whether a word surely names this machine.
func localAddress(s string) bool {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		if !strings.HasPrefix(s, "http") && !strings.HasPrefix(s, "ws") {
			return false
		}
		s = rest
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	if strings.HasPrefix(s, "[::1]") {
		s = "localhost" + strings.TrimPrefix(s, "[::1]")
	}
	host, port, _ := strings.Cut(s, ":")
	if strings.Trim(port, "0123456789") != "" || port == "2375" || port == "2376" { // the latter give the host to whoever asks
		return false
	}
	switch host {
	case "localhost", "127.0.0.1", "0.0.0.0", "::1":
		return true
	}
	return strings.HasPrefix(host, "127.") && strings.Trim(host, "0123456789.") == ""
}
