package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// Inputs is what the mount workloads read from the host's disk, the same for every
// file system.
type Inputs struct {
	short   bool
	home    string // an empty home directory
	archive string // tar file of the tree
	found   int    // files of the tree that findArgs finds
	matched int    // files of the tree that grepArgs finds
	script  string // SQL
	module  string // Go module
	modules string // host's GOMODCACHE
	cache   string // GOCACHE with what the module needs of others
	large   string // file
}

// enginePackage is what is built.
const enginePackage = "./engine"

// What find and grep look for in the archive's tree.
var (
	findArgs = []string{"tree", "-type", "f", "-size", "+3k"}
	grepArgs = []string{"-rl", "func init()", "tree"}
)

// NewInputs prepares the inputs of groups below dir, which is new. repo is the top of
// this project's source.
func NewInputs(ctx context.Context, dir, repo string, short bool, groups []MountGroup) (*Inputs, error) {
	in := &Inputs{
		short: short, home: filepath.Join(dir, "home"), archive: filepath.Join(dir, "tree.tar"),
		script: filepath.Join(dir, "inserts.sql"), cache: filepath.Join(dir, "cache"), module: filepath.Join(dir, "module"), large: filepath.Join(dir, "large"),
	}
	if err := os.MkdirAll(in.home, 0o755); err != nil {
		return nil, err
	}
	for _, g := range groups {
		for _, step := range g.inputs {
			if err := step(in, ctx, dir, repo); err != nil {
				return nil, fmt.Errorf("inputs of the %s workloads: %w", g.Name, err)
			}
		}
	}
	return in, nil
}

// size is that of the first workload of a group.
func (in *Inputs) size(g MountGroup) int { return g.Workloads[0].SizeOf(in.short) }

// makeArchive packs the tree, and counts what is to be found in it.
func (in *Inputs) makeArchive(ctx context.Context, dir, _ string) error {
	src, err := GoSource(ctx)
	if err != nil {
		return err
	}
	if err := CopyTree(src, filepath.Join(dir, "tree"), in.size(treeGroup())); err != nil {
		return err
	}
	for _, c := range []struct {
		lines *int
		args  []string
	}{{&in.found, append([]string{"find"}, findArgs...)}, {&in.matched, append([]string{"grep"}, grepArgs...)}} {
		out, err := in.run(ctx, dir, nil, c.args[0], c.args[1:]...)
		if err != nil {
			return err
		}
		*c.lines = strings.Count(out, "\n")
	}
	_, err = in.run(ctx, dir, nil, "tar", "-cf", in.archive, "tree")
	return err
}

// makeScript writes what the database runs.
func (in *Inputs) makeScript(context.Context, string, string) error {
	var b strings.Builder
	b.WriteString("PRAGMA journal_mode=WAL;\nPRAGMA synchronous=NORMAL;\nCREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT);\n")
	for i := range in.size(databaseGroup()) {
		fmt.Fprintf(&b, "INSERT INTO t(body) VALUES('%0200d');\n", i)
	}
	b.WriteString("SELECT count(*) FROM t;\n")
	return os.WriteFile(in.script, []byte(b.String()), 0o644)
}

// makeModule copies this project's engine with the list of its dependencies, which
// are in the host's cache of modules because this program was built from them.
func (in *Inputs) makeModule(ctx context.Context, _, repo string) error {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env GOMODCACHE: %w", err)
	}
	in.modules = strings.TrimSpace(string(out))
	for _, name := range []string{"go.mod", "go.sum", "engine"} {
		err := filepath.WalkDir(filepath.Join(repo, name), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			rel, err := filepath.Rel(repo, path)
			if err != nil {
				return err
			}
			to := filepath.Join(in.module, rel)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			return copyFile(path, to)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// makeCache compiles what the engine needs of the standard library and of others.
func (in *Inputs) makeCache(ctx context.Context, dir, _ string) error {
	env := append(in.goEnv(), "GOCACHE="+in.cache, "GOTMPDIR="+dir)
	const others = "{{if .Standard}}{{.ImportPath}}{{else if not .Module.Main}}{{.ImportPath}}{{end}}"
	out, err := in.run(ctx, in.module, env, "go", "list", "-deps", "-f", others, enginePackage)
	if err != nil {
		return err
	}
	_, err = in.run(ctx, in.module, env, "go", append([]string{"build"}, strings.Fields(out)...)...)
	return err
}

// goEnv lets Go build offline, without writing anything outside the variables that
// are added to it.
func (in *Inputs) goEnv() []string {
	return []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0", "GOMODCACHE=" + in.modules}
}

// makeLarge writes text in which no two chunks are equal.
func (in *Inputs) makeLarge(context.Context, string, string) (err error) {
	f, err := os.Create(in.large)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	piece := make([]byte, 0, 1_000_000+2000)
	for i := 0; len(piece) < 1_000_000; i++ {
		piece = append(piece, text(i, 0)...)
	}
	piece = piece[:1_000_000]
	for i := range in.size(largeGroup()) {
		for at := 0; at+8 <= len(piece); at += engine.ChunkSize / 2 {
			binary.BigEndian.PutUint64(piece[at:], uint64(i*len(piece)+at))
		}
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return nil
}
