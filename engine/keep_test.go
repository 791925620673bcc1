package engine_test

import (
	"bytes"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// named makes a file with a name that holds data.
func named(t *testing.T, v *engine.Vault, name string, data []byte) engine.Ino {
	t.Helper()
	h, a, err := v.Create(t.Context(), engine.RootIno, name, 0o644, engine.Owner{}, engine.OpenWrite, true)
	must(t, err)
	_, err = h.WriteAt(t.Context(), data, 0)
	must(t, err)
	must(t, h.Close())
	return a.Ino
}

// TestKeep takes the last name from files that a caller knows by number: those that it
// wants live on, whole, until it lets go, and no others do.
func TestKeep(t *testing.T) {
	data := noise(3, 200_000)
	ways := map[string]func(v *engine.Vault, keep func(engine.Ino) bool) (*engine.File, error){
		"Unlink": func(v *engine.Vault, keep func(engine.Ino) bool) (*engine.File, error) {
			return v.UnlinkKeep(t.Context(), engine.RootIno, "f", keep)
		},
		"Rename": func(v *engine.Vault, keep func(engine.Ino) bool) (*engine.File, error) {
			return v.RenameKeep(t.Context(), engine.RootIno, "g", engine.RootIno, "f", 0, keep)
		},
	}
	for name, take := range ways {
		t.Run(name, func(t *testing.T) {
			st, v, _ := newVault(t, quietOptions())
			ino := named(t, v, "f", data)
			named(t, v, "g", []byte("other"))
			_, err := v.Commit(t.Context(), false)
			must(t, err)
			kept, err := take(v, func(asked engine.Ino) bool { return asked == ino })
			must(t, err)
			if kept == nil || kept.Ino() != ino {
				t.Fatalf("kept %v, not inode %d", kept, ino)
			}
			got := make([]byte, len(data)+1)
			if n, err := kept.ReadAt(t.Context(), got, 0); err != nil || !bytes.Equal(got[:n], data) {
				t.Errorf("%d bytes of what is kept, %v", n, err)
			}
			if u := v.Usage(); u.UnlinkedFiles != 1 || u.UnlinkedBytes != int64(len(data)) {
				t.Errorf("usage %+v", u)
			}
			must(t, kept.Close())
			if u := v.Usage(); u.UnlinkedFiles != 0 || u.UnlinkedBytes != 0 {
				t.Errorf("usage after the close %+v", u)
			}
			sound(t, st, "afterwards")
		})
		t.Run(name+"Unwanted", func(t *testing.T) {
			st, v, _ := newVault(t, quietOptions())
			named(t, v, "f", data)
			named(t, v, "g", []byte("other"))
			kept, err := take(v, func(engine.Ino) bool { return false })
			if must(t, err); kept != nil || v.Usage().UnlinkedFiles != 0 {
				t.Errorf("kept %v, usage %+v", kept, v.Usage())
			}
			sound(t, st, "afterwards")
		})
	}
}

// TestKeepOtherNames takes one of two names, and the name of a directory entry that is
// no regular file: nothing is asked, and nothing kept.
func TestKeepOtherNames(t *testing.T) {
	st, v, _ := newVault(t, quietOptions())
	ino := named(t, v, "f", []byte("text"))
	_, err := v.Link(t.Context(), ino, engine.RootIno, "g")
	must(t, err)
	_, err = v.Symlink(t.Context(), engine.RootIno, "l", "f", engine.Owner{})
	must(t, err)
	for _, name := range []string{"g", "l"} {
		kept, err := v.UnlinkKeep(t.Context(), engine.RootIno, name, func(engine.Ino) bool {
			t.Errorf("asked about %s", name)
			return true
		})
		if must(t, err); kept != nil {
			t.Errorf("kept %s", name)
		}
	}
	if a, err := v.Lookup(t.Context(), engine.RootIno, "f"); err != nil || a.Nlink != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	sound(t, st, "afterwards")
}
