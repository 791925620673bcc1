package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// crashTests kill processes.
var crashTests = []storeTest{
	{"KillWriter", "after close() and the timer, data survives kill -9; an acknowledged commit is never lost or half there", (*storeSuite).testKillWriter},
	{"KillCreator", "a process that dies while it creates a store leaves a store or nothing", (*storeSuite).testKillCreator},
}

// crashRounds is how many times a test kills; -short makes it fewer.
func crashRounds(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// counterKey holds the number of the newest commit of a writer.
var counterKey = []byte("commits")

// writeForEver commits one numbered update after the other and says each on the
// standard output once it is acknowledged. It ends only with an error.
func writeForEver(st kv.Store) error {
	n, err := commits(st)
	if err != nil {
		return err
	}
	for {
		n++
		mode := kv.Relaxed
		if n%7 == 0 {
			mode = kv.Durable
		}
		err := st.Update(context.Background(), mode, func(w kv.Writer) error { return writeCommit(w, n) })
		if err != nil {
			return err
		}
		fmt.Println("ack", n)
	}
}

// writeCommit writes everything that belongs to commit n: a row in each of two
// tables, and the counter. Every third commit also removes a row.
func writeCommit(w kv.Writer, n uint64) error {
	digest := sha256.Sum256(kv.ID(n))
	err := errors.Join(w.Put(tblIDs, kv.ID(n), commitValue(n)), w.Put(tblBlob, digest[:], kv.ID(n)),
		w.Put(tblOther, counterKey, kv.ID(n)))
	if n%3 == 0 {
		err = errors.Join(err, w.Delete(tblIDs, kv.ID(n/3)))
	}
	return err
}

// commitValue is the row of commit n: 16 to 3,200 bytes.
func commitValue(n uint64) []byte {
	return bytes.Repeat(kv.ID(n), 2+int(n*7919%400))
}

// commits returns the number of the newest commit.
func commits(st kv.Store) (n uint64, err error) {
	err = st.View(context.Background(), func(r kv.Reader) error {
		v, ok, err := r.Get(tblOther, counterKey)
		if ok {
			n = binary.BigEndian.Uint64(v)
		}
		return err
	})
	return n, err
}

func (s *storeSuite) testKillWriter(t *testing.T) {
	s.needsFile(t)
	path := filepath.Join(t.TempDir(), "store.avfs")
	rnd := rand.New(rand.NewSource(3))
	rounds := crashRounds(15, 4)
	for round := range rounds {
		c := s.startChild(t, roleWrite, path)
		c.opening(t)
		life := time.Duration(rnd.Intn(int(60 * time.Millisecond)))
		var acked uint64
		for line := c.line(); line != ""; line = c.line() {
			if acked == 0 {
				time.AfterFunc(life, func() { _ = c.cmd.Process.Kill() })
			}
			if _, err := fmt.Sscanf(line, "ack %d", &acked); err != nil {
				t.Fatalf("the child says %q", line)
			}
		}
		c.kill()
		if acked == 0 {
			t.Fatal("the child died before its first commit")
		}
		st := s.reopen(t, path)
		s.checkCommits(t, st, acked)
		mustClose(t, st)
		if t.Failed() {
			t.Fatalf("round %d: killed %v after its first commit, acknowledged %d", round, life, acked)
		}
	}
}

// checkCommits checks that exactly the commits up to the counter are there, whole,
// and that the counter is not below acked.
func (s *storeSuite) checkCommits(t *testing.T, st kv.Store, acked uint64) {
	t.Helper()
	if err := verify(st); err != nil {
		t.Error(err)
	}
	n, err := commits(st)
	if err != nil {
		t.Fatal(err)
	}
	if n < acked || n > acked+1 {
		t.Fatalf("the store holds %d commits, acknowledged were %d", n, acked)
	}
	view(t, st, func(r kv.Reader) error {
		rows := uint64(0)
		err := r.Scan(tblIDs, nil, nil, func(k, v []byte) error {
			id := kv.ParseID(k)
			if id > n || id*3 <= n || !bytes.Equal(v, commitValue(id)) {
				t.Errorf("row %d of %d is there with %d bytes", id, n, len(v))
			}
			rows++
			return nil
		})
		if want := n - n/3; rows != want {
			t.Errorf("%d rows, want %d", rows, want)
		}
		digests, err2 := keysOf(r, tblBlob, nil, nil)
		if uint64(len(digests)) != n {
			t.Errorf("%d digests, want %d", len(digests), n)
		}
		for id := uint64(1); id <= n; id++ {
			digest := sha256.Sum256(kv.ID(id))
			if v, _, err := r.Get(tblBlob, digest[:]); err != nil || !bytes.Equal(v, kv.ID(id)) {
				t.Errorf("digest of %d: %x, %v", id, v, err)
			}
		}
		return errors.Join(err, err2)
	})
}

func (s *storeSuite) testKillCreator(t *testing.T) {
	s.needsFile(t)
	rnd := rand.New(rand.NewSource(4))
	// How long a process takes to its first commit says when it creates.
	calm := s.startChild(t, roleWrite, filepath.Join(t.TempDir(), "store.avfs"))
	calm.opening(t)
	start := time.Now()
	calm.line()
	span := time.Since(start)
	calm.kill()

	left := map[bool]int{}
	for range crashRounds(25, 6) {
		path := filepath.Join(t.TempDir(), "store.avfs")
		c := s.startChild(t, roleWrite, path)
		c.opening(t)
		time.Sleep(time.Duration(rnd.Int63n(int64(span + time.Millisecond))))
		c.kill()
		ctx, cancel := context.WithTimeout(t.Context(), openPatience)
		st, err := s.driver.Open(ctx, path, kv.Options{Tables: allTables})
		left[err == nil]++
		if errors.Is(err, fs.ErrNotExist) {
			st, err = s.driver.Open(ctx, path, kv.Options{Tables: allTables, Create: true})
		}
		cancel()
		if err != nil {
			t.Fatalf("what the dead creator left neither opens nor can be created: %v", err)
		}
		if err := verify(st); err != nil {
			t.Error(err)
		}
		put(t, st, tblText, kv.ID(1), []byte("works"))
		mustClose(t, st)
	}
	t.Logf("killed creators left a store %d times and nothing %d times", left[true], left[false])
}
