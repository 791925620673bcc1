package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// shuffle changes a vault at random within few names, so that paths are often reused.
func shuffle(v *engine.Vault, r *rand.Rand) {
	ctx := context.Background()
	name := func() string {
		parts := make([]string, 1+r.IntN(3))
		for i := range parts {
			parts[i] = string(rune('a' + r.IntN(3)))
		}
		return strings.Join(parts, "/")
	}
	p, q := name(), name()
	// What cannot be done is not done.
	switch r.IntN(6) {
	case 0:
		_ = v.RemoveAll(ctx, p)
	case 1, 2:
		_ = v.Move(ctx, p, q)
	case 3:
		if a, err := v.Resolve(ctx, p, false); err == nil {
			if dir, err := v.Resolve(ctx, path.Dir(q), false); err == nil {
				_, _ = v.Link(ctx, a.Ino, dir.Ino, path.Base(q))
			}
		}
	default:
		if _, err := v.MkdirAll(ctx, path.Dir("/"+p), 0o755, engine.Owner{}); err == nil {
			_, _ = v.WriteFile(ctx, p, strings.NewReader(fmt.Sprint(r.IntN(3))), nil)
		}
	}
}

// TestDiffOfPaths compares the diff at a path, which looks at few inodes where it
// can, with that part of the whole diff.
func TestDiffOfPaths(t *testing.T) {
	ctx := context.Background()
	seeds := 1500
	if testing.Short() {
		seeds = 300
	}
	for seed := range seeds {
		st, v, _ := newVault(t, quietOptions())
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		for range 12 {
			shuffle(v, r)
		}
		a, err := v.Pin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + r.IntN(6) {
			shuffle(v, r)
		}
		b, err := v.Pin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all, _, err := st.Diff(ctx, a, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{"a", "b", "a/a", "a/b", "b/a", "c/c", "a/b/c", "a/a/a", "b/b/a"} {
			want := []engine.FileChange{}
			below := func(q string) bool { return q == p || strings.HasPrefix(q, p+"/") }
			for _, c := range all {
				if below(c.Path) || c.OldPath != "" && below(c.OldPath) {
					want = append(want, c)
				}
			}
			got, _, err := st.Diff(ctx, a, b, &engine.DiffOptions{Paths: []string{p}})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %s: got %v\nwant %v\nof %v", seed, p, describe(got), describe(want), describe(all))
			}
			trace, err := st.Follow(ctx, a, b, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			checkTrace(t, st, a, b, p, trace, fmt.Sprintf("seed %d, of %v", seed, describe(all)))
		}
	}
}

func describe(list []engine.FileChange) (lines []string) {
	for _, c := range list {
		lines = append(lines, fmt.Sprintf("%s %s<-%s", c.Kind, c.Path, c.OldPath))
	}
	return lines
}

// checkTrace holds a trace to what the two states say of the path itself.
func checkTrace(t *testing.T, st *engine.Store, a, b engine.Root, p string, trace engine.Trace, about string) {
	t.Helper()
	ctx := context.Background()
	before, err := st.Snapshot(a).Resolve(ctx, p, false)
	had := err == nil
	after, err := st.Snapshot(b).Resolve(ctx, p, false)
	has := err == nil
	var own []engine.FileChange
	for _, c := range trace.Changes {
		if c.Path == p || c.OldPath == p {
			own = append(own, c)
		}
	}
	switch {
	case had != has && len(own) != 1:
		t.Fatalf("%s: %s came or went: %v; %s", p, p, describe(trace.Changes), about)
	case !had && !has && len(own) > 0:
		t.Fatalf("%s was never there: %v; %s", p, describe(own), about)
	case had && has && before.Size != after.Size && !after.IsDir() && len(own) == 0:
		t.Fatalf("%s changed: %v; %s", p, describe(own), about)
	}
	if old, err := st.Snapshot(a).Resolve(ctx, trace.OldPath, false); trace.OldPath != p && (err != nil || old.Ino != after.Ino || had) {
		t.Fatalf("%s came from %s: %v; %s", p, trace.OldPath, err, about)
	}
}

// TestFollow follows a file through renames of its own and of directories above it.
func TestFollow(t *testing.T) {
	ctx := context.Background()
	st, v, _ := newVault(t, quietOptions())
	state := func(fn func() error) engine.Root {
		t.Helper()
		if err := fn(); err != nil {
			t.Fatal(err)
		}
		root, err := v.Pin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return root
	}
	write := func(p, text string) func() error {
		return func() error {
			if _, err := v.MkdirAll(ctx, path.Dir("/"+p), 0o755, engine.Owner{}); err != nil {
				return err
			}
			_, err := v.WriteFile(ctx, p, strings.NewReader(text), nil)
			return err
		}
	}
	roots := []engine.Root{
		state(func() error { return nil }),
		state(write("d/e/f", "1")),
		state(write("other", "1")),
		state(func() error { return v.Move(ctx, "d/e/f", "d/e/g") }),
		state(func() error { return v.Move(ctx, "d", "x") }),
		state(write("x/e/g", "22")),
	}
	want := []string{
		"[modified x/e/g<-]", "[renamed x/e/g<-d/e/g]", "[renamed d/e/g<-d/e/f]", "[]", "[added d/e/f<-]",
	}
	p := "x/e/g"
	for i := len(roots) - 1; i > 0; i-- {
		trace, err := st.Follow(ctx, roots[i-1], roots[i], p, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(describe(trace.Changes)); got != want[len(roots)-1-i] {
			t.Errorf("step %d, %s: %s", i, p, got)
		}
		p = trace.OldPath
	}
	// Seen from where it was, it went with the directory.
	trace, err := st.Follow(ctx, roots[3], roots[4], "d/e/g", 0)
	if err != nil || fmt.Sprint(describe(trace.Changes)) != "[renamed x/e/g<-d/e/g]" || trace.OldPath != "d/e/g" {
		t.Errorf("%v, %v", trace, err)
	}
}

// TestFollowCost makes sure that the history of a file does not cost what else happened.
func TestFollowCost(t *testing.T) {
	ctx := context.Background()
	c := newCostVault(t, 20_000)
	a, err := c.v.Pin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.touch(t, 20_000, 10_000, "changed")
	b, err := c.v.Pin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, fn := range map[string]func() error{
		"follow": func() error {
			trace, err := c.st.Follow(ctx, a, b, "dir000000/file00.go", 0)
			if err == nil && trace.Total != 1 {
				err = fmt.Errorf("%d changes", trace.Total)
			}
			return err
		},
		"diff": func() error {
			_, n, err := c.st.Diff(ctx, a, b, &engine.DiffOptions{Paths: []string{"dir000000/file00.go", "/dir000000/file01.go"}})
			if err == nil && n != 1 {
				err = fmt.Errorf("%d changes", n)
			}
			return err
		},
	} {
		cost := c.measure(t, fn)
		t.Logf("%s: %v", name, cost)
		if cost.reads > 200 {
			t.Errorf("%s of one file among 10,000 changed ones: %v", name, cost)
		}
	}
}
