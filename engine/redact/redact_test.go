package redact

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// Not real ones; split so that no scanner takes them for such.
	github = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
	aws    = "AKIA" + "ABCDEFGHIJKLMNOP"
	openai = "sk-" + "proj-abcdefghijklmnop1234567890"
	slack  = "xoxb-" + "123456789012-abcdef"
	jwt    = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0" + ".c2lnbmF0dXJlc2ln"
	pem    = "-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----"
)

// TestText has the texts with what is to be left of them.
func TestText(t *testing.T) {
	for _, c := range [][2]string{
		{"curl --password=hunter2 x", "curl --password=[redacted] x"},
		{"curl --password hunter2 x", "curl --password [redacted] x"},
		{"tool --token 'a b c' x", "tool --token '[redacted]' x"},
		{`tool --api-key="a b" x`, `tool --api-key="[redacted]" x`},
		{"tool --auth-token a;ls b", "tool --auth-token [redacted];ls b"},
		{"AWS_SECRET_ACCESS_KEY=abc/def aws s3 ls", "AWS_SECRET_ACCESS_KEY=[redacted] aws s3 ls"},
		{"export DB_PASSWORD='x y' && run", "export DB_PASSWORD='[redacted]' && run"},
		{"curl -H 'Authorization: Bearer abc.def' https://h/", "curl -H 'Authorization: Bearer [redacted]' https://h/"},
		{`curl -H "X-Api-Key: abc" h`, `curl -H "X-Api-Key: [redacted]" h`},
		{"curl -H 'authorization: Basic dXNlcjpwYXNz'", "curl -H 'authorization: Basic [redacted]'"},
		{"git clone https://me:hunter2@host/r.git", "git clone https://me:[redacted]@host/r.git"},
		{"psql postgres://u:p%40ss@db:5432/x?sslmode=off", "psql postgres://u:[redacted]@db:5432/x?sslmode=off"},
		{"curl 'https://h/?access_token=abc&x=1'", "curl 'https://h/?access_token=[redacted]&x=1'"},
		{`curl -d '{"client_secret": "abc", "n": 1}' h`, `curl -d '{"client_secret": "[redacted]", "n": 1}' h`},
		{"echo " + github + " x", "echo [redacted] x"},
		{"git remote add o https://" + github + "@github.com/a/b", "git remote add o https://[redacted]@github.com/a/b"},
		{"x=" + aws, "x=[redacted]"},
		{"k " + openai + "; s " + slack, "k [redacted]; s [redacted]"},
		{"echo " + jwt, "echo [redacted]"},
		{"cat <<E\n" + pem + "\nE", "cat <<E\n[redacted]\nE"},
		{"cat <<E\n" + pem[:40], "cat <<E\n[redacted]"},
		{"sshpass -p hunter2 ssh h", "sshpass -p [redacted] ssh h"},
		{"sudo docker login -u me -p hunter2 h", "sudo docker login -u me -p [redacted] h"},
		{"mysql -uroot -phunter2 db", "mysql -uroot -p[redacted] db"},
		{"curl -u me:hunter2 h", "curl -u me:[redacted] h"},
		{"openssl enc -pass pass:hunter2 -in f", "openssl enc -pass pass:[redacted] -in f"},
		{"kubectl create secret generic s --from-literal=password=abc", "kubectl create secret generic s --from-literal=password=[redacted]"},
		{"the value opensesame is known", "the value [redacted] is known"},
		{"opensesameopensesame", "[redacted]"},
	} {
		r := New("opensesame", "x", "")
		if got := r.Text(c[0]); got != c[1] {
			t.Errorf("%q becomes %q, not %q", c[0], got, c[1])
		}
		if got := r.Text(c[1]); got != c[1] {
			t.Errorf("once more %q becomes %q", c[1], got)
		}
	}
}

