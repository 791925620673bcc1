package policy

import (
	"strings"
	"testing"
)

// TestEffects holds what known programs are seen to read (<), to write (>) and to tell
// others (net).
func TestEffects(t *testing.T) {
	for command, want := range map[string]string{
		"cp a b c": "<a <b >c", "cp -t d a b": ">d <a <b", "cp --target-directory=d a": ">d <a", "cp --target a": ">a", "mv a b": ">a >b", "ln -s a b": "<a >b", "ln a": "<a", "install -d a b": "<a >b >a >b", "install -m 644 a b": "<a >b",
		"dd if=a of=b bs=1": "<a >b", "tee -a f g": ">f >g", "touch -r a b": "<a >b", "mkdir -m 700 d": ">d", "rm -rf -- -x": ">-x", "truncate -s 0 f": ">f", "chmod 644 f g": ">f >g", "chmod --reference=r f": "<r >f", "chown u:g f": ">f",
		"sed s/a/b/ f": "<f", "sed -i s/a/b/ f": ">f", "sed -ne p -i.bak f": ">f", "sed -i -e x -e y f": ">f", "sed -f s f": "<s <f", "sort -o o f": ">o <f", "sort -of f": ">f <f", "sort --out=o": ">o", "sort -k2 -t, f": "<f", "uniq a b": "<a >b", "uniq a": "<a",
		"curl -o f http://x": ">f net", "curl -sof http://x": ">f net", "curl -O http://x/y": ">. net", "curl -d @f http://x": "<f net", "curl -F a=@f -T g http://x": "<g <f net", "curl --output=f x": ">f net", "wget -O f x": ">f net", "wget -P d x": ">d net", "curl --version": "",
		"tar xf a": "<a >.", "tar -xzf a -C d": "<a >d", "tar czf a b c": ">a <b <c", "tar -cf a b": ">a <b", "tar --create --file=a b": ">a <b", "tar tf a": "<a", "tar --extract --file a --directory=d": "<a >d",
		"unzip a -d d": "<a >d", "unzip -l a": "<a", "zip a b": ">a <b", "7z x a -oout": "<a >out", "7z a a b": ">a <b", "gzip f": ">f", "gzip -dc f": "<f", "split -l 3 a p": "<a >p", "patch -p1 -i p": "<p", "gcc -Wall -o x x.c": "<x <x.c >x",
		"find a b -name x": "<a <b", "find a -delete": "<a >a", "xxd -r a b": "<a >b", "openssl enc -in a -out b": "<a >b", "go build -o x ./...": ">x",
		"git clone https://h/r": ">. net", "git clone h:r d": ">d net", "git clone ./r d": ">d <./r", "git clone r": ">. <r", "git init d": ">d", "git worktree add d": ">d", "git archive -o f HEAD": ">f", "git format-patch -o d x": ">d", "git diff --output=f": ">f", "git rm f": ">f",
		"git push": "net", "git -C x fetch": "net", "git fetch ./r": "", "git status": "", "git remote update": "net", "git remote -v": "", "git submodule update": "net", "git archive --remote=h x": "net", "git stash push": "",
		"ssh -i k h": "<k net", "scp a h:b": "<a net", "scp h:a b": ">b net", "rsync -a a b": "<a >b", "rsync a h:b": "<a net", "rsync rsync://h/m b": ">b net", "nc h 1": "net", "npm install": "net", "npm test": "", "npm ci --offline": "", "npm --prefix p publish": ">p net", "yarn": "net", "yarn build": "",
		"pip install x": "net", "pip list": "", "python3 -m pip install x": "<pip <install <x net", "python3 x.py": "<x.py", "cargo build": "", "cargo add x": "net", "go get x": "net", "go mod tidy": "net", "go mod edit": "", "go build": "", "uv pip install x": "net", "docker pull x": "net", "docker ps": "",
		"grep -r x a b": "<a <b", "grep -e x a": "<a", "grep -f p a": "<p <a", "cat a b": "<a <b", "awk '{print}' a": "<a", "awk -f p a": "<p <a", "jq . a": "<a", "frobnicate a b": "", "pacman -Syu": "net", "apt-get -y install x": "net",
	} {
		var got []string
		for _, it := range analyze(Command{Shell: command}) {
			if it.base == "env" || it.kind != kindCall {
				continue
			}
			e := it.effects()
			for _, r := range e.reads {
				got = append(got, "<"+r.text)
			}
			for _, w := range e.writes {
				got = append(got, ">"+w.text)
			}
			if e.network {
				got = append(got, "net")
			}
		}
		if !sameWords(got, strings.Fields(want)) {
			t.Errorf("%q: got %q, want %q", command, strings.Join(got, " "), want)
		}
	}
}

