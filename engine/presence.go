package engine

import (
	"math"
	"slices"
)

// presence says which states of a vault have in them what an event brought: a merge, or
// an import. Roots have increasing numbers, so the root of a state tells, whichever undo,
// redo or restore has led to it.
type presence struct {
	Seq   uint64 `json:"seq"`   // of the event; those of all vaults are ordered by it
	Since uint64 `json:"since"` // the oldest node that a root can have whose state has it
	// Turns are the nodes from which on states lack it, have it again, and so on.
	Turns []uint64 `json:"turns,omitempty"`
}

// maxTurns bounds how often an undo and a redo of one event are told apart.
const maxTurns = 32

// in reports whether a state has it.
func (p presence) in(root Root) bool { return p.at(root.ref.ID) }

// now reports whether a state has it that is about to come.
func (p presence) now() bool { return p.at(math.MaxUint64) }

func (p presence) at(node uint64) bool {
	has := node >= p.Since
	for _, turn := range p.Turns {
		if node >= turn {
			has = !has
		}
	}
	return has
}

// from is p where the states from the node on have it, or lack it. Beyond the bound the
// oldest states that had it count as if they did not: a merge then has an older base than
// it could have, which repeats a conflict, where a newer one would lose changes.
func (p presence) from(node uint64, has bool) presence {
	if p.now() == has {
		return p
	}
	if n := len(p.Turns); n > 0 && p.Turns[n-1] == node { // no state came between
		p.Turns = slices.Clone(p.Turns[:n-1])
		return p
	}
	p.Turns = append(slices.Clone(p.Turns), node)
	if len(p.Turns) > maxTurns {
		p.Since, p.Turns = p.Turns[1], p.Turns[2:]
	}
	return p
}
