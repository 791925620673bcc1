package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// randomLines makes n changes for play in a tree, which it keeps up to date. Every text
// that is written is new.
func randomLines(rng *rand.Rand, now tree, n int, tag string, renames bool) string {
	var b strings.Builder
	dirs := []string{"", "d0/", "d1/", "d1/d2/", "d3/"}
	pick := func(keep func(string) bool) string {
		var list []string
		for p := range now {
			if keep(p) {
				list = append(list, p)
			}
		}
		if len(list) == 0 {
			return ""
		}
		sort.Strings(list)
		return list[rng.IntN(len(list))]
	}
	for i := range n {
		switch k := rng.IntN(8); {
		case k < 4:
			p := dirs[rng.IntN(len(dirs))] + fmt.Sprintf("f%d", rng.IntN(5))
			if now[p] == "" && rng.IntN(2) == 0 {
				p = dirs[rng.IntN(len(dirs))] + "n" + tag + fmt.Sprint(i)
			}
			if rng.IntN(3) == 0 && now[p] != "" { // as editors that write a new file do
				fmt.Fprintf(&b, "rm %s\n", p)
			}
			now[p] = tag + fmt.Sprint(i)
			for up := upPath(p); up != ""; up = upPath(up) {
				now[up] = "dir"
			}
			fmt.Fprintf(&b, "w %s %s\n", p, now[p])
		case k < 6 || !renames:
			if p := pick(func(string) bool { return true }); p != "" {
				for q := range now {
					if q == p || strings.HasPrefix(q, p+"/") {
						delete(now, q)
					}
				}
				fmt.Fprintf(&b, "rm %s\n", p)
			}
		default:
			from := pick(func(string) bool { return true })
			to := dirs[rng.IntN(len(dirs))] + fmt.Sprintf("m%s%d", tag, i)
			if from == "" || strings.HasPrefix(to, from+"/") {
				continue
			}
			for up := upPath(to); up != ""; up = upPath(up) {
				now[up] = "dir"
			}
			for q, what := range tree(cloneTree(now)) {
				if q == from || strings.HasPrefix(q, from+"/") {
					delete(now, q)
					now[to+q[len(from):]] = what
				}
			}
			fmt.Fprintf(&b, "mv %s %s\n", from, to)
		}
	}
	return b.String()
}

func cloneTree(t tree) tree {
	c := tree{}
	for p, what := range t {
		c[p] = what
	}
	return c
}

// pathMerge is the plain rule, path by path, for trees without renames. ok is false
// where there is a conflict.
func pathMerge(base, ours, theirs tree) (want tree, ok bool) {
	all := tree{}
	for _, t := range []tree{base, ours, theirs} {
		for p := range t {
			all[p] = ""
		}
	}
	want, ok = tree{}, true
	for p := range all {
		b, o, t := base[p], ours[p], theirs[p]
		got := o
		switch {
		case o == t || t == b:
		case o == b:
			got = t
		default:
			return nil, false
		}
		if got != "" {
			want[p] = got
		}
		for up := upPath(p); up != ""; up = upPath(up) {
			// Something new in a directory that the other side deleted.
			if b == "" && base[up] == "dir" && (t != "" && ours[up] == "" || o != "" && theirs[up] == "") {
				return nil, false
			}
		}
	}
	return want, ok
}