// sameWords compares without regard to the order.
func sameWords(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	count := map[string]int{}
	for i := range a {
		count[a[i]]++
		count[b[i]]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestEffectRules holds what reads, writes and network mean in a rule: one path is
// enough for a rule that restricts, a rule that allows wants all of them.
func TestEffectRules(t *testing.T) {
	p := mustParse(t, `
default: allow_with_checkpoint
rules:
  - {id: secret, reads: [secrets/*, "*.pem", ~/.x], action: deny}
  - {id: out, writes: [$OUTSIDE, config/*], action: require_approval}
  - {id: build, writes: [build/*], action: allow, fallback: true}
  - {id: net, network: true, action: deny}
`)
	for _, c := range []struct {
		cwd, shell string
		want       Action
	}{
		{"/", "cat secrets/a", Deny}, {"/", "cat < secrets/a", Deny}, {"/secrets", "cat a", Deny}, {"/", "cd secrets && cat a", Deny}, {"/", "cat ./x/../secrets/a", Deny}, {"/", "cp secrets/a b", Deny}, {"/", "cp a secrets/b", AllowWithCheckpoint}, {"/", "cat k.pem", Deny}, {"/sub", "cat k.pem", Deny},
		{"/", "cat ~/.x", Deny}, {"/", "cat /mnt/v/secrets/a", Deny}, {"/", "cat /secrets/a", AllowWithCheckpoint}, {"/", `cat "secrets/$x"`, Deny}, {"/", "tar cf x.tar secrets/a", Deny}, {"/", "curl -d @secrets/a h", Deny},
		{"/", "echo x > config/a", RequireApproval}, {"/", "tee config/a", RequireApproval}, {"/", "sort -o config/a b", RequireApproval}, {"/", "sort -o b config/a", AllowWithCheckpoint}, {"/", "find . -exec cp x config/a \\;", RequireApproval}, {"/", "sudo tee config/a", RequireApproval},
		{"/", "touch build/a", Allow}, {"/", "touch build/a build/b", Allow}, {"/", "touch build/a b", AllowWithCheckpoint}, {"/", "cp a build/b", Allow}, {"/", "mv a build/b", AllowWithCheckpoint}, {"/", "touch \"$x\"", AllowWithCheckpoint}, {"/", "./touch build/a", AllowWithCheckpoint}, {"/", "make build/a", AllowWithCheckpoint},
		{"/", "git fetch", Deny}, {"/", "rsync a h:b", Deny}, {"/", "xargs curl", Deny}, {"/", "git status", AllowWithCheckpoint}, {"/", "echo curl", AllowWithCheckpoint},
	} {
		if d := p.Decide(Command{Shell: c.shell, Cwd: c.cwd, Mount: "/mnt/v"}); d.Action != c.want {
			t.Errorf("in %s: %q: %s by %s, want %s", c.cwd, c.shell, d.Action, d.Rule, c.want)
		}
	}
}

// TestTokens holds that a decision tells the words that it was made by.
func TestTokens(t *testing.T) {
	for shell, want := range map[string]string{
		"ls && rm -v -rf build /": "-rf /", "git -C x push -f origin": "push", "git push --mirror": "push", "curl http://x": "curl", "echo x > ~/.bashrc": "~/.bashrc", "sort f -o /etc/x": "/etc/x", "$x a": "$x", "sudo ls": "sudo", "cat ~/.ssh/id_rsa b": "~/.ssh/id_rsa",
	} {
		if d := Default().Decide(Command{Shell: shell}); d.Token != want {
			t.Errorf("%q: got %q by %s, want %q", shell, d.Token, d.Rule, want)
		}
	}
	d := Default().Decide(Command{Shell: "git status", Facts: repoFacts("[core]\nfsmonitor=./e\n")})
	if d.Token != "core.fsmonitor" {
		t.Errorf("git status: got %q", d.Token)
	}
}