// TestHarmless has texts that stay as they are.
func TestHarmless(t *testing.T) {
	for _, s := range []string{
		"", "ls -l", "mkdir -p a/b", "ssh -p 22 host", "cp -p a b", "docker run -p 8080:80 x", "python -m http.server -p 1", "git push origin HEAD:main",
		"PWD=/home/x make", "max_tokens=100 tokens=3", "--token-file=x --password-stdin --secret-name=y", "grep -rn password src", "cat token.txt", "passwd root",
		"tool --token $TOKEN", "tool --password=$(pass show x)", `tool --password="$P"`, "PASSWORD=", "tool --password", "tool --token --verbose",
		"pip install scikit-learn sk-learn-contrib-package", "npm_config_cache=x", "go test ./engine -run 'TestToken|TestSecret'", "http://host:8080/path@x",
		"mysql -p db", "zip -r a.zip b", "echo 'a: b'", "https://example.com/ghp_x", "sk-", "eyJ.a.b", "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
		"git commit -m 'Fix the token: it was wrong'", "curl -u me h", "[redacted]", "--password=[redacted]",
		"sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", "export GOOGLE_APPLICATION_CREDENTIALS=key.json",
	} {
		if got := new(Redactor).Text(s); got != s {
			t.Errorf("%q becomes %q", s, got)
		}
		if got := (*Redactor)(nil).Text(s); got != s {
			t.Errorf("%q becomes %q without a redactor", s, got)
		}
	}
}

func TestArgv(t *testing.T) {
	for _, c := range [][2][]string{
		{{"tool", "--password", "hunter 2", "x"}, {"tool", "--password", Mark, "x"}},
		{{"tool", "--password=hunter2"}, {"tool", "--password=" + Mark}},
		{{"env", "TOKEN=abc", "sshpass", "-p", "a", "ssh"}, {"env", "TOKEN=" + Mark, "sshpass", "-p", Mark, "ssh"}},
		{{"sh", "-c", "tool --token abc"}, {"sh", "-c", "tool --token " + Mark}},
		{{"curl", "-H", "Authorization: token abc"}, {"curl", "-H", "Authorization: token " + Mark}},
		{{"mysql", "-pabc"}, {"mysql", "-p" + Mark}},
		{{"mkdir", "-p", "a"}, {"mkdir", "-p", "a"}},
		{{"tool", "--token", "$TOKEN", "--password"}, {"tool", "--token", "$TOKEN", "--password"}},
		{{}, {}},
	} {
		given := slices.Clone(c[0])
		if got := New().Argv(c[0]); !slices.Equal(got, c[1]) {
			t.Errorf("%q becomes %q, not %q", c[0], got, c[1])
		}
		if !slices.Equal(c[0], given) {
			t.Errorf("%q was changed", given)
		}
	}
}

// TestQuick bounds the time for the longest command that is kept, and for the worst
// inputs of that length.
func TestQuick(t *testing.T) {
	const size = 64 << 10
	for _, unit := range []string{"word ", "a=", "--token ", "'", "\"\\", "sk-a", "://", "://a:", "-----BEGIN ", "eyJ.", "docker ", "docker -x ", "docker login -p ", "sk-", "cookie: $", "x", ":", "token=", "-"} {
		s := strings.Repeat(unit, size/len(unit))
		best := time.Hour
		for range 5 {
			start := time.Now()
			New("opensesame").Text(s)
			best = min(best, time.Since(start))
		}
		t.Logf("%q: %v", unit, best)
		if best > 200*time.Millisecond { // a hundred times what it takes alone: what is not in proportion takes seconds
			t.Errorf("%q takes %v", unit, best)
		}
	}
}

func BenchmarkText(b *testing.B) {
	s := strings.Repeat("for i in a b c; do curl --fail https://example.com/$i?x=1 | grep -v 'some word' > out/$i.txt; done\n", 660)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		New().Text(s)
	}
}

// FuzzText makes sure that no text is too odd, and that what is redacted stays as it is.
func FuzzText(f *testing.F) {
	for _, s := range []string{"--password=x", "a 'b", "x://a:b@c", pem, jwt, `"token": "\`, "mysql -p'a", "curl -u a:'b c'"} {
		f.Add(s, "literal")
	}
	f.Fuzz(func(t *testing.T, s, literal string) {
		r := New(literal)
		got := r.Text(s)
		if len(literal) >= minLiteral && !strings.Contains(Mark, literal) && !strings.Contains(literal, Mark[:1]) && !strings.Contains(literal, Mark[len(Mark)-1:]) && strings.Contains(got, literal) {
			t.Errorf("%q has still %q", got, literal)
		}
		r.Argv(strings.Split(s, " "))
		r.Argv([]string{s, literal, s})
	})
}
