package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// Sections of the report.
const (
	sectionTrees     = "Mounted trees"
	sectionDatabases = "Mounted databases and builds"
	sectionLarge     = "Mounted large files"
)

// mountReps is how often what changes nothing is measured in a sample.
const mountReps = 5

const unsynced = "nothing is synced"

// treeGroup is the life of a source tree. Each workload works on what the one
// before it has left.
func treeGroup() MountGroup {
	tree := func(name, what, durability string, prepare, do func(context.Context, *Place) error) *MountWorkload {
		return &MountWorkload{
			Name: name, Section: sectionTrees, What: what, Unit: "files", Size: 4000, Short: 1000,
			Durability: durability, Reps: 1, Prepare: prepare, Do: do,
		}
	}
	group := MountGroup{Name: "tree", Workloads: []*MountWorkload{
		tree("mount-untar", "unpack a tar file of the first files, by path, of the Go source tree", unsynced, nil, untar),
		tree("mount-find", "find files by size, the first time after they were unpacked", noWrites, nil, find),
		tree("mount-grep", "grep -r for a fixed string, after one that was not measured", noWrites, grep, grep),
		tree("mount-git-add", "git add -A of all files in a new repository", "git's default: loose objects are not synced", gitInit, git("add", "-A")),
		tree("mount-git-commit", "git commit of all files", "git's default: loose objects are not synced", nil, git("commit", "-q", "-m", "all")),
		tree("mount-git-status", "git status of an unchanged tree, after one that was not measured", noWrites, gitStatus, gitStatus),
		tree("mount-rm", "rm -rf of the tree and its repository", unsynced, nil, remove),
	}}
	for _, w := range group.Workloads {
		if w.Name == "mount-grep" || w.Name == "mount-git-status" {
			w.Reps = mountReps
		}
	}
	group.inputs = []inputStep{(*Inputs).makeArchive}
	return group
}

func untar(ctx context.Context, p *Place) error {
	_, err := p.run(ctx, "tar", "-xf", p.In.archive)
	return err
}

func find(ctx context.Context, p *Place) error { return p.expect(ctx, p.In.found, "find", findArgs...) }

func grep(ctx context.Context, p *Place) error {
	return p.expect(ctx, p.In.matched, "grep", grepArgs...)
}

func gitInit(ctx context.Context, p *Place) error {
	if err := git("init", "-q")(ctx, p); err != nil {
		return err
	}
	return git("config", "gc.auto", "0")(ctx, p)
}

// git runs git in the tree.
func git(args ...string) func(context.Context, *Place) error {
	return func(ctx context.Context, p *Place) error {
		return p.expect(ctx, 0, "git", append([]string{"-C", "tree"}, args...)...)
	}
}

func gitStatus(ctx context.Context, p *Place) error { return git("status", "--porcelain")(ctx, p) }

func remove(ctx context.Context, p *Place) error {
	_, err := p.run(ctx, "rm", "-rf", "tree")
	if _, serr := os.Lstat(p.path("tree")); err == nil && serr == nil {
		err = fmt.Errorf("%s is still there", p.path("tree"))
	}
	return err
}

// databaseGroup is a database as programs keep one.
func databaseGroup() MountGroup {
	return MountGroup{Name: "database", Workloads: []*MountWorkload{{
		Name: "mount-sqlite", Section: sectionDatabases, What: "rows of 200 bytes into a new SQLite database in WAL mode, each its own transaction",
		Unit: "rows", Size: 5000, Short: 1000, Durability: "synchronous=NORMAL: the log is synced at checkpoints only", Reps: 1, Do: inserts,
	}}, inputs: []inputStep{(*Inputs).makeScript}}
}

func inserts(ctx context.Context, p *Place) error {
	out, err := p.run(ctx, "sqlite3", "-init", os.DevNull, "database", ".read "+p.In.script)
	if want := fmt.Sprintf("wal\n%d\n", p.In.size(databaseGroup())); err == nil && out != want {
		err = fmt.Errorf("sqlite3 printed %q, not %q", out, want)
	}
	return err
}

// buildGroup compiles Go.
func buildGroup() MountGroup {
	build := func(name, what string, reps int, prepare func(context.Context, *Place) error) *MountWorkload {
		return &MountWorkload{
			Name: name, Section: sectionDatabases, What: what + "; source, cache and temporary files are inside, modules are read from the host",
			Unit: "builds", Size: 1, Short: 1, Durability: unsynced, Reps: reps, Prepare: prepare, Do: goBuild,
		}
	}
	return MountGroup{Name: "build", Workloads: []*MountWorkload{
		build("mount-go-build", "go build of this project's engine package, with only the packages of others in the cache", 1, copyModule),
		build("mount-go-build-again", "the same build with everything in the cache", mountReps, nil),
	}, inputs: []inputStep{(*Inputs).makeModule, (*Inputs).makeCache}}
}

func copyModule(ctx context.Context, p *Place) error {
	if _, err := p.run(ctx, "cp", "-a", p.In.module, "module"); err != nil {
		return err
	}
	if _, err := p.run(ctx, "cp", "-a", p.In.cache, "cache"); err != nil {
		return err
	}
	return os.Mkdir(p.path("tmp"), 0o755)
}

func goBuild(ctx context.Context, p *Place) error {
	env := append(p.In.goEnv(), "GOCACHE="+p.path("cache"), "GOTMPDIR="+p.path("tmp"))
	out, err := p.In.run(ctx, p.path("module"), env, "go", "build", enginePackage)
	if err == nil && strings.TrimSpace(out) != "" {
		err = fmt.Errorf("go build printed %s", out)
	}
	return err
}

// largeGroup is one file from end to end.
func largeGroup() MountGroup {
	large := func(name, what, durability string) *MountWorkload {
		return &MountWorkload{Name: name, Section: sectionLarge, What: what, Unit: "MB", Size: 512, Short: 64, Durability: durability, Reps: 1}
	}
	write := large("mount-write", "write a file of text from end to end, 1 MiB at a time", "the file is synced at the end")
	write.Do = writeLarge
	warm := large("mount-read-warm", "read the file from end to end, after one time that was not measured", noWrites)
	warm.Prepare, warm.Do, warm.Reps = compareLarge, readLarge, mountReps
	cold := large("mount-read-cold", "read the file from end to end, the file and what it is stored in "+Evicted+" and the file system mounted anew", noWrites)
	cold.Do, cold.Cold = readLarge, true
	return MountGroup{Name: "large", Workloads: []*MountWorkload{write, warm, cold}, inputs: []inputStep{(*Inputs).makeLarge}}
}

func writeLarge(ctx context.Context, p *Place) error {
	_, err := p.run(ctx, "dd", "if="+p.In.large, "of=large", "bs=1M", "conv=fsync", "status=none")
	return err
}

// compareLarge reads the file once, and sees that it is what was written.
func compareLarge(ctx context.Context, p *Place) error {
	_, err := p.run(ctx, "cmp", p.In.large, "large")
	return err
}

func readLarge(ctx context.Context, p *Place) error {
	_, err := p.run(ctx, "dd", "if=large", "of="+os.DevNull, "bs=1M", "status=none")
	return err
}
