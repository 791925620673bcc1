package policy

import (
	"fmt"
	"path"

	"go.yaml.in/yaml/v4"
)

// Approver says who is asked where the policy wants approval, beside people. It is no
// part of the digest: it decides about no command.
type Approver struct {
	// Command is a program with its arguments. It reads the question as one JSON
	// document from its standard input; exit code 0 is yes, 1 is no, and anything else
	// is no answer. What it prints is kept with the answer.
	Command []string
	// Dir is an absolute directory. The question is put there as ID.json, and the
	// answer is expected as ID.yes or ID.no, whose text is kept with it.
	Dir string
	// TimeoutSeconds is how long to wait for the answer; 0 leaves it to the caller.
	TimeoutSeconds int
	// ExpiresSeconds is how long a question stays open; 0 leaves it to the caller.
	ExpiresSeconds int
}

// Approver is who is asked where approval is wanted, nil if the policy names nobody.
func (p *Policy) Approver() *Approver {
	for i := len(p.sets) - 1; i >= 0; i-- {
		if a := p.sets[i].approver; a != nil {
			return a
		}
	}
	return nil
}

func approverOf(n *yaml.Node) (*Approver, error) {
	a := &Approver{}
	err := eachField(n, func(key string, v *yaml.Node) error {
		var err error
		switch key {
		case "command":
			a.Command, err = stringsOf(v)
		case "dir":
			if a.Dir, err = stringOf(v); err == nil && !path.IsAbs(a.Dir) {
				err = &ParseError{Line: v.Line, Msg: fmt.Sprintf("the directory %q of the approver is not absolute", a.Dir)}
			}
		case "timeout_seconds":
			a.TimeoutSeconds, err = secondsOf(v)
		case "expires_seconds":
			a.ExpiresSeconds, err = secondsOf(v)
		default:
			err = unknownField(key, v.Line)
		}
		return err
	})
	if err == nil && (len(a.Command) == 0) == (a.Dir == "") {
		err = &ParseError{Line: n.Line, Msg: "an approver has a command or a dir, and not both"}
	}
	return a, err
}

func secondsOf(n *yaml.Node) (int, error) {
	v, err := intOf(n)
	if err == nil && (v <= 0 || v > maxApproverSeconds) {
		err = &ParseError{Line: n.Line, Msg: fmt.Sprintf("%d is no number of seconds from 1 to %d", v, maxApproverSeconds)}
	}
	return v, err
}

const maxApproverSeconds = 30 * 24 * 3600
