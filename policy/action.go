package policy

import (
	"fmt"
	"slices"
)

// Action is what a policy says about a command. Actions are ordered from lax to
// strict: Allow, AllowWithCheckpoint, RequireApproval, Deny. The zero value is
// stricter than all of them, so that a forgotten field never allows anything.
type Action string

// The four actions, with their spelling in policies and in JSON.
const (
	Allow               Action = "allow"
	AllowWithCheckpoint Action = "allow_with_checkpoint"
	RequireApproval     Action = "require_approval"
	Deny                Action = "deny"
)

// Actions returns the four actions from lax to strict.
func Actions() []Action {
	return []Action{Allow, AllowWithCheckpoint, RequireApproval, Deny}
}

// rank gives the place of a in the order. Whatever is no action ranks above Deny.
func (a Action) rank() int {
	switch a {
	case Allow:
		return 0
	case AllowWithCheckpoint:
		return 1
	case RequireApproval:
		return 2
	case Deny:
		return 3
	}
	return 4
}

// Valid reports whether a is one of the four actions.
func (a Action) Valid() bool { return a.rank() < 4 }

// Allows reports whether a command with this answer runs without asking anybody.
func (a Action) Allows() bool { return a == Allow || a == AllowWithCheckpoint }

// StricterThan reports whether a stands above b in the order.
func (a Action) StricterThan(b Action) bool { return a.rank() > b.rank() }

// Compare returns a negative number when a is laxer than b, zero when they are
// equally strict and a positive number when a is stricter.
func (a Action) Compare(b Action) int { return a.rank() - b.rank() }

// Strictest returns the strictest of its arguments, and Allow for none.
func Strictest(actions ...Action) Action {
	if len(actions) == 0 {
		return Allow
	}
	return slices.MaxFunc(actions, Action.Compare)
}

// laxest returns the laxer of two actions.
func laxest(a, b Action) Action {
	if a.StricterThan(b) {
		return b
	}
	return a
}

// ParseAction returns the action spelled s.
func ParseAction(s string) (Action, error) {
	a := Action(s)
	if !a.Valid() {
		return "", fmt.Errorf("unknown action %q: want allow, allow_with_checkpoint, require_approval or deny", s)
	}
	return a, nil
}
