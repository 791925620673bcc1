package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// The encodings are a format: a change here is a new FormatVersion.

var goldenInodes = []struct {
	n   inode
	hex string
}{
	{inode{mode: TypeRegular | 0o644, uid: 1000, gid: 1000, nlink: 1, size: 5, alloc: 5, mtime: 1700000000000000000, ctime: 1700000000000000000,
		atime: 1700000000000000000, btime: 1700000000000000000, parent: 1, name: "file"},
		"08a48302e807e80701058080d0e2c6bfce972f00000001" + "66696c65"},
	{inode{mode: TypeSymlink | 0o777, nlink: 2, size: 3, mtime: -5, ctime: -4, atime: -6, btime: 0, target: "a/b"},
		"05ffc3020000020300" + "0902010a" + "03612f62"},
	{inode{mode: TypeBlock | 0o600, nlink: 1, rdev: 259, parent: 1 << 40, name: "\xff"},
		"0a80c3010000010000000000" + "8302" + "808080808020" + "ff"},
	{inode{mode: TypeDir | 0o755, nlink: 3, size: 1}, "01ed830100000301" + "00" + "00000000"},
}

func TestGoldenInode(t *testing.T) {
	for _, g := range goldenInodes {
		got := g.n.encode()
		back, err := decodeInode(got)
		if err != nil || *back != g.n {
			t.Errorf("%+v comes back as %+v, %v", g.n, back, err)
		}
		wantHex(t, "inode", got, g.hex)
	}
}

func wantHex(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if h := hex.EncodeToString(got); h != want {
		t.Errorf("%s is\n%s, not\n%s", what, h, want)
	}
}

func TestGoldenEntries(t *testing.T) {
	d := dirent{ino: 1<<40 + 7, typ: TypeDir}
	wantHex(t, "directory entry", d.encode(), "0487808080"+"8020")
	if back, err := decodeDirent(d.encode()); err != nil || back != d {
		t.Errorf("directory entry comes back as %+v, %v", back, err)
	}
	c := chunkRef{id: 300, length: ChunkSize}
	copy(c.digest[:], "0123456789abcdef")
	wantHex(t, "chunk entry", c.encode(), "30313233343536373839616263646566"+"808008"+"ac02")
	if back, err := decodeChunkRef(c.encode()); err != nil || back != c {
		t.Errorf("chunk entry comes back as %+v, %v", back, err)
	}
	sum := bytes.Repeat([]byte{7}, 32)
	row := indexRow(sum, 300, true)
	wantHex(t, "index row", row, "000000000000012c01"+"379dc65d")
	if id, shared, ok := parseIndexRow(sum, row); id != 300 || !shared || !ok {
		t.Errorf("index row comes back as %d, %v, %v", id, shared, ok)
	}
	wantHex(t, "chunk key", chunkKey(2, 3), "0000000000000002"+"04"+"0000000000000003")
	wantHex(t, "entry key", direntKey(2, "a"), "0000000000000002"+"02"+"61")
	wantHex(t, "attribute key", xattrKey(2, "a"), "0000000000000002"+"03"+"61")
	wantHex(t, "link key", linkKey(2, 3, "a"), "0000000000000002"+"05"+"0000000000000003"+"61")
	wantHex(t, "event key", eventKey(1, 2), "0000000000000001"+"fffffffffffffffd")
}

