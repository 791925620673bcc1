package conformance

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// MountFunc mounts v at a directory of its own choice, writable, usable by every
// user, and returns the mount point. It unmounts at the end of t, and fails t if
// that does not work. Where this machine cannot mount, it skips t and says why.
type MountFunc func(t *testing.T, v *engine.Vault) (point string)

// MountOptions says what TestMount cannot find out by itself. nil is useful.
type MountOptions struct {
	// Lacks names calls that the library behind the mount does not know, each with
	// its reason. One that the kernel refuses and is not here fails, and so does one
	// that is here and works.
	Lacks map[Ability]string
	// Fails names tests that the library behind the mount cannot pass, each with its
	// reason. They run in a process of their own; one that passes there fails, and so
	// does a name that is no test.
	Fails map[string]string
}

// Ability names a call that not every FUSE library knows.
type Ability string

// The abilities that a mount may lack.
const (
	Preallocation Ability = "fallocate"
	NamelessFiles Ability = "O_TMPFILE"
	RenameFlags   Ability = "renameat2 with flags"
)

// mountSuite runs the tests of one way to mount.
type mountSuite struct {
	opts  MountOptions
	mount MountFunc
	self  string // the name of the test that called TestMount
	point string // where the vault that most tests share is mounted
	vault *engine.Vault
}

// mountTest is one rule of what a mount must hold.
type mountTest struct {
	name string
	why  string // printed when the test fails
	run  func(*mountSuite, *testing.T)
}

// TestMount checks that a mounted vault behaves like a native file system and
// agrees with the engine. It must be called from a test function that a run of the
// test binary can name, because what maps files runs in a process of its own: the
// one that serves a mount must not wait for a page of it.
func TestMount(t *testing.T, mount MountFunc, opts *MountOptions) {
	s := &mountSuite{mount: mount, self: t.Name()}
	if opts != nil {
		s.opts = *opts
	}
	if s.runAsChild() {
		return
	}
	s.wantKnown(t)
	store, vault, _ := newMemoryVault(t, nil)
	t.Run("shared", func(t *testing.T) { // its end unmounts
		s.vault, s.point = vault, mount(t, vault)
		for _, group := range mountTests() {
			for _, tc := range group {
				s.runTest(t, tc)
			}
		}
	})
	if t.Failed() || s.point == "" {
		return // the checks below would only repeat it
	}
	wantSound(t, store)
	if err := store.DeleteVault(t.Context(), vault.Name()); err != nil {
		t.Errorf("a vault whose mount is gone still has open files: %v", err)
	}
}

// wantKnown fails for an excuse that belongs to no test, such as a renamed one.
func (s *mountSuite) wantKnown(t *testing.T) {
	t.Helper()
	known := map[string]bool{}
	for _, group := range mountTests() {
		for _, tc := range group {
			known[tc.name] = true
		}
	}
	for name := range s.opts.Fails {
		if !known[name] {
			t.Errorf("there is no test %q that could fail", name)
		}
	}
	abilities := []Ability{Preallocation, NamelessFiles, RenameFlags}
	for a := range s.opts.Lacks {
		if !slices.Contains(abilities, a) {
			t.Errorf("there is no ability %q to lack", a)
		}
	}
}

func (s *mountSuite) runTest(t *testing.T, tc mountTest) {
	t.Run(tc.name, func(t *testing.T) {
		if reason, ok := s.opts.Fails[tc.name]; ok && os.Getenv(envMountTry) == "" {
			s.wantFailure(t, reason)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("why it matters: %s", tc.why)
			}
		})
		tc.run(s, t)
	})
}

// envMountTry makes a run of the test binary run the tests that are said to fail.
const envMountTry = "AVFS_MOUNT_TRY"

// tryTime bounds a test that is said to fail.
const tryTime = 2 * time.Minute

// wantFailure ends t, which is said to fail: it is skipped aloud if it does, in a
// process of its own, because a test cannot take its failure back.
func (s *mountSuite) wantFailure(t *testing.T, reason string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tryTime)
	defer cancel()
	cmd := rerun(ctx, t.Name(), "-test.v")
	cmd.Env = append(os.Environ(), envMountTry+"=1")
	out, err := cmd.CombinedOutput()
	came := func(verdict string) bool {
		return strings.Contains(string(out), "--- "+verdict+": "+t.Name()+" (")
	}
	switch {
	case came("SKIP"):
		t.Skipf("SKIP: said to fail, and not tried here: %s", reason)
	case came("FAIL"):
		t.Skipf("SKIP: known to fail here: %s", reason)
	case came("PASS"):
		t.Fatalf("it passes, and is said to fail: %s", reason)
	default:
		t.Fatalf("tried in a process of its own: %v: %s", err, out)
	}
}

// lacks reports whether a call was refused that the mount is said to lack. What is
// refused and not said, or said and not refused, fails t.
func (s *mountSuite) lacks(t *testing.T, a Ability, err, refusal error) bool {
	t.Helper()
	reason, declared := s.opts.Lacks[a]
	switch refused := errors.Is(err, refusal); {
	case declared && !refused:
		t.Errorf("%s gives %v, and is said to be lacking: %s", a, err, reason)
	case !declared && refused:
		t.Fatalf("%s is refused, and is not said to be lacking: %v", a, err)
	case declared:
		t.Logf("%s is lacking: %s", a, reason)
		return true
	}
	return false
}

// newMemoryVault makes a vault in a store in memory, which is closed at the end of
// t. wrap may put something between the engine and the store.
func newMemoryVault(t *testing.T, wrap func(kv.Store) kv.Store) (*engine.Store, *engine.Vault, *memkv.Store) {
	t.Helper()
	memory := memkv.New(engine.Tables()...)
	var db kv.Store = memory
	if wrap != nil {
		db = wrap(db)
	}
	store, err := engine.Create(context.Background(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	vault, err := store.CreateVault(context.Background(), "work")
	if err != nil {
		t.Fatal(err)
	}
	return store, vault, memory
}

// wantSound fails if the store has anything wrong in it.
func wantSound(t *testing.T, store *engine.Store) {
	t.Helper()
	report, err := store.Check(context.Background(), &engine.CheckOptions{ReadData: true, History: true})
	if err != nil {
		t.Fatalf("check the store: %v", err)
	}
	for _, f := range report.Findings {
		t.Errorf("the store is damaged: %s %v %q", f.Problem, f.Owners, f.Paths)
	}
}
