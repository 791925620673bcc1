package run

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var errNoCgroup = errors.New("no cgroup v2 here")

// cgroup is a cgroup v2 directory of one run.
type cgroup struct {
	path string
	dir  *os.File // nil once removed
}

// newCgroup makes a cgroup below this process's own. It sets no limits.
func newCgroup() (*cgroup, error) {
	parent, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	sweepOnce.Do(func() { sweep(parent) })
	g := &cgroup{path: filepath.Join(parent, cgroupPrefix+strconv.Itoa(os.Getpid())+"-"+rand.Text()[:12])}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		return nil, err
	}
	if g.dir, err = os.Open(g.path); err != nil {
		return nil, errors.Join(err, os.Remove(g.path))
	}
	return g, nil
}

// cgroupPrefix begins the names of our cgroups; the number of the process that made
// it follows.
const cgroupPrefix = "avfs-"

var sweepOnce sync.Once

// sweep removes what processes that were killed left behind. A cgroup in use cannot
// be removed, and one that is about to be used has a living maker.
func sweep(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix), "-")
		pid, err := strconv.Atoi(number)
		if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = os.Remove(dir)
		}
	}
}

// ownCgroup returns the directory of the cgroup that this process is in.
func ownCgroup() (string, error) {
	mount, root := cgroupMount()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok || mount == "" || strings.Contains(path, "..") {
			continue
		}
		if path, ok = strings.CutPrefix(path, strings.TrimSuffix(root, "/")); ok {
			return filepath.Join(mount, path), nil
		}
	}
	return "", errNoCgroup
}

// cgroupMount returns where cgroup v2 is mounted, and what part of its tree. Both
// are empty without. The format is that of proc(5), mountinfo.
var cgroupMount = sync.OnceValues(func() (mount, root string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(text)) {
		where, what, ok := strings.Cut(line, " - ")
		f := strings.Fields(where)
		if ok && len(f) > 5 && strings.HasPrefix(what, "cgroup2 ") {
			return f[4], f[3]
		}
	}
	return "", ""
})

func (g *cgroup) fd() int { return int(g.dir.Fd()) }

// members lists the living processes in the cgroup and those below it.
func (g *cgroup) members() map[int]bool {
	if g == nil || g.dir == nil {
		return nil
	}
	set := map[int]bool{}
	for _, dir := range g.tree() {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue // removed meanwhile, and so empty
		}
		for _, f := range bytes.Fields(text) {
			if pid, err := strconv.Atoi(string(f)); err == nil {
				set[pid] = true
			}
		}
	}
	return set
}

// tree lists the cgroup's directory and all below it, parents first.
func (g *cgroup) tree() []string {
	list := []string{g.path}
	for i := 0; i < len(list); i++ {
		entries, err := os.ReadDir(list[i])
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				list = append(list, filepath.Join(list[i], e.Name()))
			}
		}
	}
	return list
}

// kill ends all members at once. Linux before 5.14 has no such file.
func (g *cgroup) kill() error {
	return os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0)
}

// remove removes the cgroup and what the command made below it. Processes that
// were just reaped can keep it busy for a moment.
func (g *cgroup) remove() error {
	if g.dir == nil {
		return nil
	}
	closeAll(g.dir)
	g.dir = nil
	var err error
	for range 20 {
		if err = g.removeTree(); !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

func (g *cgroup) removeTree() error {
	if err := os.Remove(g.path); err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	dirs := g.tree()
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := os.Remove(dirs[i]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