// TestMergeRandom compares merges with a plain model, without renames.
func TestMergeRandom(t *testing.T) {
	clean := 0
	rounds := roundsOf(150)
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 11))
		base := tree{}
		baseLines := randomLines(rng, base, 12, "b", false)
		ours, theirs := cloneTree(base), cloneTree(base)
		ourLines := randomLines(rng, ours, rng.IntN(5), "o", false)
		theirLines := randomLines(rng, theirs, rng.IntN(5), "t", false)
		st := mergeVaults(t, baseLines, ourLines, theirLines)
		res, err := st.Merge(context.Background(), "src", "dst", nil)
		want, ok := pathMerge(base, ours, theirs)
		what := fmt.Sprintf("seed %d\nbase:\n%sours:\n%stheirs:\n%s", seed, baseLines, ourLines, theirLines)
		switch {
		case ok != (err == nil):
			t.Fatalf("%s: clean is %v for the model, %v %v for the merge", what, ok, err, conflictsOf(res))
		case ok:
			clean++
			sameTree(t, what, treeOf(t, vaultOf(t, st, "dst")), want)
		}
		sound(t, st, what)
	}
	if clean < rounds/4 || clean == rounds {
		t.Errorf("%d of %d merges were clean", clean, rounds)
	}
}

// roundsOf is n, or fewer in a short run.
func roundsOf(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

// texts counts the texts of files in a tree.
func texts(t tree) map[string]int {
	all := map[string]int{}
	for _, what := range t {
		if what != "dir" {
			all[what]++
		}
	}
	return all
}

// TestMergeRandomRenames merges trees in which files and directories also moved: what
// either side wrote is in a clean merge, and what either side took away is not.
func TestMergeRandomRenames(t *testing.T) {
	ctx := context.Background()
	clean := 0
	rounds := roundsOf(300)
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 12))
		base := tree{}
		baseLines := randomLines(rng, base, 14, "b", false)
		ours, theirs := cloneTree(base), cloneTree(base)
		ourLines := randomLines(rng, ours, rng.IntN(4), "o", true)
		theirLines := randomLines(rng, theirs, rng.IntN(4), "t", true)
		st := mergeVaults(t, baseLines, ourLines, theirLines)
		dst := vaultOf(t, st, "dst")
		what := fmt.Sprintf("seed %d\nbase:\n%sours:\n%stheirs:\n%s", seed, baseLines, ourLines, theirLines)
		res, err := st.Merge(ctx, "src", "dst", nil)
		switch engine.KindOf(err) {
		case "":
			clean++
			in := texts(treeOf(t, dst))
			b, o, th := texts(base), texts(ours), texts(theirs)
			for _, all := range []map[string]int{b, o, th} {
				for text := range all {
					keep := o[text] > 0 && th[text] > 0 || b[text] == 0
					if keep != (in[text] > 0) {
						t.Fatalf("%s: text %s is there: %v, %v", what, text, in[text] > 0, treeOf(t, dst))
					}
				}
			}
		case engine.Conflict:
			o := &engine.MergeOptions{Theirs: []string{"."}}
			if seed%2 == 0 {
				o = &engine.MergeOptions{Ours: []string{"."}}
			}
			if res, err = st.Merge(ctx, "src", "dst", o); err != nil && engine.KindOf(err) != engine.Conflict {
				t.Fatalf("%s: resolved: %v", what, err)
			}
			if err != nil && slices.ContainsFunc(res.Conflicts, func(c engine.MergeConflict) bool { return c.Kind != engine.ConflictRenameRename }) {
				t.Fatalf("%s: resolved: %v", what, conflictsOf(res))
			}
		default:
			t.Fatalf("%s: %v", what, err)
		}
		if err == nil {
			after := treeOf(t, dst)
			again, err := st.Merge(ctx, "src", "dst", nil)
			if err != nil || again.Event != 0 || again.Changed != 0 {
				t.Fatalf("%s: a second merge: %+v, %v", what, again.Changes, err)
			}
			sameTree(t, "after a second merge", treeOf(t, dst), after)
		}
		sound(t, st, what)
	}
	if clean < rounds/4 || clean == rounds {
		t.Errorf("%d of %d merges were clean", clean, rounds)
	}
}

// git runs git in dir and reports whether it succeeded.
func git(t *testing.T, dir string, args ...string) bool {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-c", "merge.renames=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	return cmd.Run() == nil
}

