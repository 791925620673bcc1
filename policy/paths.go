package policy

import (
	"path"
	"strings"
)

// place is a directory that relative paths start from.
type place struct {
	kind placeKind
	path string // absolute and clean; of a placeHost below a home it begins with "~"
}

type placeKind uint8

const (
	placeVault   placeKind = iota // a path inside the vault
	placeHost                     // a path on the host
	placeUnknown                  // only the run knows
)

// class is one of the kinds of path that rules can name.
type class string

// The classes. They do not depend on what exists: a path is classified by its
// spelling, the working directory and the place of the mount.
const (
	classRoot    class = "$ROOT"    // /, a home, a top-level directory, the vault's root, the working directory or a parent of it, or all entries of one of them
	classSystem  class = "$SYSTEM"  // the part of $ROOT that lies outside the vault
	classOutside class = "$OUTSIDE" // outside the vault, and not in a directory for temporary files
	classTemp    class = "$TEMP"    // below a directory for temporary files
	classDevice  class = "$DEVICE"  // a device, but not one of the harmless ones such as /dev/null
	classDynamic class = "$DYNAMIC" // only the run knows
)

// validClass reports whether s names a class.
func validClass(s string) bool {
	switch class(s) {
	case classRoot, classSystem, classOutside, classTemp, classDevice, classDynamic:
		return true
	}
	return false
}

// locator resolves paths against a working directory.
type locator struct {
	cwd   place
	mount string // clean absolute path of the mount, or ""
}

// is answers whether the word, read as a path, is of the class. An option's value
// (--file=x, of=x) counts as a path too.
func (l locator) is(c class, t token) tri {
	if c == classDynamic {
		return triOf(t.dyn)
	}
	if l.cwd.kind == placeVault && !t.dyn && plainName(t.text) {
		return no
	}
	got := l.pathIs(c, t)
	if _, v, ok := t.splitAssign(); ok {
		got = triOr(got, l.pathIs(c, v))
	}
	return got
}

// plainName reports whether s is surely the name of an entry of the working
// directory, which is of no class while that lies in the vault.
func plainName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case isLetter(c), c >= '0' && c <= '9', c == '_':
		case (c == '.' || c == '-') && i > 0:
		default:
			return false
		}
	}
	return s != ""
}

func (l locator) pathIs(c class, t token) tri {
	if t.dyn {
		return l.dynamicIs(c, t)
	}
	if strings.HasPrefix(t.text, "-") || t.text == "" {
		return no
	}
	return l.placeIs(c, l.resolve(t.text))
}

// placeIs answers whether a place is of the class. In a directory that only the run
// knows, a name that a top-level directory of every host has may mean that one.
func (l locator) placeIs(c class, r resolved) tri {
	if r.is(c, l) {
		return yes
	}
	if (c == classRoot || c == classSystem) && r.kind == placeUnknown {
		switch strings.TrimSuffix(r.path, "/") {
		case "boot", "etc", "home", "lib64", "mnt", "opt", "proc", "root", "sbin", "srv", "sys", "usr", "var", "Users", "System":
			return maybe
		}
	}
	return no
}

// dynamicIs judges by the certain part. A word that begins with something unknown
// may be a root (an empty variable before a slash is the classic), while "may lie
// outside" is so often possible and so seldom true that it does not count.
func (l locator) dynamicIs(c class, t token) tri {
	head := t.head
	if strings.HasPrefix(head, "-") {
		return no
	}
	i := strings.LastIndexByte(head, '/')
	if i < 0 {
		if head == "" && c == classRoot {
			return maybe
		}
		return no
	}
	dir := head[:i]
	if dir == "" {
		dir = "/"
	}
	r := l.resolve(dir)
	below := resolved{kind: r.kind, path: strings.TrimSuffix(r.path, "/") + "/x"}
	switch c {
	case classRoot, classSystem:
		// "/home/$USER" may be a home, and "/tmp/$x" is /tmp where x is empty.
		emptied := i == len(head)-1 && r.kind == placeHost && r.isRoot(l)
		if emptied || below.is(c, l) {
			return maybe
		}
	case classOutside, classTemp, classDevice:
		if dir != "/" {
			return triOf(below.is(c, l))
		}
		return triOf(c == classOutside && r.kind == placeHost)
	}
	return no
}

