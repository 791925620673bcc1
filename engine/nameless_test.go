package engine_test

import (
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// nameless makes a file without a name that holds data.
func nameless(t *testing.T, v *engine.Vault, data []byte) *engine.File {
	t.Helper()
	h, a, err := v.CreateNameless(t.Context(), engine.RootIno, 0o600, engine.Owner{UID: 1, GID: 2}, engine.OpenRead|engine.OpenWrite)
	must(t, err)
	if a.Nlink != 0 || a.UID != 1 || a.GID != 2 || !a.IsRegular() {
		t.Errorf("the file is %+v", a)
	}
	_, err = h.WriteAt(t.Context(), data, 0)
	must(t, err)
	return h
}

// TestNameless looks at a file without a name from all sides, and lets it go.
func TestNameless(t *testing.T) {
	st, v, _ := newVault(t, quietOptions())
	before, err := v.Commit(t.Context(), false)
	must(t, err)
	h := nameless(t, v, noise(1, 300_000))
	if u := v.Usage(); u.Files != 1 || u.UnlinkedFiles != 1 || u.UnlinkedBytes != 300_000 || v.Info().Files != 0 {
		t.Errorf("usage %+v", u)
	}
	after, err := v.Commit(t.Context(), true)
	if must(t, err); !after.Same(before) {
		t.Error("a file without a name is in a commit")
	}
	must(t, h.Close())
	if u := v.Usage(); u != (engine.Usage{}) {
		t.Errorf("usage after the last close %+v", u)
	}
	sound(t, st, "afterwards")
}

// TestNamelessLinked gives names to such a file: it is whole at once, and afterwards
// an ordinary file.
func TestNamelessLinked(t *testing.T) {
	st, v, db := newVault(t, quietOptions())
	data := noise(2, 300_000)
	h := nameless(t, v, data)
	must(t, v.SetXattr(t.Context(), h.Ino(), "user.k", []byte("v"), 0))
	a, err := v.Link(t.Context(), h.Ino(), engine.RootIno, "f")
	must(t, err)
	if u := v.Usage(); a.Nlink != 1 || u.Files != 1 || u.UnlinkedFiles != 0 || u.Bytes != 300_000 || u.UnlinkedBytes != 0 {
		t.Errorf("%+v, usage %+v", a, u)
	}
	_, err = v.Link(t.Context(), h.Ino(), engine.RootIno, "g")
	must(t, err)
	must(t, v.Unlink(t.Context(), engine.RootIno, "f"))
	must(t, h.Sync(t.Context()))
	reopened, err := engine.Open(t.Context(), db.Clone(0, 0), nil)
	must(t, err)
	again, err := reopened.Vault(t.Context(), "main")
	must(t, err)
	if got := get(t, again, "g"); got != string(data) {
		t.Errorf("%d bytes were kept", len(got))
	}
	must(t, reopened.Close())
	must(t, v.Unlink(t.Context(), engine.RootIno, "g"))
	_, err = v.Link(t.Context(), h.Ino(), engine.RootIno, "h")
	wantKind(t, "a name for a file that lost its last", err, engine.NotFound)
	must(t, h.Close())
	sound(t, st, "afterwards")
}

// TestNamelessQuota refuses a file without a name that is one too many.
func TestNamelessQuota(t *testing.T) {
	_, v, _ := newVault(t, nil)
	one := int64(1)
	_, err := v.SetQuota(t.Context(), engine.QuotaChange{MaxFiles: &one}, engine.AuditEntry{})
	must(t, err)
	h := nameless(t, v, nil)
	_, _, err = v.CreateNameless(t.Context(), engine.RootIno, 0o600, engine.Owner{}, engine.OpenRead)
	wantKind(t, "a second file", err, engine.QuotaExceeded)
	_, err = v.Link(t.Context(), h.Ino(), engine.RootIno, "f")
	must(t, err)
	must(t, h.Close())
}

// TestNamelessSpilled names a file whose content a commit is just storing, as that of
// a file without a name, and one whose content is stored already.
func TestNamelessSpilled(t *testing.T) {
	for _, when := range []string{"meanwhile", "afterwards"} {
		t.Run(when, func(t *testing.T) {
			db := &hookedDB{Store: newMem(t)}
			st, err := engine.Create(t.Context(), db, &engine.Options{CommitInterval: -1, CacheBytes: 1, DirtyBytes: 1 << 20})
			must(t, err)
			v, err := st.CreateVault(t.Context(), "main")
			must(t, err)
			data := noise(3, 3<<20)
			h := nameless(t, v, data)
			named := false
			name := func() {
				_, err := v.Link(t.Context(), h.Ino(), engine.RootIno, "f")
				must(t, err)
				named = true
			}
			if when == "meanwhile" {
				db.beforeUpdate = name
			}
			put(t, v, "other", "makes the content of the first too much to keep")
			if when == "afterwards" {
				_, err = h.WriteAt(t.Context(), []byte("newer"), 0)
				must(t, err)
				copy(data, "newer")
				name()
			}
			if !named {
				t.Fatal("nothing was stored")
			}
			for range 3 {
				must(t, h.Sync(t.Context()))
				wantContent(t, h, 0, data)
			}
			must(t, h.Close())
			_, err = st.GC(t.Context())
			must(t, err)
			sound(t, st, "afterwards")
			if get(t, v, "f") != string(data) {
				t.Error("the content changed")
			}
			must(t, st.Close())
		})
	}
}
