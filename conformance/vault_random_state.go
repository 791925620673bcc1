package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// pathState is the plainest model of a state: what is at each path, the top directory
// at ".". Names of one file share a thing. A state that something refers to is never
// changed: a step begins with a copy.
type pathState map[string]*thing

// pathStateOf is a world by its paths.
func pathStateOf(w *world) pathState {
	s := pathState{".": w.nodes[engine.RootIno]}
	for p, ino := range w.paths() {
		s[p] = w.nodes[ino]
	}
	return s
}

func (s pathState) clone() pathState {
	copies := make(map[*thing]*thing, len(s))
	c := make(pathState, len(s))
	for p, th := range s {
		if copies[th] == nil {
			own := *th
			own.xattrs = maps.Clone(th.xattrs)
			copies[th] = &own
		}
		c[p] = copies[th]
	}
	return c
}

// sorted lists the paths for which keep holds, without the top.
func (s pathState) sorted(keep func(p string, th *thing) bool) []string {
	var list []string
	for p, th := range s {
		if p != "." && keep(p, th) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// removeTree takes away p and what is below it.
func (s pathState) removeTree(p string) {
	maps.DeleteFunc(s, func(q string, _ *thing) bool { return q == p || below(q, p) })
}

// move renames a path with what is below it; what the new name was gives way.
func (s pathState) move(from, to string) {
	moved := pathState{}
	for q, th := range s {
		if q == from || below(q, from) {
			moved[to+q[len(from):]] = th
		}
	}
	s.removeTree(from)
	s.removeTree(to)
	maps.Copy(s, moved)
}

// below reports whether p is under the directory dir.
func below(p, dir string) bool { return dir == "." && p != "." || strings.HasPrefix(p, dir+"/") }

// inAny reports whether p is one of the paths or under one of them.
func inAny(p string, paths []string) bool {
	return slices.ContainsFunc(paths, func(top string) bool { return p == top || below(p, top) })
}

func joinPath(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// same reports whether both states have the same at p.
func (s pathState) same(other pathState, p string) bool {
	a, b := s[p], other[p]
	if a == nil || b == nil {
		return a == b
	}
	return a.differs(b) == ""
}

// differing lists the paths at which two states are not the same.
func (s pathState) differing(other pathState) []string {
	var list []string
	for p := range s {
		if !s.same(other, p) {
			list = append(list, p)
		}
	}
	for p := range other {
		if s[p] == nil {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

func (s pathState) equal(other pathState) bool { return len(s.differing(other)) == 0 }

// linked describes which names are names of one file.
func (s pathState) linked() string {
	names := map[*thing][]string{}
	for p, th := range s {
		names[th] = append(names[th], p)
	}
	var groups []string
	for _, group := range names {
		if len(group) > 1 {
			slices.Sort(group)
			groups = append(groups, strings.Join(group, "="))
		}
	}
	slices.Sort(groups)
	return strings.Join(groups, " ")
}

// at says what is at a path, for people.
func (s pathState) at(p string) string {
	th := s[p]
	switch {
	case th == nil:
		return "nothing"
	case th.isDir():
		return fmt.Sprintf("directory %o", th.mode)
	case th.isRegular():
		sum := sha256.Sum256(th.data)
		return fmt.Sprintf("file %o of %d bytes, %x, %v", th.mode, len(th.data), sum[:4], th.xattrs)
	}
	return fmt.Sprintf("%o to %q", th.mode, th.target)
}

// compareStates describes what differs, links included.
func compareStates(got, want pathState) error {
	if diff := got.differing(want); len(diff) > 0 {
		p := diff[0]
		return fmt.Errorf("at %q (one of %d) there is %s, not %s", p, len(diff), got.at(p), want.at(p))
	}
	if g, w := got.linked(), want.linked(); g != w {
		return fmt.Errorf("links are %q, not %q", g, w)
	}
	return nil
}

// digest names the state, without regard to links.
func (s pathState) digest() string {
	h := sha256.New()
	for _, p := range slices.Sorted(maps.Keys(s)) {
		th := s[p]
		_, _ = fmt.Fprintf(h, "%q %o %d %d %q %d\n", p, th.mode, th.uid, th.gid, th.target, len(th.data)) // a hash takes all
		for _, name := range slices.Sorted(maps.Keys(th.xattrs)) {
			_, _ = io.WriteString(h, name+"="+th.xattrs[name]+"\n")
		}
		_, _ = h.Write(th.data)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
