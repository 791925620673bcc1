package policy

import (
	"errors"
	"strings"
	"testing"
)

// TestApprover holds that the key is read, changes no decision and no digest, and is
// refused where it says nothing or too much.
func TestApprover(t *testing.T) {
	plain, err := Parse([]byte("version: 1\n"))
	if err != nil || plain.Approver() != nil {
		t.Fatalf("%+v, %v", plain.Approver(), err)
	}
	p, err := Parse([]byte("version: 1\napprover: {command: [ask, --now], timeout_seconds: 5, expires_seconds: 60}\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := p.Approver()
	if a == nil || strings.Join(a.Command, " ") != "ask --now" || a.TimeoutSeconds != 5 || a.ExpiresSeconds != 60 || p.Digest() != plain.Digest() {
		t.Errorf("%+v, digest %s", a, p.Digest())
	}
	if got := Combine(plain, p, Default()).Approver(); got != a {
		t.Errorf("combined: %+v", got)
	}
	if p, err = Parse([]byte("version: 1\napprover: {dir: /run/ask}\n")); err != nil || p.Approver().Dir != "/run/ask" {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"{}", "{command: []}", "{dir: ask}", "{dir: /a, command: [b]}", "{command: [a], timeout_seconds: 0}", "{command: [a], expires_seconds: soon}", "{command: [a], other: 1}", "ask"} {
		if _, err := Parse([]byte("version: 1\napprover: " + bad + "\n")); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
