package policy

import (
	"maps"
	"slices"
)

// maxValues bounds the values that are followed for one variable.
const maxValues = 8

// state is what is known about the shell at one point of a script.
type state struct {
	vars   map[string]variable
	shared bool // vars is also held by another state
	cwd    place
}

// variable is what is known about a variable that the script has set. A variable
// that the map does not hold comes from the environment: nothing is known of it.
type variable struct {
	values []string // the values it may have
	open   bool     // it may also have another value
}

// unknownVariable is one of which nothing is known.
var unknownVariable = variable{open: true}

func newState(cwd place) *state { return &state{cwd: cwd} }

// clone returns a copy that changes on its own, as in a subshell.
func (s *state) clone() *state {
	s.shared = s.vars != nil
	return &state{vars: s.vars, shared: s.shared, cwd: s.cwd}
}

func (s *state) set(name string, v variable) {
	if s.shared {
		s.vars = maps.Clone(s.vars)
		s.shared = false
	}
	if s.vars == nil {
		s.vars = map[string]variable{}
	}
	s.vars[name] = v
}

// setValue makes the variable have exactly one value.
func (s *state) setValue(name, v string) { s.set(name, variable{values: []string{v}}) }

// forget makes the variable unknown.
func (s *state) forget(name string) { s.set(name, unknownVariable) }

// forgetAll makes everything unknown that the script may have set.
func (s *state) forgetAll() {
	for name := range s.vars {
		s.forget(name)
	}
	s.cwd = place{kind: placeUnknown}
}

// join makes s the state after either s or o.
func (s *state) join(o *state) {
	if s.cwd != o.cwd {
		s.cwd = place{kind: placeUnknown}
	}
	if s.shared && o.shared && len(s.vars) == len(o.vars) && maps.EqualFunc(s.vars, o.vars, variable.equal) {
		return
	}
	for name, v := range o.vars {
		mine, ok := s.vars[name]
		if !ok {
			s.set(name, v.or(unknownVariable)) // on the other path the environment decides
		} else if !mine.equal(v) {
			s.set(name, mine.or(v))
		}
	}
	for name, v := range s.vars {
		if _, ok := o.vars[name]; !ok && !v.open {
			s.set(name, v.or(unknownVariable))
		}
	}
}

func (v variable) equal(o variable) bool {
	return v.open == o.open && slices.Equal(v.values, o.values)
}

// or returns the variable that has the values of both.
func (v variable) or(o variable) variable {
	all := slices.Clone(v.values)
	for _, x := range o.values {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	if len(all) > maxValues {
		return unknownVariable
	}
	return variable{values: all, open: v.open || o.open}
}
