package engine

import "testing"

func TestPresence(t *testing.T) {
	p := presence{Since: 10}
	p = p.from(20, false).from(30, true).from(30, true).from(40, false)
	for node, want := range map[uint64]bool{9: false, 10: true, 19: true, 20: false, 29: false, 30: true, 39: true, 40: false, 99: false} {
		if p.at(node) != want {
			t.Errorf("at node %d it is %t: %+v", node, !want, p)
		}
	}
	if q := p.from(40, true); !q.now() || !q.at(35) || len(q.Turns) != 2 {
		t.Errorf("turned back at once it is %+v", q)
	}
	if p.now() {
		t.Errorf("a copy was changed: %+v", p)
	}
}

// Beyond the bound no state counts as one that has it and does not.
func TestPresenceBound(t *testing.T) {
	p := presence{Since: 1}
	had := map[uint64]bool{}
	for node := uint64(2); node < 3*maxTurns; node++ {
		p = p.from(node, node%2 == 0)
		had[node] = p.now()
	}
	if len(p.Turns) > maxTurns {
		t.Fatalf("%d turns are kept", len(p.Turns))
	}
	for node, has := range had {
		if p.at(node) && !has {
			t.Errorf("node %d has it all at once", node)
		}
	}
	if last := uint64(3*maxTurns - 1); p.at(last) != had[last] || p.at(last-1) != had[last-1] {
		t.Errorf("the newest are wrong: %+v", p)
	}
}
