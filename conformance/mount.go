package conformance

import (
	"context"
	"testing"

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
	// Unable names tests that the library behind the mount cannot pass, each
	// with its reason. They are skipped aloud; a name that is no test fails.
	Unable map[string]string
}

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
	for name := range s.opts.Unable {
		if !known[name] {
			t.Errorf("there is no test %q to be unable to pass", name)
		}
	}
}

func (s *mountSuite) runTest(t *testing.T, tc mountTest) {
	t.Run(tc.name, func(t *testing.T) {
		if reason, ok := s.opts.Unable[tc.name]; ok {
			t.Skipf("SKIP: known to fail here: %s", reason)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("why it matters: %s", tc.why)
			}
		})
		tc.run(s, t)
	})
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
