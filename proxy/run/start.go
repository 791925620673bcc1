package run

import (
	"errors"
	"os"
)

// pipes are the files of a starting child and this process's ends of them.
type pipes struct {
	child  [3]*os.File
	ours   []*os.File // output pipes to read
	stdin  *os.File   // where to write the child's input, nil without
	shared bool       // one pipe for both outputs
}

func (p *pipes) close() {
	closeAll(p.child[:]...)
	closeAll(p.ours...)
	closeAll(p.stdin)
}

// closeChild closes the child's ends, which it has copies of once it runs.
func (p *pipes) closeChild() { closeAll(p.child[:]...) }

// openPipes opens what s needs. It closes everything on failure.
func openPipes(s *Spec) (p *pipes, err error) {
	p = &pipes{shared: s.Combined}
	defer func() {
		if err != nil {
			p.close()
			err = &Error{Op: "open pipes", Err: err}
		}
	}()
	if s.Stdin == nil {
		p.child[0], err = os.Open(os.DevNull)
	} else {
		p.child[0], p.stdin, err = os.Pipe()
	}
	if err != nil {
		return p, err
	}
	for i := 1; i <= 2; i++ {
		if i == 2 && p.shared {
			p.child[2] = p.child[1]
			break
		}
		r, w, err := os.Pipe()
		if err != nil {
			return p, err
		}
		p.ours = append(p.ours, r)
		p.child[i] = w
	}
	return p, nil
}

// start starts the command. Its errors are *Error and *notStarted.
func (t *task) start() error {
	path, err := lookup(t.spec.Argv[0], t.spec.Dir, t.spec.Env)
	if err != nil {
		return err
	}
	p, err := openPipes(t.spec)
	if err != nil {
		return err
	}
	t.kin = newKin(t.spec)
	t.kin.capGroup(t.spec.Limits)
	proc, err := t.spawn(path, p)
	if err != nil {
		p.close()
		t.kin.close()
		return t.startError(err)
	}
	p.closeChild()
	t.ended = watchLeader(proc)
	if t.spec.Started != nil {
		t.spec.Started(t.kin.command(proc))
	}
	if p.shared {
		t.drains = []*drain{t.spec.newDrain(p.ours[0], StreamBoth)}
	} else {
		t.drains = []*drain{t.spec.newDrain(p.ours[0], StreamOut), t.spec.newDrain(p.ours[1], StreamErr)}
	}
	if p.stdin != nil {
		t.feed = startFeed(t.spec.Stdin, p.stdin)
	}
	return nil
}

// startError decides whose failure err is.
func (t *task) startError(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	return classify(t.spec.Argv[0], err)
}
