package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy/run"
)

// Secret is a variable whose value the command gets and nobody else sees. From says
// where the value is: "file:PATH" or "cmd:SCRIPT", for a shell of this system.
type Secret struct {
	Name string
	From string
}

// Limits of the value of a secret, in bytes. A shorter one is in every text.
const (
	minSecret = 4
	maxSecret = 64 << 10
)

// secretTimeout is how long the script of a secret may take.
const secretTimeout = 30 * time.Second

// SecretUnavailable is the kind of the error of a secret that cannot be read.
const SecretUnavailable engine.Kind = "SecretUnavailable"

// redacted stands for a secret.
const redacted = "[redacted]"

// reveal reads the secrets of a request, once.
func (req *Request) reveal(ctx context.Context) error {
	if req.revealed != nil {
		return nil
	}
	values := map[string]string{}
	for _, s := range req.Secrets {
		v, err := s.read(ctx)
		if err != nil {
			return &engine.Error{Kind: SecretUnavailable, Op: "read secret", Path: s.Name, Err: err}
		}
		values[s.Name] = v
	}
	req.revealed = values
	return nil
}

// check rejects what is no secret.
func (s Secret) check() error {
	kind, rest, ok := strings.Cut(s.From, ":")
	if s.Name == "" || strings.ContainsAny(s.Name, "=\x00") || !ok || rest == "" || kind != "file" && kind != "cmd" {
		return errors.New("a secret is NAME=file:PATH or NAME=cmd:SCRIPT")
	}
	return nil
}

// read gets the value, without the line break at its end. No error quotes it.
func (s Secret) read(ctx context.Context) (string, error) {
	kind, from, _ := strings.Cut(s.From, ":")
	var b []byte
	var err error
	if kind == "file" {
		b, err = os.ReadFile(from)
	} else {
		ctx, cancel := context.WithTimeout(ctx, secretTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", from)
		cmd.WaitDelay = time.Second
		b, err = cmd.Output()
	}
	if err != nil {
		return "", err
	}
	v := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	switch {
	case len(v) < minSecret || len(v) > maxSecret:
		return "", fmt.Errorf("its value has %d bytes; it has to have %d to %d", len(v), minSecret, maxSecret)
	case strings.IndexByte(v, 0) >= 0:
		return "", errors.New("its value has a NUL byte, which no variable can have")
	}
	return v, nil
}

// redactor replaces the values of secrets in a stream, also where they are split over
// writes: as they are, each long line of one of several lines, and in base64. What may
// be the beginning of one waits for more. A nil redactor changes nothing.
type redactor struct {
	patterns [][]byte // the longest first
	first    [256]bool
	pending  []byte
}

// newRedactor is one for the values; nil without any.
func newRedactor(values map[string]string) *redactor {
	if len(values) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, v := range values {
		seen[v] = true
		seen[strings.ReplaceAll(v, "'", `'\''`)] = true // as the policy shows it between quotes
		if strings.ContainsRune(v, '\n') {
			for line := range strings.Lines(v) {
				if line = strings.TrimRight(line, "\r\n"); len(line) >= 2*minSecret {
					seen[line] = true
				}
			}
		}
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			seen[enc.EncodeToString([]byte(v))] = true
			seen[enc.EncodeToString([]byte(v+"\n"))] = true
		}
	}
	r := &redactor{}
	for p := range seen {
		r.patterns = append(r.patterns, []byte(p))
		r.first[p[0]] = true
	}
	slices.SortFunc(r.patterns, func(a, b []byte) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return bytes.Compare(a, b)
	})
	return r
}

// fresh is the same for another stream.
func (r *redactor) fresh() *redactor {
	if r == nil {
		return nil
	}
	return &redactor{patterns: r.patterns, first: r.first}
}

// Write gives what of the stream is safe to show by now. The result is valid until the
// next call.
func (r *redactor) Write(p []byte) []byte {
	r.pending = append(r.pending, p...)
	out, rest := r.scan(r.pending, false)
	r.pending = bytes.Clone(rest)
	return out
}

// Close gives the rest.
func (r *redactor) Close() []byte {
	out, _ := r.scan(r.pending, true)
	r.pending = nil
	return out
}

