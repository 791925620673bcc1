package proxy

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/policy"
)

// The policy cuts long texts before the values of secrets are known. What is left of one
// at the cut must not be shown either.
func TestSecretsInTextsThatWereCut(t *testing.T) {
	const secret = "s3cret-it's-long-and-unguessable"
	for n := 180; n < 270; n++ {
		pad := strings.Repeat("x", n)
		for _, req := range []Request{
			{Argv: []string{"echo", pad, secret, "more"}}, {Argv: []string{"echo", pad + secret + pad}}, {Argv: []string{pad + secret}},
			{Shell: "echo " + pad + " \"" + secret + "\" more"}, {Shell: "echo " + pad + " > \"/" + secret + pad + "\""}, {Shell: "( " + pad + secret},
		} {
			env := newEnvelope("id", &req)
			env.Decision = policy.Default().Decide(question(&req, ""))
			req.revealed = map[string]string{"S": secret}
			env.redact(&req)
			text, err := json.Marshal(env)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), secret[:4]) {
				t.Fatalf("%d: %s", n, text)
			}
		}
	}
}

// TestRedactor holds that no secret passes, however the stream is cut, and that all
// else passes as it is.
func TestRedactor(t *testing.T) {
	secret, other, key := "hunter2-hunter3", "hunter2", "-----BEGIN KEY-----\nMIIEabcdefgh\nxyz\n-----END KEY-----"
	values := map[string]string{"A": secret, "B": other, "C": key}
	in := "hunter hunter2 " + secret + secret + " hunhunter2-hunter\n" + key + "\n" + base64.StdEncoding.EncodeToString([]byte(secret)) +
		" MIIEabcdefgh xyz " + base64.StdEncoding.EncodeToString([]byte(secret+"\n")) + "hunter"
	want := "hunter [redacted] [redacted][redacted] hun[redacted]-hunter\n[redacted]\n[redacted] [redacted] xyz [redacted]hunter"
	r := newRedactor(values)
	if got := r.text(in); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		s := r.fresh()
		var out strings.Builder
		for rest := in; rest != ""; {
			n := 1 + rnd.IntN(min(len(rest), 1+rnd.IntN(20)))
			out.Write(s.Write([]byte(rest[:n])))
			rest = rest[n:]
		}
		out.Write(s.Close())
		if out.String() != want {
			t.Fatalf("in pieces: %s", out.String())
		}
	}
	if (*redactor)(nil).text(secret) != secret || newRedactor(nil) != nil {
		t.Error("without secrets something is redacted")
	}
}

// TestSecrets holds where values come from, and that what cannot be one is an error.
func TestSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{"file:" + file: "from a file", "cmd:printf 'from %s\\n\\n' sh": "from sh\n"} {
		s := Secret{Name: "S", From: from}
		if got, err := s.read(t.Context()); err != nil || got != want || s.check() != nil {
			t.Errorf("%s: %q, %v", from, got, err)
		}
	}
	for _, from := range []string{"file:" + file + ".none", "cmd:exit 3", "cmd:printf abc", "cmd:printf 'a\\0bcd'"} {
		if got, err := (Secret{Name: "S", From: from}).read(t.Context()); err == nil {
			t.Errorf("%s: %q", from, got)
		}
	}
	for _, s := range []Secret{{"", "file:a"}, {"A", "a"}, {"A", "file:"}, {"A", "env:B"}, {"A=B", "file:a"}} {
		if s.check() == nil {
			t.Errorf("%+v passes", s)
		}
	}
}
