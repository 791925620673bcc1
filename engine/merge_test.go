package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// play makes changes in a vault, one a line: w PATH TEXT, d DIR, rm PATH, mv FROM TO,
// ln FILE NAME, sl NAME TARGET, ff NAME (a FIFO), chmod PATH MODE, xa PATH NAME VALUE.
// Spaces in a text are underscores, line ends slashes.
func play(t testing.TB, v *engine.Vault, lines string) {
	t.Helper()
	for line := range strings.SplitSeq(lines, "\n") {
		if f := strings.Fields(line); len(f) > 0 {
			if err := playLine(context.Background(), v, f[0], append(f[1:], "", "", "")); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
}

func playLine(ctx context.Context, v *engine.Vault, op string, arg []string) error {
	up, name := "", arg[0]
	if i := strings.LastIndexByte(arg[0], '/'); i >= 0 {
		up, name = arg[0][:i], arg[0][i+1:]
	}
	if op == "ln" {
		up, name = "", arg[1]
		if i := strings.LastIndexByte(arg[1], '/'); i >= 0 {
			up, name = arg[1][:i], arg[1][i+1:]
		}
	}
	dir, err := v.MkdirAll(ctx, up, 0o755, engine.Owner{})
	if err != nil {
		return err
	}
	switch op {
	case "w":
		text := strings.NewReplacer("_", " ", "/", "\n").Replace(arg[1])
		_, err = v.WriteFile(ctx, arg[0], strings.NewReader(text), nil)
		return err
	case "d":
		_, err = v.MkdirAll(ctx, arg[0], 0o755, engine.Owner{})
		return err
	case "rm":
		return v.RemoveAll(ctx, arg[0])
	case "mv":
		from, ferr := v.Resolve(ctx, upPath(arg[0]), false)
		to, terr := v.MkdirAll(ctx, upPath(arg[1]), 0o755, engine.Owner{})
		if err := errors.Join(ferr, terr); err != nil {
			return err
		}
		return v.Rename(ctx, from.Ino, basePath(arg[0]), to.Ino, basePath(arg[1]), 0)
	case "sl":
		_, err = v.Symlink(ctx, dir.Ino, name, arg[1], engine.Owner{})
		return err
	case "ff":
		_, err = v.Mknod(ctx, dir.Ino, name, engine.TypeFIFO|0o644, 0, engine.Owner{})
		return err
	}
	a, err := v.Resolve(ctx, arg[0], false)
	if err != nil {
		return err
	}
	switch op {
	case "ln":
		_, err = v.Link(ctx, a.Ino, dir.Ino, name)
	case "chmod":
		mode, perr := strconv.ParseUint(arg[1], 8, 32)
		m := uint32(mode)
		_, err = v.SetAttr(ctx, a.Ino, engine.SetAttr{Mode: &m})
		err = errors.Join(err, perr)
	case "xa":
		err = v.SetXattr(ctx, a.Ino, arg[1], []byte(arg[2]), 0)
	default:
		err = fmt.Errorf("no operation %q", op)
	}
	return err
}

func upPath(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

func basePath(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// tree describes a state, path by path: "dir", "text", "-> target", with the mode where
// it is not usual, attributes, and the first name of a file that has several.
func treeOf(t testing.TB, v *engine.Vault) map[string]string {
	t.Helper()
	ctx := context.Background()
	all, first := map[string]string{}, map[engine.Ino]string{}
	err := v.Walk(ctx, "", func(p string, a engine.Attr) error {
		if a.Ino == engine.RootIno {
			return nil
		}
		d, usual := "", uint32(0o644)
		switch {
		case a.IsDir():
			d, usual = "dir", 0o755
		case a.IsSymlink():
			target, err := v.Readlink(ctx, a.Ino)
			if err != nil {
				return err
			}
			d, usual = "-> "+target, 0o777
		case a.IsRegular():
			data, err := content(ctx, v, a)
			if err != nil {
				return err
			}
			d = strings.ReplaceAll(string(data), "\n", "/")
		default:
			d = fmt.Sprintf("%o", a.Mode&engine.TypeMask)
		}
		if a.Mode&0o7777 != usual {
			d += fmt.Sprintf(" %o", a.Mode&0o7777)
		}
		names, err := v.ListXattr(ctx, a.Ino)
		if err != nil {
			return err
		}
		for _, name := range names {
			value, err := v.GetXattr(ctx, a.Ino, name)
			if err != nil {
				return err
			}
			d += " " + name + "=" + string(value)
		}
		if !a.IsDir() && a.Nlink > 1 {
			if first[a.Ino] == "" {
				first[a.Ino] = p
			}
			d += " = " + first[a.Ino]
		}
		all[strings.TrimPrefix(p, "/")] = d
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// mergeTest is a base, what each side did to it, and what is expected: a tree, or
// conflicts, each "kind path".
type mergeTest struct {
	name, base, ours, theirs string
	opts                     engine.MergeOptions
	want                     map[string]string
	conflicts                []string
}

type tree = map[string]string

var mergeTests = []mergeTest{
	{
		name: "idle sandbox", base: "w a 1", ours: "w a 2\nw only m", theirs: "",
		want: tree{"a": "2", "only": "m"},
	},
	{
		name: "apart", base: "w a 1\nw b 1\nw d/c 1", ours: "w a 2\nrm d/c", theirs: "w b 2\nw e/f/g new",
		want: tree{"a": "2", "b": "2", "d": "dir", "e": "dir", "e/f": "dir", "e/f/g": "new"},
	},
	{
		name: "same on both", base: "w a 1\nw b 1\nw c 1", ours: "w a 2\nrm b\nw n x\nmv c d", theirs: "w a 2\nrm b\nw n x\nmv c d",
		want: tree{"a": "2", "n": "x", "d": "1"},
	},
	{
		name: "lines", base: "w t 1/2/3/4/5/", ours: "w t A/2/3/4/5/", theirs: "w t 1/2/3/4/B/",
		want: tree{"t": "A/2/3/4/B/"},
	},
	{
		name: "lines clash", base: "w t 1/2/3/\nw u 1", ours: "w t 1/A/3/", theirs: "w t 1/B/3/\nw u 2",
		conflicts: []string{"content t"},
	},
	{
		name: "lines clash, ours", base: "w t 1/2/3/\nw u 1", ours: "w t 1/A/3/", theirs: "w t 1/B/3/\nw u 2",
		opts: engine.MergeOptions{Ours: []string{"t"}}, want: tree{"t": "1/A/3/", "u": "2"},
	},
	{
		name: "lines clash, theirs", base: "w t 1/2/3/\nw u 1", ours: "w t 1/A/3/", theirs: "w t 1/B/3/\nw u 2",
		opts: engine.MergeOptions{Theirs: []string{"."}}, want: tree{"t": "1/B/3/", "u": "2"},
	},
	{
		name: "markers", base: "w t 1/2/3/", ours: "w t 1/A/3/", theirs: "w t 1/B/3/", opts: engine.MergeOptions{Markers: true},
		want: tree{"t": "1/<<<<<<< dst/A/=======/B/>>>>>>> src/3/"},
	},
	{
		name: "binary", base: "w t 1\x002", ours: "w t 1\x003", theirs: "w t 1\x004", opts: engine.MergeOptions{Markers: true},
		conflicts: []string{"binary t"},
	},
	{name: "edit, delete", base: "w a 1\nw b 1", ours: "w a 2", theirs: "rm a\nrm b", conflicts: []string{"edit_delete a"}},
	{
		name: "edit, delete, theirs", base: "w d/a 1\nw b 1", ours: "w d/a 2", theirs: "rm d\nrm b",
		opts: engine.MergeOptions{Theirs: []string{"/d"}}, want: tree{},
	},
	{
		name: "edit, delete, ours", base: "w d/a 1\nw d/b 1", ours: "w d/a 2", theirs: "rm d",
		opts: engine.MergeOptions{Ours: []string{"d"}}, want: tree{"d": "dir", "d/a": "2"},
	},
	{name: "delete, edit", base: "w a 1", ours: "rm a", theirs: "w a 2", conflicts: []string{"delete_edit a"}},
	{
		name: "delete, edit, theirs", base: "w d/e/a 1", ours: "rm d", theirs: "w d/e/a 2\nw d/n 1",
		opts: engine.MergeOptions{Theirs: []string{"."}}, want: tree{"d": "dir", "d/e": "dir", "d/e/a": "2", "d/n": "1"},
	},
	{
		name: "delete, edit, ours", base: "w d/e/a 1", ours: "rm d", theirs: "w d/e/a 2\nw d/n 1",
		opts: engine.MergeOptions{Ours: []string{"."}}, want: tree{},
	},
	{name: "add below deleted", base: "w d/a 1", ours: "rm d", theirs: "w d/b 1", conflicts: []string{"delete_edit d/b"}},
	{name: "delete with addition", base: "w d/a 1", ours: "w d/b 1", theirs: "rm d", conflicts: []string{"edit_delete d"}},
	{
		name: "delete with addition, ours", base: "w d/a 1", ours: "w d/b 1", theirs: "rm d",
		opts: engine.MergeOptions{Ours: []string{"d"}}, want: tree{"d": "dir", "d/a": "1", "d/b": "1"},
	},
	{
		name: "delete with addition, theirs", base: "w d/a 1", ours: "w d/b/c 1", theirs: "rm d",
		opts: engine.MergeOptions{Theirs: []string{"d"}}, want: tree{},
	},
	{name: "add, add", base: "", ours: "w a 1", theirs: "w a 2", conflicts: []string{"add_add a"}},
	{
		name: "add, add below one directory", base: "", ours: "w d/a 1", theirs: "w d/b 2",
		want: tree{"d": "dir", "d/a": "1", "d/b": "2"},
	},
	{name: "add, add of types", base: "", ours: "d a", theirs: "w a 2", conflicts: []string{"directory_file a"}},
	{name: "type", base: "w a 1", ours: "rm a\nsl a x", theirs: "w a 2", conflicts: []string{"type a"}},
	{name: "type alone", base: "w a 1", ours: "w b 1", theirs: "rm a\nsl a x", want: tree{"a": "-> x", "b": "1"}},
	{
		name: "directory becomes file", base: "w d/a 1\nw d/e/b 1", ours: "w c 1", theirs: "rm d\nw d file",
		want: tree{"d": "file", "c": "1"},
	},
	{
		name: "file becomes directory", base: "w d 1", ours: "w c 1", theirs: "rm d\nw d/e/f 1",
		want: tree{"d": "dir", "d/e": "dir", "d/e/f": "1", "c": "1"},
	},
	{
		name: "directory becomes file with addition", base: "w d/a 1", ours: "w d/b 1", theirs: "rm d\nw d file",
		conflicts: []string{"directory_file d"},
	},
	{
		name: "directory becomes file with addition, theirs", base: "w d/a 1", ours: "w d/b 1", theirs: "rm d\nw d file",
		opts: engine.MergeOptions{Theirs: []string{"d"}}, want: tree{"d": "file"},
	},
	{
		name: "rename, edit", base: "w a 1\nw b 1", ours: "mv a x\nw b 2", theirs: "w a 2\nmv b y",
		want: tree{"x": "2", "y": "2"},
	},
	{
		name: "rename and edit, edit", base: "w a 1/2/3/4/", ours: "w a 0/2/3/4/", theirs: "mv a b\nw b 1/2/3/5/",
		want: tree{"b": "0/2/3/5/"},
	},
	{
		name: "moved directory with addition becomes file, ours", base: "w d/a 1", ours: "mv d e\nw e/n 1", theirs: "rm d\nw d 2",
		opts: engine.MergeOptions{Ours: []string{"."}}, want: tree{"e": "dir", "e/a": "1", "e/n": "1"},
	},
	{name: "delete of what was moved onto another name", base: "w h 1\nw a 2", ours: "mv h a", theirs: "rm h", conflicts: []string{"rename_delete a"}},
	{
		name: "delete of what was exchanged", base: "w h 5\nw a 6\nd b", ours: "mv h b/h\nmv b/h swap\nmv a b/h\nmv swap a", theirs: "rm h",
		conflicts: []string{"rename_delete a"},
	},
	{
		name: "delete of what was moved onto another name, ours", base: "w h 1\nw a 2", ours: "mv h a", theirs: "rm h\nw n 1",
		opts: engine.MergeOptions{Ours: []string{"a"}}, want: tree{"a": "1", "n": "1"},
	},
	{
		name: "delete of what was moved onto another name, theirs", base: "w h 1\nw a 2", ours: "mv h a", theirs: "rm h",
		opts: engine.MergeOptions{Theirs: []string{"a"}}, want: tree{"a": "2"},
	},
	{name: "rename, rename", base: "w a 1", ours: "mv a b", theirs: "mv a c", conflicts: []string{"rename_rename b"}},
	{
		name: "rename, rename, theirs", base: "w a 1", ours: "mv a b", theirs: "mv a c",
		opts: engine.MergeOptions{Theirs: []string{"a"}}, want: tree{"c": "1"},
	},
	{name: "rename, delete", base: "w a 1\nw b 1", ours: "mv a c\nrm b", theirs: "rm a\nmv b d", conflicts: []string{"rename_delete c", "rename_delete d"}},
	{
		name: "rename onto addition", base: "w a 1", ours: "w b 2", theirs: "mv a b", conflicts: []string{"rename_add b"},
	},
	{
		name: "rename onto addition, ours", base: "w a 1", ours: "w b 2", theirs: "mv a b",
		opts: engine.MergeOptions{Ours: []string{"b"}}, want: tree{"a": "1", "b": "2"},
	},
	{
		name: "rename onto addition, theirs", base: "w a 1", ours: "w b 2", theirs: "mv a b",
		opts: engine.MergeOptions{Theirs: []string{"b"}}, want: tree{"b": "1"},
	},
	{
		name: "directory moved, added and edited below", base: "w d/a 1\nw d/b 1", ours: "mv d e", theirs: "w d/a 2\nw d/n/x 1\nrm d/b",
		want: tree{"e": "dir", "e/a": "2", "e/n": "dir", "e/n/x": "1"},
	},
	{
		name: "directory moved by theirs", base: "w d/a 1\nw d/b 1", ours: "w d/a 2\nw d/n 1", theirs: "mv d e/f\nw e/f/b 2",
		want: tree{"e": "dir", "e/f": "dir", "e/f/a": "2", "e/f/b": "2", "e/f/n": "1"},
	},
	{
		name: "file moved out of a directory that goes", base: "w d/a 1\nw d/b 1", ours: "w d/a 2", theirs: "mv d/a a\nrm d",
		want: tree{"a": "2"},
	},
	{
		name: "moved directories into each other", base: "w a/x 1\nw b/y 1", ours: "mv a b/a", theirs: "mv b a/b",
		conflicts: []string{"rename_rename b"},
	},
	{name: "moved into deleted", base: "w d/x 1\nw a 1", ours: "rm d", theirs: "mv a d/a", conflicts: []string{"delete_edit a"}},
	{
		name: "moved into deleted, theirs", base: "w d/x 1\nw a 1", ours: "rm d", theirs: "mv a d/a",
		opts: engine.MergeOptions{Theirs: []string{"a"}}, want: tree{"d": "dir", "d/a": "1"},
	},
	{
		name: "moved directory deleted", base: "w d/x 1\nw d/y 1", ours: "mv d e", theirs: "rm d", conflicts: []string{"rename_delete e"},
	},
	{
		name: "moved directory deleted, ours", base: "w d/x 1\nw d/y 1", ours: "mv d e", theirs: "rm d\nw f 1",
		opts: engine.MergeOptions{Ours: []string{"e"}}, want: tree{"e": "dir", "e/x": "1", "e/y": "1", "f": "1"},
	},
	{
		name: "moved directory deleted, theirs", base: "w d/x 1\nw d/y 1", ours: "mv d e", theirs: "rm d",
		opts: engine.MergeOptions{Theirs: []string{"e"}}, want: tree{},
	},
	{
		name: "deleted directory moved, theirs", base: "w d/x/z 1\nw d/y 1", ours: "rm d", theirs: "mv d e\nw e/y 2",
		opts: engine.MergeOptions{Theirs: []string{"."}}, want: tree{"e": "dir", "e/x": "dir", "e/x/z": "1", "e/y": "2"},
	},
	{
		name: "swap", base: "w a 1\nw b 2\nw c 3", ours: "w c 4", theirs: "mv a t\nmv b a\nmv t b",
		want: tree{"a": "2", "b": "1", "c": "4"},
	},
	{
		name: "chain of renames", base: "w a 1\nw b 2", ours: "w n 1", theirs: "mv b c\nmv a b",
		want: tree{"b": "1", "c": "2", "n": "1"},
	},
	{name: "mode", base: "w a 1\nw b 1", ours: "chmod a 755\nw b 2", theirs: "w a 2\nchmod b 600", want: tree{"a": "2 755", "b": "2 600"}},
	{name: "mode clash", base: "w a 1", ours: "chmod a 755", theirs: "chmod a 600", conflicts: []string{"mode a"}},
	{
		name: "attributes", base: "w a 1\nxa a user.x 1\nxa a user.y 1", ours: "xa a user.x 2", theirs: "xa a user.y 2\nxa a user.z 3",
		want: tree{"a": "1 user.x=2 user.y=2 user.z=3"},
	},
	{name: "attributes clash", base: "w a 1\nxa a user.x 1", ours: "xa a user.x 2", theirs: "xa a user.x 3", conflicts: []string{"xattr a"}},
	{
		name: "links", base: "w a 1\nln a b\nw c 1", ours: "w c 2\nln a z", theirs: "w a 2\nw n 1\nln n m\nsl s x\nff p",
		want: tree{"a": "2 = a", "b": "2 = a", "z": "2 = a", "c": "2", "n": "1 = m", "m": "1 = m", "s": "-> x", "p": "10000"},
	},
	{
		name: "link broken", base: "w a 1\nln a b", ours: "w c 2", theirs: "rm b\nw b 2",
		want: tree{"a": "1", "b": "2", "c": "2"},
	},
	{
		name: "link added to an edited file", base: "w a 1\nw d/x 1", ours: "w a 2", theirs: "ln a d/b",
		want: tree{"a": "2 = a", "d": "dir", "d/b": "2 = a", "d/x": "1"},
	},
	{
		name: "link in place of a file", base: "w a 1\nw b 2", ours: "w c 1", theirs: "rm b\nln a b",
		want: tree{"a": "1 = a", "b": "1 = a", "c": "1"},
	},
	{name: "link targets clash", base: "sl a x", ours: "rm a\nsl a y", theirs: "rm a\nsl a z", conflicts: []string{"content a"}},
	{
		name: "some paths", base: "w a 1\nw d/b 1\nw d/c 1", ours: "w a 2", theirs: "w a 3\nw d/b 2\nrm d/c\nw e 1",
		opts: engine.MergeOptions{Paths: []string{"d"}}, want: tree{"a": "2", "d": "dir", "d/b": "2"},
	},
	{
		name: "some paths of a new directory", base: "w a 1", ours: "w a 2", theirs: "w d/e/b 2\nw d/e/c 1\nw d/f 1",
		opts: engine.MergeOptions{Paths: []string{"d/e/b"}}, want: tree{"a": "2", "d": "dir", "d/e": "dir", "d/e/b": "2"},
	},
	{
		name: "some paths of a directory that goes", base: "w d/a 1\nw d/b 1", ours: "w x 1", theirs: "rm d",
		opts: engine.MergeOptions{Paths: []string{"d/a"}}, want: tree{"d": "dir", "d/b": "1", "x": "1"},
	},
	{
		name: "replaced directory", base: "w d/old 1", ours: "w x 1", theirs: "rm d\nw d/new 1",
		want: tree{"d": "dir", "d/new": "1", "x": "1"},
	},
}

// mergeVaults makes the vaults src and dst, forks of a base.
func mergeVaults(t testing.TB, base, ours, theirs string) *engine.Store {
	t.Helper()
	ctx := context.Background()
	st, err := engine.Create(ctx, newMem(t), quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	dst, err := st.CreateVault(ctx, "dst")
	if err != nil {
		t.Fatal(err)
	}
	play(t, dst, base)
	src, err := st.Fork(ctx, "dst", "src")
	if err != nil {
		t.Fatal(err)
	}
	play(t, dst, ours)
	play(t, src, theirs)
	return st
}

func vaultOf(t testing.TB, st *engine.Store, name string) *engine.Vault {
	t.Helper()
	v, err := st.Vault(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sameTree(t testing.TB, what string, got, want tree) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	all := slices.Collect(maps.Keys(got))
	all = append(all, slices.Collect(maps.Keys(want))...)
	sort.Strings(all)
	for _, p := range slices.Compact(all) {
		if got[p] != want[p] {
			t.Errorf("%s: %s is %q, not %q", what, p, got[p], want[p])
		}
	}
}

func conflictsOf(res engine.MergeResult) (list []string) {
	for _, c := range res.Conflicts {
		list = append(list, string(c.Kind)+" "+c.Path)
	}
	sort.Strings(list)
	return list
}

func TestMerge(t *testing.T) {
	ctx := context.Background()
	for _, c := range mergeTests {
		t.Run(c.name, func(t *testing.T) {
			st := mergeVaults(t, c.base, c.ours, c.theirs)
			dst := vaultOf(t, st, "dst")
			before := treeOf(t, dst)
			dry := c.opts
			dry.DryRun = true
			plan, perr := st.Merge(ctx, "src", "dst", &dry)
			sameTree(t, "after a dry run", treeOf(t, dst), before)
			res, err := st.Merge(ctx, "src", "dst", &c.opts)
			if engine.KindOf(err) != engine.KindOf(perr) || !slices.EqualFunc(plan.Changes, res.Changes, sameChange) {
				t.Errorf("dry run says %v %+v, the merge %v %+v", perr, plan.Changes, err, res.Changes)
			}
			if len(c.conflicts) > 0 {
				if engine.KindOf(err) != engine.Conflict || !slices.Equal(conflictsOf(res), c.conflicts) {
					t.Errorf("conflicts %v, %v, not %v", conflictsOf(res), err, c.conflicts)
				}
				sameTree(t, "after conflicts", treeOf(t, dst), before)
				sound(t, st, "after conflicts")
				return
			}
			if err != nil {
				t.Fatal(err, conflictsOf(res))
			}
			sameTree(t, "merged", treeOf(t, dst), c.want)
			if res.Event != 0 {
				checkMergeEvent(t, st, dst, res, before)
			}
			sound(t, st, "merged")
		})
	}
}

func sameChange(a, b engine.FileChange) bool {
	return a.Path == b.Path && a.Kind == b.Kind && a.OldPath == b.OldPath
}

// checkMergeEvent compares what the merge says with what a diff does, undoes it, and
// merges again.
func checkMergeEvent(t *testing.T, st *engine.Store, dst *engine.Vault, res engine.MergeResult, before tree) {
	t.Helper()
	ctx := context.Background()
	events, err := dst.Timeline(ctx, 1)
	if err != nil || events[0].Cause != engine.CauseMerge || events[0].Source != "src" || events[0].SourceRoot != res.SourceRoot {
		t.Fatalf("event %+v, %v", events, err)
	}
	changes, _, err := st.Diff(ctx, events[0].Before, events[0].After, nil)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, c := range res.Changes {
		told[c.Path] = true
	}
	for _, c := range changes {
		if !told[c.Path] && c.Type != "dir" {
			t.Errorf("%s %s is in the diff, not in the result %+v", c.Kind, c.Path, res.Changes)
		}
	}
	after := treeOf(t, dst)
	if _, err := dst.Undo(ctx, nil); err != nil {
		t.Fatal(err)
	}
	sameTree(t, "undone", treeOf(t, dst), before)
	again, err := st.Merge(ctx, "src", "dst", &engine.MergeOptions{Theirs: []string{"."}})
	if err != nil || again.Event == 0 {
		t.Fatalf("merged again: %+v, %v", again, err)
	}
	if len(res.Resolved) == 0 && len(res.Changes) == len(again.Changes) {
		sameTree(t, "merged again", treeOf(t, dst), after)
	}
}
