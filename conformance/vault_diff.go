package conformance

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// modelName is a name in the terms of the model.
type modelName struct {
	dir  engine.Ino
	name string
}

// diffSide is one state with its indexes.
type diffSide struct {
	w     *world
	paths map[string]engine.Ino
	names map[engine.Ino]map[modelName]string // to paths
}

func sideOf(w *world) diffSide {
	s := diffSide{w: w, paths: w.paths(), names: map[engine.Ino]map[modelName]string{}}
	var walk func(prefix string, dir engine.Ino)
	walk = func(prefix string, dir engine.Ino) {
		for name, kid := range w.nodes[dir].kids {
			if s.names[kid] == nil {
				s.names[kid] = map[modelName]string{}
			}
			s.names[kid][modelName{dir, name}] = prefix + name
			if w.nodes[kid].isDir() {
				walk(prefix+name+"/", kid)
			}
		}
	}
	walk("", engine.RootIno)
	return s
}

// modelDiff lists what differs between two worlds, as "kind path [oldpath]":
//
// A path in both states is compared. A name that an inode lost is paired with one
// that it gained; the pair is a rename when the old path is free afterwards and the
// new one was free before. What is below a renamed directory moves with it and is
// listed only if it changed itself. Every other path was deleted or added.
//
// Lines in vague may be there in place of others of their path, or in addition:
// where only holes became zeros.
func modelDiff(a, b *world) (list []string, vague map[string]bool) {
	d := &modelDiffer{
		a: sideOf(a), b: sideOf(b), covered: map[string]string{}, newOf: map[string]bool{},
		stuck: map[string]bool{}, vague: map[string]bool{},
	}
	for _, ino := range a.inos(func(*thing) bool { return true }) {
		if b.nodes[ino] != nil {
			d.pair(ino)
		}
	}
	// Directories first, from the top down, because they carry the rest.
	for {
		var left []modelMove
		for _, m := range d.moves {
			if !d.settle(m) {
				left = append(left, m)
			}
		}
		if len(left) == len(d.moves) {
			break
		}
		d.moves = left
	}
	d.rest()
	sort.Strings(d.list)
	return d.list, d.vague
}

type modelMove struct {
	ino      engine.Ino
	old, new string
	kept     bool // the directory and the name in it are the same: an ancestor moved
}

type modelDiffer struct {
	a, b    diffSide
	moves   []modelMove
	covered map[string]string // old path to new path of what was renamed or carried
	newOf   map[string]bool
	stuck   map[string]bool
	list    []string
	vague   map[string]bool // modified, if holes and zeros are told apart
}

func sortedNames(m map[modelName]string) []modelName {
	list := slices.Collect(maps.Keys(m))
	sort.Slice(list, func(i, j int) bool {
		return list[i].dir < list[j].dir || list[i].dir == list[j].dir && list[i].name < list[j].name
	})
	return list
}

// pair notes how the paths of an inode changed.
func (d *modelDiffer) pair(ino engine.Ino) {
	var lost, gained []string
	for _, nm := range sortedNames(d.a.names[ino]) {
		p := d.a.names[ino][nm]
		if q, ok := d.b.names[ino][nm]; !ok {
			lost = append(lost, p)
		} else if p != q {
			d.moves = append(d.moves, modelMove{ino, p, q, true})
		}
	}
	for _, nm := range sortedNames(d.b.names[ino]) {
		if _, ok := d.a.names[ino][nm]; !ok {
			gained = append(gained, d.b.names[ino][nm])
		}
	}
	for i := range min(len(lost), len(gained)) {
		d.moves = append(d.moves, modelMove{ino, lost[i], gained[i], false})
	}
}

func parentOf(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// settle decides about a move as soon as that of its parent is decided.
func (d *modelDiffer) settle(m modelMove) bool {
	if m.kept {
		if d.covered[parentOf(m.old)] == parentOf(m.new) {
			d.covered[m.old], d.newOf[m.new] = m.new, true
			d.compare(m.old, m.new, m.ino, m.ino)
			return true
		}
		if !d.decided(parentOf(m.old)) {
			return false
		}
	}
	_, reused := d.b.paths[m.old]
	_, replaced := d.a.paths[m.new]
	if reused || replaced {
		d.stuck[m.old] = true
		return true
	}
	d.covered[m.old], d.newOf[m.new] = m.new, true
	d.list = append(d.list, fmt.Sprintf("renamed %s %s", m.new, m.old))
	return true
}

func (d *modelDiffer) decided(old string) bool {
	_, ok := d.covered[old]
	return ok || d.stuck[old]
}

// rest lists the paths that no move speaks for.
func (d *modelDiffer) rest() {
	for p, ino := range d.a.paths {
		if now, ok := d.b.paths[p]; ok {
			d.compare(p, p, ino, now)
		} else if _, moved := d.covered[p]; !moved {
			d.list = append(d.list, "deleted "+p)
		}
	}
	for p := range d.b.paths {
		if _, ok := d.a.paths[p]; !ok && !d.newOf[p] {
			d.list = append(d.list, "added "+p)
		}
	}
	d.compare(".", ".", engine.RootIno, engine.RootIno)
}

func (d *modelDiffer) compare(old, new string, before, after engine.Ino) {
	x, y := d.a.w.nodes[before], d.b.w.nodes[after]
	kind := ""
	line := new
	if old != new {
		line += " " + old
	}
	if x.isRegular() && y.isRegular() && (holey(x.data) || holey(y.data)) {
		d.vague["modified "+line] = true
	}
	switch {
	case x.typ() != y.typ():
		kind = "type_changed"
	case !bytes.Equal(x.data, y.data) || x.target != y.target || x.rdev != y.rdev:
		kind = "modified"
	case x.mode != y.mode:
		kind = "mode_changed"
	case x.uid != y.uid || x.gid != y.gid || !maps.Equal(x.xattrs, y.xattrs):
		kind = "attr_changed"
	default:
		return
	}
	d.list = append(d.list, kind+" "+line)
}

// holey reports whether a chunk of data may be stored in several ways, because it
// ends in a zero.
func holey(data []byte) bool {
	for end := engine.ChunkSize; end < len(data); end += engine.ChunkSize {
		if data[end-1] == 0 {
			return true
		}
	}
	return len(data) > 0 && data[len(data)-1] == 0
}

// sameChanges reports whether the engine lists what it should.
func sameChanges(got []engine.FileChange, want []string, vague map[string]bool) bool {
	left := map[string]string{} // by path
	for _, line := range want {
		kind, rest, _ := strings.Cut(strings.ToValidUTF8(line, "\uFFFD"), " ")
		left[rest] = kind
	}
	clear := map[string]bool{}
	for line := range vague {
		clear[strings.ToValidUTF8(line, "\uFFFD")] = true
	}
	for _, line := range describe(got) {
		kind, rest, _ := strings.Cut(line, " ")
		if left[rest] != kind && !clear[line] {
			return false
		}
		delete(left, rest)
	}
	return len(left) == 0
}

// describe puts the engine's changes in the same form.
func describe(changes []engine.FileChange) []string {
	var list []string
	for _, c := range changes {
		line := string(c.Kind) + " " + c.Path
		if c.OldPath != "" {
			line += " " + c.OldPath
		}
		list = append(list, line)
	}
	sort.Strings(list)
	return list
}
