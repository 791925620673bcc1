package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// Fixture is what a store holds before a workload runs. Every sample starts from
// a copy of the same fixture, so that no sample sees what another one left.
type Fixture struct {
	Name  string // equal names, equal content
	build func(ctx context.Context, d kv.Driver, path string) error
}

// Build makes the store at path, which must not exist, and closes it.
func (f Fixture) Build(ctx context.Context, d kv.Driver, path string) error {
	if err := f.build(ctx, d, path); err != nil {
		return fmt.Errorf("build the store %s on %s: %w", f.Name, d.Name(), err)
	}
	return nil
}

// StoreName is the name of a store in a folder of its own.
const StoreName = "store.avfs"

// vaultName is the vault that a fixture of files has.
const vaultName = "main"

// filesPerDir is how many files one directory of a fixture holds.
const filesPerDir = 1000

// filesFixture has a vault with n small text files, filesPerDir in a directory.
func filesFixture(n int) Fixture {
	return Fixture{
		Name: fmt.Sprintf("files-%d", n),
		build: func(ctx context.Context, d kv.Driver, path string) error {
			s, err := openStore(ctx, d, path, true)
			if err != nil {
				return err
			}
			return errors.Join(fillNew(ctx, s, n), s.Close())
		},
	}
}

func fillNew(ctx context.Context, s *engine.Store, n int) error {
	v, err := s.CreateVault(ctx, vaultName)
	if err != nil {
		return err
	}
	return Fill(ctx, v, n)
}

// Fill makes n small text files in an empty vault and commits them durably.
func Fill(ctx context.Context, v *engine.Vault, n int) error {
	var dir engine.Ino
	for i := range n {
		if i%filesPerDir == 0 {
			a, err := v.Mkdir(ctx, engine.RootIno, dirName(i), 0o755, engine.Owner{})
			if err != nil {
				return err
			}
			dir = a.Ino
		}
		data := text(i, 0)
		_, err := v.Ingest(ctx, dir, &engine.Entry{
			Name: fileName(i), Mode: engine.TypeRegular | 0o644,
			Size: int64(len(data)), Content: []engine.Chunk{{Data: data}},
		})
		if err != nil {
			return err
		}
	}
	_, err := v.Commit(ctx, true)
	return err
}

func dirName(i int) string  { return fmt.Sprintf("dir%05d", i/filesPerDir) }
func fileName(i int) string { return fmt.Sprintf("file%03d.go", i%filesPerDir) }
func filePath(i int) string { return dirName(i) + "/" + fileName(i) }

// words make the text of files; it compresses about as source code does.
var words = [...]string{
	"func", "return", "err", "nil", "if", "for", "range", "string", "int64", "context", "vault", "store",
	"{\n\t", "}\n", "\n\n", "(", ")", ":=", "!=", "switch", "case", "tree", "node", "chunk", "package", "import",
}

// text returns the content of file i, 200 to 2,000 bytes, another one for each version.
func text(i, version int) []byte {
	rng := rand.New(rand.NewPCG(uint64(i), uint64(version)))
	size := 200 + rng.IntN(1800)
	out := make([]byte, 0, size+10)
	for len(out) < size {
		out = append(append(out, words[rng.IntN(len(words))]...), ' ')
	}
	return out[:size]
}

// ids has keys in ascending order, as nodes and chunks have; digests has random
// ones, as the index of the chunks' digests has.
func kvTables() (ids, digests kv.Table) {
	return kv.Table{Name: "ids", IDs: true}, kv.Table{Name: "digests"}
}

// kvFixture has two tables of n small rows, without the engine.
func kvFixture(n int) Fixture {
	return Fixture{Name: fmt.Sprintf("keys-%d", n), build: func(ctx context.Context, d kv.Driver, path string) error {
		db, err := openKV(ctx, d, path, true)
		if err != nil {
			return err
		}
		return errors.Join(fillKV(ctx, db, n), db.Close())
	}}
}