// putTree makes the files of a tree those of a work tree.
func putTree(t *testing.T, dir string, files tree) {
	t.Helper()
	if !git(t, dir, "rm", "-rq", "--ignore-unmatch", ".") {
		t.Fatal("git rm failed")
	}
	for p, what := range files {
		if what == "dir" {
			continue
		}
		full := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(strings.ReplaceAll(what, "/", "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !git(t, dir, "add", "-A") || !git(t, dir, "commit", "-qm", "x", "--allow-empty") {
		t.Fatal("git commit failed")
	}
}

// readTree reads the files of a work tree.
func readTree(t *testing.T, dir string) tree {
	t.Helper()
	all := tree{}
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == ".git":
			return filepath.SkipDir
		case e.IsDir():
			return nil
		}
		data, err := os.ReadFile(p)
		rel, rerr := filepath.Rel(dir, p)
		if err == nil {
			all[rel], err = strings.ReplaceAll(string(data), "\n", "/"), rerr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// randomTexts changes lines of the files of a tree, and adds and removes some.
func randomTexts(rng *rand.Rand, now tree, n int, tag string) string {
	var b strings.Builder
	for i := range n {
		p := fmt.Sprintf("d%d/f%d", rng.IntN(3), rng.IntN(4))
		lines := strings.SplitAfter(now[p], "/")
		switch k := rng.IntN(8); {
		case now[p] == "":
			now[p] = strings.Repeat(tag+"/", 1+rng.IntN(3))
		case k == 0:
			delete(now, p)
			fmt.Fprintf(&b, "rm %s\n", p)
			continue
		default:
			lines[rng.IntN(len(lines))] = fmt.Sprintf("%s%d/", tag, i)
			now[p] = strings.Join(lines, "")
		}
		fmt.Fprintf(&b, "w %s %s\n", p, now[p])
	}
	return b.String()
}

// Where git merges two trees, Merge does, with the same files.
func TestMergeLikeGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	rounds, clean := 40, 0
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 13))
		base := tree{}
		baseLines := ""
		for i := range 12 {
			p, text := fmt.Sprintf("d%d/f%d", i%3, i%4), ""
			for line := range 12 {
				text += fmt.Sprintf("l%d/", line)
			}
			base[p] = text
			baseLines += fmt.Sprintf("w %s %s\n", p, text)
		}
		ours, theirs := cloneTree(base), cloneTree(base)
		st := mergeVaults(t, baseLines, randomTexts(rng, ours, 4, "o"), randomTexts(rng, theirs, 4, "t"))
		dir := t.TempDir()
		if !git(t, dir, "init", "-q", "-b", "main") {
			t.Fatal("git init failed")
		}
		putTree(t, dir, base)
		git(t, dir, "branch", "theirs")
		putTree(t, dir, ours)
		git(t, dir, "switch", "-q", "theirs")
		putTree(t, dir, theirs)
		git(t, dir, "switch", "-q", "main")
		ok := git(t, dir, "merge", "-q", "-m", "m", "theirs")
		res, err := st.Merge(context.Background(), "src", "dst", nil)
		if emptied := engine.KindOf(err) == engine.Conflict && onlyDirs(res); ok != (err == nil) && !emptied {
			t.Errorf("seed %d: git says %v, the merge %v %v", seed, ok, err, conflictsOf(res))
			continue
		}
		if ok && err == nil {
			clean++
			got := treeOf(t, vaultOf(t, st, "dst"))
			for p, what := range got {
				if what == "dir" {
					delete(got, p)
				}
			}
			sameTree(t, fmt.Sprintf("seed %d", seed), got, readTree(t, dir))
		}
	}
	if clean == 0 || clean == rounds {
		t.Errorf("%d of %d merges were clean", clean, rounds)
	}
}

// onlyDirs reports whether all conflicts are about directories, which git has none of.
func onlyDirs(res engine.MergeResult) bool {
	return !slices.ContainsFunc(res.Conflicts, func(c engine.MergeConflict) bool { return c.Ours == nil || c.Ours.Type != "dir" })
}