func TestGoldenRecords(t *testing.T) {
	at := time.Date(2024, 2, 29, 1, 2, 3, 4, time.UTC)
	root := Root{tree.Ref{ID: 255, Digest: tree.Digest{0xaa, 15: 0xbb}}}
	for _, g := range []struct {
		table kv.Table
		key   []byte
		value any
		want  string
	}{
		{tableMeta, metaCounters, counters{Node: 1, Chunk: 2, Vault: 3, Checkpoint: 4, Event: 5}, `{"node":1,"chunk":2,"vault":3,"checkpoint":4,"event":5,"sum":"45ff236b"}`},
		{tableVaults, kv.ID(1), vaultRecord{ID: 1, Name: "v", CreatedAt: at, Root: root, NodeMark: 1, ChunkMark: 2, NextIno: 3, Count: 4, Bytes: 5, Checkpoints: 6},
			`{"id":1,"name":"v","forked_from":"","created_at":"2024-02-29T01:02:03.000000004Z","root":"aa0000000000000000000000000000bb:ff","node_mark":1,"chunk_mark":2,"next_ino":3,"count":4,"bytes":5,"checkpoints":6,"sum":"c4f1523f"}`},
		{tableCheckpoints, rowKey(1, 2), checkpointRowOf(Checkpoint{ID: "c2", VaultID: 1, Name: "n", Message: "m", At: at, Root: root, Files: 1, Bytes: 2}),
			`{"name":"n","message":"m","at":"2024-02-29T01:02:03.000000004Z","root":"aa0000000000000000000000000000bb:ff","files":1,"bytes":2,"sum":"98b4cbed"}`},
		{tableTimeline, eventKey(1, 2), Event{Seq: 2, VaultID: 1, Cause: CauseExec, ID: "x", Command: []string{"ls"}, At: at, After: root},
			`{"seq":2,"vault_id":1,"cause":"exec","id":"x","command":["ls"],"at":"2024-02-29T01:02:03.000000004Z","before":"","after":"aa0000000000000000000000000000bb:ff","sum":"e2a0e778"}`},
		{tableUnfinished, rowKey(1, 2), unfinishedRecord{VaultID: 1, ID: "x", Command: []string{"ls"}, At: at, Before: root, Owner: 7, Audit: AuditEntry{Kind: "exec", Vault: "v"}},
			`{"vault_id":1,"id":"x","command":["ls"],"at":"2024-02-29T01:02:03.000000004Z","before":"aa0000000000000000000000000000bb:ff","owner":7,"audit":{"seq":0,"at":"0001-01-01T00:00:00Z","kind":"exec","vault":"v","action":"","rule":"","status":"","duration_ms":0,"uid":0},"sum":"d256d34f"}`},
		{tableOutputs, outputKey(1, 2), outputRecord{VaultID: 1, ID: "x", At: at, Root: root, Streams: []StreamOutput{{Name: "stdout", Bytes: 3, Kept: 2}}, Ended: true, Cut: "c"},
			`{"vault_id":1,"id":"x","at":"2024-02-29T01:02:03.000000004Z","root":"aa0000000000000000000000000000bb:ff","streams":[{"name":"stdout","bytes":3,"kept":2}],"ended":true,"cut":"c","sum":"42cc1c72"}`},
		{tableOutputs, outputKey(1, 3), outputRecord{VaultID: 1, ID: "y", At: at, Streams: []StreamOutput{{Name: "stdout", Bytes: 2, Kept: 2}}, Tails: [][]byte{[]byte("ab")}},
			`{"vault_id":1,"id":"y","at":"2024-02-29T01:02:03.000000004Z","root":"","streams":[{"name":"stdout","bytes":2,"kept":2}],"tails":["YWI="],"ended":false,"sum":"ef3b9034"}`},
		{tableMeta, metaAudit, auditHead{AuditHead{Seq: 1, Hash: "ab"}, "p"}, `{"seq":1,"hash":"ab","policy":"p","sum":"c18ccd34"}`},
	} {
		got, err := sealJSON(g.table, g.key, g.value)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != g.want {
			t.Errorf("%s record is\n%s, not\n%s", g.table.Name, got, g.want)
		}
	}
}