func fillKV(ctx context.Context, db kv.Store, n int) error {
	ids, digests := kvTables()
	const step = 10_000
	for from := 1; from <= n; from += step {
		err := db.Update(ctx, kv.Durable, func(w kv.Writer) error {
			for id := uint64(from); id < uint64(min(from+step, n+1)); id++ {
				if err := w.Put(ids, kv.ID(id), value(id)); err != nil {
					return err
				}
				if err := w.Put(digests, digest(id), kv.ID(id)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// value is the 100-byte value of an id.
func value(id uint64) []byte {
	v := make([]byte, 100)
	binary.BigEndian.PutUint64(v, id)
	return v
}

// digest is a key that is as random as a SHA-256 digest, and as long.
func digest(id uint64) []byte {
	rng := rand.New(rand.NewPCG(id, 1))
	key := make([]byte, 0, 32)
	for range 4 {
		key = binary.BigEndian.AppendUint64(key, rng.Uint64())
	}
	return key
}

func openKV(ctx context.Context, d kv.Driver, path string, create bool) (kv.Store, error) {
	ids, digests := kvTables()
	return d.Open(ctx, path, kv.Options{Tables: []kv.Table{ids, digests}, Create: create})
}

// openStore opens a store with the engine's default options.
func openStore(ctx context.Context, d kv.Driver, path string, create bool) (*engine.Store, error) {
	db, err := d.Open(ctx, path, kv.Options{Tables: engine.Tables(), Create: create})
	if err != nil {
		return nil, err
	}
	open := engine.Open
	if create {
		open = engine.Create
	}
	s, err := open(ctx, db, nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// openVault opens a store that a fixture made, and its vault.
func openVault(ctx context.Context, env *Env) (*engine.Store, *engine.Vault, error) {
	s, err := openStore(ctx, env.Driver, env.Store, false)
	if err != nil {
		return nil, nil, err
	}
	v, err := s.Vault(ctx, vaultName)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, v, nil
}

// newVault makes a store with an empty vault.
func newVault(ctx context.Context, env *Env) (*engine.Store, *engine.Vault, error) {
	s, err := openStore(ctx, env.Driver, env.Store, true)
	if err != nil {
		return nil, nil, err
	}
	v, err := s.CreateVault(ctx, vaultName)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, v, nil
}

// closing is a Finish that only closes.
func closing(s interface{ Close() error }) func(context.Context) (map[string]float64, error) {
	return func(context.Context) (map[string]float64, error) { return nil, s.Close() }
}

// GoSource finds the source of the Go distribution, the tree that imports are about.
func GoSource(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	_, err = os.Stat(src)
	return src, err
}

// CopyTree copies the first n regular files below src, by path, into the new folder
// dst, with their directories. It fails where there are fewer. No limit is n = -1.
func CopyTree(src, dst string, n int) error {
	done := 0
	err := filepath.WalkDir(src, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		switch {
		case n >= 0 && done == n:
			return fs.SkipAll
		case e.IsDir():
			return os.MkdirAll(to, 0o755)
		case !e.Type().IsRegular():
			return nil
		}
		done++
		return copyFile(path, to)
	})
	if err == nil && n >= 0 && done < n {
		err = fmt.Errorf("%s has %d files, not %d", src, done, n)
	}
	return err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := out.ReadFrom(in); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Sync(), out.Close())
}

// pick returns n numbers below total, spread evenly.
func pick(n, total int) []int {
	picked := make([]int, 0, n)
	for i := range n {
		picked = append(picked, i*total/n)
	}
	return slices.Compact(picked)
}

// FillStore makes n small text files in the empty vault of an existing store.
func FillStore(ctx context.Context, d kv.Driver, path, vault string, n int) error {
	s, err := openStore(ctx, d, path, false)
	if err != nil {
		return err
	}
	v, err := s.Vault(ctx, vault)
	if err != nil {
		return joinClose(err, s)
	}
	return joinClose(Fill(ctx, v, n), s)
}