// scan replaces what it finds in p. Without last, rest is what may be the beginning of
// something.
func (r *redactor) scan(p []byte, last bool) (out, rest []byte) {
	from := 0
	for i := 0; i < len(p); {
		if !r.first[p[i]] {
			i++
			continue
		}
		n, open := r.match(p[i:])
		switch {
		case open && !last: // a longer one may still come, or the only one
			return append(out, p[from:i]...), p[i:]
		case n > 0:
			out = append(append(out, p[from:i]...), redacted...)
			i += n
			from = i
		default:
			i++
		}
	}
	return append(out, p[from:]...), nil
}

// match is the length of the longest pattern that p begins with; open says that p is the
// beginning of a longer one.
func (r *redactor) match(p []byte) (n int, open bool) {
	for _, pat := range r.patterns {
		if len(pat) > len(p) {
			open = open || bytes.HasPrefix(pat, p)
		} else if bytes.HasPrefix(p, pat) {
			return len(pat), open
		}
	}
	return 0, open
}

// text is s without secrets.
func (r *redactor) text(s string) string {
	if r == nil {
		return s
	}
	out, _ := r.scan([]byte(s), true)
	return string(out)
}

// cutText is s without secrets, for a text that was cut before anybody knew them: an
// ellipsis shows where, and in front of it may stand the beginning of one.
func (r *redactor) cutText(s string) string {
	parts := strings.Split(s, ellipsis)
	last := len(parts) - 1
	for i, part := range parts[:last] {
		out, rest := r.scan([]byte(part), false)
		if len(rest) > 0 {
			out = append(out, redacted...)
		}
		parts[i] = string(out)
	}
	parts[last] = r.text(parts[last])
	return strings.Join(parts, ellipsis)
}

// ellipsis marks where the policy has cut a text.
const ellipsis = "..."

// texts is list without secrets.
func (r *redactor) texts(list []string) []string {
	if r == nil {
		return list
	}
	clean := make([]string, len(list))
	for i, s := range list {
		clean[i] = r.text(s)
	}
	return clean
}

// variables are those that the command gets beside the usual ones.
func (req *Request) variables() []string {
	env := slices.Clone(req.Env)
	for _, s := range req.Secrets {
		env = append(env, s.Name+"="+req.revealed[s.Name])
	}
	return env
}

// filter makes what the streams of the command go through; nil without secrets.
func (req *Request) filter() func() run.Filter {
	r := newRedactor(req.revealed)
	if r == nil {
		return nil
	}
	return func() run.Filter { return r.fresh() }
}

// redact takes the values of secrets out of what the envelope, and so the audit, tells
// of the command.
func (e *Envelope) redact(req *Request) {
	r := newRedactor(req.revealed)
	if r == nil {
		return
	}
	e.Command.Argv, e.Command.Shell = r.texts(e.Command.Argv), r.text(e.Command.Shell)
	for i := range e.Decision.Segments {
		s := &e.Decision.Segments[i]
		s.Text, s.Argv, s.Reason = r.cutText(s.Text), r.texts(s.Argv), r.cutText(s.Reason)
		s.Token, s.Via = r.cutText(s.Token), r.text(s.Via)
	}
	e.Decision.Reason, e.Decision.Token = r.cutText(e.Decision.Reason), r.cutText(e.Decision.Token)
	if !slices.Contains(e.Isolation.Applied, secretsApplied) {
		e.Isolation.Applied = append(e.Isolation.Applied, secretsApplied)
	}
}

// redactEnd takes them out of what the envelope tells of the end of the command.
func (e *Envelope) redactEnd(req *Request) {
	r := newRedactor(req.revealed)
	if r == nil {
		return
	}
	for _, list := range [][]Process{e.EndedProcesses, e.LeakedProcesses} {
		for i := range list {
			list[i].Command = r.text(list[i].Command)
		}
	}
	if e.Error != nil {
		e.Error.Message = r.text(e.Error.Message)
		for key, value := range e.Error.Details {
			if s, ok := value.(string); ok {
				e.Error.Details[key] = r.text(s)
			}
		}
	}
}

const secretsApplied = "secrets redacted from what is printed"