// TestGoldenAudit pins the rows of audit entries, and what their hashes are over.
func TestGoldenAudit(t *testing.T) {
	at := time.Date(2024, 2, 29, 1, 2, 3, 4, time.UTC)
	for _, g := range []struct {
		e          AuditEntry
		text, want string // of the entry, and of its row before the hash
		sum        string
	}{
		{
			AuditEntry{Seq: 2, At: at, Kind: "exec", Vault: "v", ExecID: "x", Argv: []string{"ls", "<&>", "\xff"}, Action: "allow", Rule: "r", Status: "denied", DurationMS: 7, RootBefore: "a", RootAfter: "b", PID: 3, Prev: "ab"},
			`{"seq":2,"at":"2024-02-29T01:02:03.000000004Z","kind":"exec","vault":"v","exec_id":"x","argv":["ls","<&>","\uFFFD"],"action":"allow","rule":"r","status":"denied","duration_ms":7,"root_before":"a","root_after":"b","uid":0,"pid":3,"prev":"ab"}`,
			`{"at":"2024-02-29T01:02:03.000000004Z","kind":"exec","vault":"v","exec_id":"x","argv":["ls","<&>","\uFFFD"],"uid":0,"pid":3,"status":"denied","rule":"r","duration_ms":7,"root_before":"a","root_after":"b"`,
			"c55d62a6",
		},
		{
			AuditEntry{Seq: 3, At: at, Kind: "checkpoint.save", Vault: "v", Action: "allow", Status: "completed", RootBefore: "a", RootAfter: "a", Prev: "ab"},
			`{"seq":3,"at":"2024-02-29T01:02:03.000000004Z","kind":"checkpoint.save","vault":"v","action":"allow","rule":"","status":"completed","duration_ms":0,"root_before":"a","root_after":"a","uid":0,"prev":"ab"}`,
			`{"at":"2024-02-29T01:02:03.000000004Z","kind":"checkpoint.save","vault":"v","uid":0,"root":"a"`,
			"01f73da3",
		},
		{
			AuditEntry{Seq: 4, At: at, Kind: "repair", Status: "x", RootAfter: "a"},
			`{"seq":4,"at":"2024-02-29T01:02:03.000000004Z","kind":"repair","vault":"","action":"","rule":"","status":"x","duration_ms":0,"root_after":"a","uid":0}`,
			`{"at":"2024-02-29T01:02:03.000000004Z","kind":"repair","vault":"","uid":0,"action":"","status":"x","root_after":"a"`,
			"58da47a0",
		},
	} {
		text, want := strings.ReplaceAll(g.text, `\uFFFD`, "\uFFFD"), strings.ReplaceAll(g.want, `\uFFFD`, "\uFFFD")
		e, row, err := encodeAudit(g.e)
		if err != nil {
			t.Fatal(err)
		}
		if hash := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); e.Hash != hash {
			t.Errorf("entry %d: the hash is %s, not %s", e.Seq, e.Hash, hash)
		}
		sum := sha256.Sum256([]byte(text))
		if want += `,"hash":"` + base64.StdEncoding.EncodeToString(sum[:]) + `","sum":"` + g.sum + `"}`; string(row) != want {
			t.Errorf("the row is\n%s, not\n%s", row, want)
		}
		got, err := parseAudit(kv.ID(e.Seq), row)
		if got.Prev = e.Prev; err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%+v, %v, not %+v", got, err, e)
		}
	}
}

// TestGoldenRoot pins the digest of a small tree, and with it the format of nodes
// and entries together.
func TestGoldenRoot(t *testing.T) {
	const want = "24f01765471ff50b8cec84a078cd44cf"
	ctx := context.Background()
	at := time.Unix(1700000000, 0)
	st, err := Create(ctx, memkv.New(Tables()...), &Options{CommitInterval: -1, Clock: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.CreateVault(ctx, "golden")
	if err != nil {
		t.Fatal(err)
	}
	owner := Owner{1, 2}
	uid := uint32(0)
	dir, err := v.Mkdir(ctx, RootIno, "dir", 0o755, owner)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.WriteFile(ctx, "dir/file", strings.NewReader(strings.Repeat("golden ", 30_000)), &WriteOptions{Owner: &owner})
	if err != nil {
		t.Fatal(err)
	}
	a, err := v.Symlink(ctx, dir.Ino, "link", "file", owner)
	if err != nil {
		t.Fatal(err)
	}
	_, linkErr := v.Link(ctx, a.Ino, RootIno, "again")
	_, topErr := v.SetAttr(ctx, RootIno, SetAttr{UID: &uid, GID: &uid})
	if err := errors.Join(linkErr, topErr, v.SetXattr(ctx, dir.Ino, "user.a", []byte("b"), 0)); err != nil {
		t.Fatal(err)
	}
	root, err := v.Commit(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	if root.String() != want {
		t.Errorf("root is %s, not %s", root, want)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