// resolved is a path with its place. all means "every entry of it".
type resolved struct {
	kind placeKind
	path string
	all  bool
}

// resolve turns the text of a word into a place and a clean path.
func (l locator) resolve(s string) resolved {
	s = strings.TrimPrefix(s, "file://")
	if len(s) >= 2 && s[1] == ':' && (len(s) == 2 || s[2] == '\\' || s[2] == '/') && isLetter(s[0]) {
		s = "/" + s[:1] + "/" + strings.Trim(strings.ReplaceAll(s[2:], `\`, "/"), "/")
	}
	s, all := stripAll(s)
	switch {
	case strings.HasPrefix(s, "/"):
		p := path.Clean(s)
		if in, ok := l.inMount(p); ok {
			return resolved{placeVault, in, all}
		}
		return resolved{placeHost, p, all}
	case strings.HasPrefix(s, "~"):
		return resolved{placeHost, cleanHome(s), all}
	}
	switch l.cwd.kind {
	case placeVault:
		// path.Join stops at "/", so count first how far up the path climbs.
		if climbs(l.cwd.path, s) {
			return l.above(s, all)
		}
		return resolved{placeVault, path.Join(l.cwd.path, s), all}
	case placeHost:
		if strings.HasPrefix(l.cwd.path, "~") {
			return resolved{placeHost, cleanHome(l.cwd.path + "/" + s), all}
		}
		p := path.Join(l.cwd.path, s)
		if in, ok := l.inMount(p); ok {
			return resolved{placeVault, in, all}
		}
		return resolved{placeHost, p, all}
	}
	return resolved{placeUnknown, path.Clean(s), all}
}

// above resolves a path that climbs out of the vault's root: through the mount
// where that is known, to an unnamed place on the host otherwise.
func (l locator) above(s string, all bool) resolved {
	if l.mount != "" {
		p := path.Join(l.mount, l.cwd.path, s)
		if in, ok := l.inMount(p); ok {
			return resolved{placeVault, in, all}
		}
		return resolved{placeHost, p, all}
	}
	if l.cwd.path != "/" {
		s = l.cwd.path[1:] + "/" + s
	}
	p := path.Clean(s)
	if strings.Trim(p, "./") == "" {
		return resolved{placeHost, "/..", all}
	}
	for strings.HasPrefix(p, "../") {
		p = p[3:]
	}
	return resolved{placeHost, "/../" + p, all}
}

// inMount maps an absolute host path into the vault.
func (l locator) inMount(p string) (string, bool) {
	if l.mount == "" || l.mount == "/" {
		return "", false
	}
	if p == l.mount {
		return "/", true
	}
	if rest, ok := strings.CutPrefix(p, l.mount+"/"); ok {
		return "/" + rest, true
	}
	return "", false
}

// stripAll removes a last component that stands for every entry of a directory.
func stripAll(s string) (string, bool) {
	all := false
	for {
		dir, last := "", s
		if i := strings.LastIndexByte(s, '/'); i >= 0 {
			dir, last = s[:i+1], s[i+1:]
		}
		switch last {
		case "*", ".*", "**", ".[!.]*", ".??*", "?*", "[!.]*":
		default:
			return s, all
		}
		all = true
		switch {
		case dir == "":
			return ".", true
		case dir == "/":
			return "/", true
		}
		s = strings.TrimRight(dir, "/")
		if s == "" {
			return "/", true
		}
	}
}

// climbs reports whether rel leads above "/" when it starts from the directory dir.
func climbs(dir, rel string) bool {
	depth := 0
	for c := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if c != "" {
			depth++
		}
	}
	for c := range strings.SplitSeq(rel, "/") {
		switch c {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}

// cleanHome cleans a path that begins with "~" or "~user"; one that climbs out of
// the home becomes a path below /home.
func cleanHome(s string) string {
	name, rest, _ := strings.Cut(s, "/")
	if climbs("/", rest) {
		return path.Join("/home/user", rest)
	}
	return strings.TrimSuffix(name+path.Clean("/"+rest), "/")
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// is answers whether a resolved path belongs to a class.
func (r resolved) is(c class, l locator) bool {
	switch c {
	case classRoot:
		return r.isRoot(l)
	case classSystem:
		return r.kind == placeHost && r.isRoot(l)
	case classOutside:
		return r.kind == placeHost && !r.isTemp() && !r.underDev()
	case classTemp:
		return r.kind == placeHost && r.isTemp()
	case classDevice:
		return r.kind == placeHost && r.underDev() && !harmlessDevice(r.path)
	}
	return false
}

func (r resolved) isRoot(l locator) bool {
	switch r.kind {
	case placeVault:
		if r.path == "/" {
			return true
		}
		if l.cwd.kind != placeVault || r.all {
			return l.cwd.kind == placeVault && r.all && r.path != l.cwd.path && isAncestor(r.path, l.cwd.path)
		}
		return r.path == l.cwd.path || isAncestor(r.path, l.cwd.path)
	case placeUnknown:
		return strings.Trim(r.path, "./") == ""
	}
	if strings.HasPrefix(r.path, "~") {
		return !strings.Contains(r.path, "/")
	}
	first, rest, deeper := strings.Cut(strings.Trim(r.path, "/"), "/")
	switch {
	case !deeper:
		return true
	case !strings.Contains(rest, "/"):
		switch first {
		case "home", "Users", "usr", "var", "c", "C", "mnt", "private":
			return !(r.path == "/var/tmp")
		case "..":
			return false
		}
	}
	return l.cwd.kind == placeHost && isAncestor(r.path, l.cwd.path)
}

// isAncestor reports whether dir is a proper ancestor of p.
func isAncestor(dir, p string) bool {
	return dir != p && (dir == "/" || strings.HasPrefix(p, dir+"/"))
}

func (r resolved) isTemp() bool {
	for _, d := range []string{"/tmp/", "/var/tmp/", "/private/tmp/", "/dev/shm/"} {
		if strings.HasPrefix(r.path+"/", d) {
			return true
		}
	}
	return false
}

func (r resolved) underDev() bool {
	return strings.HasPrefix(r.path, "/dev/") && !strings.HasPrefix(r.path, "/dev/shm/")
}

// harmlessDevice lists what programs write to all day, and the names that bash makes
// network connections of: they are judged as such.
func harmlessDevice(p string) bool {
	switch p {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/random", "/dev/urandom":
		return true
	}
	return strings.HasPrefix(p, "/dev/fd/") || strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/")
}

// argIs is locator.is for one of the arguments, whose place is looked up once.
func (it *item) argIs(i int, c class) tri {
	t := it.args[i]
	if t.dyn || c == classDynamic || strings.IndexByte(t.text, '=') >= 0 {
		return it.loc.is(c, t)
	}
	if t.text == "" || t.text[0] == '-' || it.loc.cwd.kind == placeVault && plainName(t.text) {
		return no
	}
	return it.loc.placeIs(c, it.argAt(i))
}

// argAt is the place that an argument means as a path, which is looked up once.
func (it *item) argAt(i int) resolved {
	if it.at == nil {
		it.at = make([]resolved, len(it.args))
		it.seen = make([]bool, len(it.args))
	}
	if !it.seen[i] {
		it.at[i], it.seen[i] = it.loc.resolve(it.args[i].text), true
	}
	return it.at[i]
}
