package engine

import (
	"context"
	"slices"
	"strings"
)

// tops is a set of paths with all that is below them; "" is everything. To ask it takes
// the depth of a path, however many there are.
type tops map[string]bool

func topsOf(paths []string) tops {
	t := tops{}
	for _, p := range paths {
		t[cleanPath(p)] = true
	}
	return t
}

// has reports whether p is one of the paths or below one.
func (t tops) has(p string) bool {
	if t[p] || t[""] {
		return true
	}
	for i := strings.LastIndexByte(p, '/'); i > 0; i = strings.LastIndexByte(p[:i], '/') {
		if t[p[:i]] {
			return true
		}
	}
	return false
}

// list is the paths that are not below others of them, in order.
func (t tops) list() []string {
	var list []string
	for p := range t {
		if i := strings.LastIndexByte(p, '/'); i < 0 || !t.has(p[:i]) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// alongside is the set with where moves took what is in it, or brought it from: a file
// that was moved is taken back at both of its paths or at none.
func (t tops) alongside(changes []change) tops {
	all := tops{}
	moved := map[string][]string{}
	for p := range t {
		all[p] = true
	}
	for _, c := range changes {
		if c.kind != Renamed {
			continue
		}
		for _, pair := range [][2]string{{c.path, c.oldPath}, {c.oldPath, c.path}} {
			if t.has(pair[0]) {
				all[pair[1]] = true
			}
			moved[pair[0]] = append(moved[pair[0]], pair[1])
		}
	}
	for p := range t {
		for i := len(p); i > 0; i = strings.LastIndexByte(p[:i], '/') {
			for _, other := range moved[p[:i]] {
				all[other+p[i:]] = true
			}
		}
	}
	return all
}

// What an event lists of the paths to which it is limited: so many, and so many bytes.
const (
	maxEventPaths     = 1_000
	maxEventPathBytes = 64 << 10
)

// bounded is the beginning of a list of paths that an event can hold; more says that
// there are others.
func bounded(paths []string) (list []string, more bool) {
	left := maxEventPathBytes
	for i, p := range paths {
		if left -= len(p); left < 0 || i == maxEventPaths {
			return paths[:i], true
		}
	}
	return paths, false
}

// scope is where an undo took something back.
type scope struct {
	tops   tops   // these
	own    *Event // and what this event, the undo, changed; nil is nothing more
	set    pathSet
	loaded bool // set is what own changed
}

func scopeOf(ev Event) *scope {
	s := &scope{tops: topsOf(texts(ev.Paths))}
	if ev.Partly {
		s.own = &ev
	}
	return s
}

// load finds out what the undo changed, where that decides.
func (s *scope) load(ctx context.Context, st *Store) error {
	if s.own == nil || s.loaded {
		return nil
	}
	changes, err := st.diff(ctx, s.own.Before, s.own.After, nil, true)
	s.set, s.loaded = pathsOf(changes), err == nil
	return err
}

// has reports whether what was done at p was taken back. It is loaded.
func (s *scope) has(p string) bool { return s.tops.has(p) || s.loaded && s.set.has(p) }
