package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// The entries of the audit are a chain: the text of each, as JSON, names the hash of the
// one before, and its own hash is the SHA-256 of that text. The newest is named by the
// head, a record of its own, so that a cut at the end is found. Both are written in the
// transaction that adds the entry, from the head in that transaction, so that writers
// in any number keep order and what fails leaves no gap.
//
// A row says the same in fewer bytes, for there are as many as there are commands and
// checkpoints: it leaves out the hash before, which is that of the row before, and what
// is as it mostly is (see auditRow).

// metaAudit is the key of the head of the audit.
var metaAudit = []byte("audit")

// AuditHead names the newest entry of the audit, and vouches for all before it.
type AuditHead struct {
	Seq  uint64 `json:"seq"`  // 0: there are no entries
	Hash string `json:"hash"` // empty: there are no entries
}

// String is the form that ParseAuditHead reads.
func (h AuditHead) String() string { return strconv.FormatUint(h.Seq, 10) + ":" + h.Hash }

// ParseAuditHead reads a head that was noted elsewhere: the number and the hash of an
// entry with a colon between them.
func ParseAuditHead(text string) (AuditHead, error) {
	seq, hash, ok := strings.Cut(text, ":")
	n, err := strconv.ParseUint(seq, 10, 63)
	sum, herr := hex.DecodeString(hash)
	if empty := n == 0 && hash == ""; !ok || err != nil || herr != nil || !empty && (n == 0 || len(sum) != sha256.Size) {
		return AuditHead{}, &Error{Kind: Invalid, Op: "audit head", Path: strconv.Quote(text), Err: errors.New("it has the form SEQ:HASH, with 64 hexadecimal digits")}
	}
	return AuditHead{n, strings.ToLower(hash)}, nil
}

// auditHead is the record of the head, with the policy that the newest entry knew
// that knew one.
type auditHead struct {
	AuditHead
	Policy string `json:"policy"`
}

var errNoHead = errors.New("the head of the audit is missing")

func readAuditHead(tx kv.Reader) (h auditHead, err error) {
	ok, err := getJSON(tx, tableMeta, metaAudit, &h)
	if err == nil && !ok {
		err = &Error{Kind: Corrupt, Op: "read", Path: "audit", Err: errNoHead}
	}
	return h, err
}

// AuditHead tells the newest entry of the audit. Noted where nobody who can write to
// the store can write, it proves later that nothing before it has changed.
func (s *Store) AuditHead(ctx context.Context) (AuditHead, error) {
	var head auditHead
	err := s.kv.View(ctx, func(tx kv.Reader) (err error) {
		head, err = readAuditHead(tx)
		return err
	})
	return head.AuditHead, wrap(err, "audit head", "")
}

// putAudit adds an entry in the transaction of what it tells of, and returns it as it
// is stored. Where the policy is another one than before, an entry says so first.
func (s *Store) putAudit(tx kv.Writer, e AuditEntry) (AuditEntry, error) {
	head, err := readAuditHead(tx)
	if err != nil {
		return e, err
	}
	e = e.storable()
	e.At = s.opts.Clock().UTC()
	if !e.began.IsZero() {
		e.DurationMS = time.Since(e.began).Milliseconds()
	}
	if e.Policy != "" && e.Policy != head.Policy {
		change := AuditEntry{
			At: e.At, Kind: AuditPolicyChange, Subject: head.Policy, Policy: e.Policy, Action: auditAllow, Status: auditDone,
			UID: e.UID, PID: e.PID, User: e.User, FromExec: e.FromExec,
		}
		if _, err := head.add(tx, change); err != nil {
			return e, err
		}
	}
	if e, err = head.add(tx, e); err != nil {
		return e, err
	}
	return e, putJSON(tx, tableMeta, metaAudit, head)
}

// add writes an entry behind the head, and makes it the head.
func (h *auditHead) add(tx kv.Writer, e AuditEntry) (AuditEntry, error) {
	e.Seq, e.Prev = h.Seq+1, h.Hash
	e, row, err := encodeAudit(e)
	if err != nil {
		return e, err
	}
	h.Seq, h.Hash = e.Seq, e.Hash
	if e.Policy != "" {
		h.Policy = e.Policy
	}
	return e, tx.Put(tableAudit, kv.ID(e.Seq), row)
}

// AuditFinding is something that is wrong with the audit.
type AuditFinding struct {
	Seq     uint64 `json:"seq"` // the entry that it is about
	Problem string `json:"problem"`
}

// AuditReport is the result of VerifyAudit.
type AuditReport struct {
	Head     AuditHead      `json:"head"`
	Entries  uint64         `json:"entries"`
	Findings []AuditFinding `json:"findings"`
}

// VerifyAudit reads the whole audit and finds every entry that was changed, moved or
// removed since it was added. Whoever can write to the database can also write another
// chain, which is as good as the first; only a head that was noted elsewhere, in known,
// tells the two apart.
func (s *Store) VerifyAudit(ctx context.Context, known ...AuditHead) (AuditReport, error) {
	c := newChainCheck(known)
	err := c.run(ctx, s.kv)
	return c.rep, wrap(err, "verify audit", "")
}

// chainCheck follows the chain.
type chainCheck struct {
	rep    AuditReport
	known  map[uint64][]string // hashes that entries must have
	next   uint64              // the entry that comes next
	prev   []string            // the hash of the one before: what it says, and what it ought to be. None: not known
	policy string
	head   auditHead
	noHead bool // it is damaged or missing
}

func newChainCheck(known []AuditHead) *chainCheck {
	c := &chainCheck{rep: AuditReport{Findings: []AuditFinding{}}, known: map[uint64][]string{}, next: 1, prev: []string{""}}
	for _, h := range known {
		c.known[h.Seq] = append(c.known[h.Seq], h.Hash)
	}
	delete(c.known, 0) // every chain continues the empty one
	return c
}

func (c *chainCheck) add(seq uint64, format string, args ...any) {
	c.rep.Findings = append(c.rep.Findings, AuditFinding{seq, fmt.Sprintf(format, args...)})
}

// verifyBatch is how many entries one transaction reads, so that none lasts long.
const verifyBatch = 10_000

func (c *chainCheck) run(ctx context.Context, db kv.Store) error {
	var from []byte
	for more := true; more; {
		more = false
		at := *c // the batch may be read again
		at.rep.Findings = at.rep.Findings[:len(at.rep.Findings):len(at.rep.Findings)]
		err := db.View(ctx, func(tx kv.Reader) error {
			*c, more = at, false
			n := 0
			err := tx.Scan(tableAudit, nil, from, func(k, row []byte) error {
				if n++; n > verifyBatch {
					more, from = true, bytes.Clone(k)
					return kv.Stop
				}
				c.entry(k, row)
				return nil
			})
			if err != nil || more {
				return err
			}
			return c.end(tx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// entry follows the chain by one row. The hash before an entry behind a gap, or behind
// one that is damaged, is not known: then its own hash is taken for right, and what
// comes next is held against that.
func (c *chainCheck) entry(key, row []byte) {
	seq := kv.ParseID(key)
	c.missing(seq)
	c.rep.Entries++
	c.next = seq + 1
	e, err := parseAudit(key, row)
	var before []string
	before, c.prev = c.prev, nil
	switch {
	case err != nil:
		c.add(seq, "entry %d is damaged", seq)
	default:
		c.prev = []string{e.Hash}
		if ok, right := continues(e, row, before); !ok {
			c.add(seq, "entry %d does not continue what is before it, or was changed", seq)
			c.prev = append(c.prev, right...)
		}
	}
	for _, want := range c.known[seq] {
		if !slices.Contains(c.prev, want) {
			c.add(seq, "entry %d is not the one that the head noted elsewhere names", seq)
		}
	}
	if err == nil && e.Policy != "" {
		c.policy = e.Policy
	}
}

// continues reports whether an entry, read from row, has the hash and the form that it
// has behind one of these hashes; any will do where there are none. If not, right are
// the hashes that it would have.
func continues(e AuditEntry, row []byte, before []string) (ok bool, right []string) {
	if len(before) == 0 {
		return true, nil
	}
	for _, e.Prev = range before {
		again, same, err := encodeAudit(e)
		if err != nil {
			continue
		}
		if again.Hash == e.Hash && bytes.Equal(same, row) {
			return true, nil
		}
		right = append(right, again.Hash)
	}
	return false, right
}

// missing notes that the entries before seq are not there.
func (c *chainCheck) missing(seq uint64) {
	if seq <= c.next {
		return
	}
	c.prev = nil
	if seq == c.next+1 {
		c.add(c.next, "entry %d is missing", c.next)
		return
	}
	c.add(c.next, "entries %d to %d are missing", c.next, seq-1)
}

// newest is the hash of the newest entry, as far as it is known.
func (c *chainCheck) newest() string {
	if len(c.prev) == 0 {
		return ""
	}
	return c.prev[0]
}

// end compares the head with the newest entry, in the transaction that read it.
func (c *chainCheck) end(tx kv.Reader) error {
	head, err := readAuditHead(tx)
	switch {
	case KindOf(err) == Corrupt:
		c.noHead = true
		c.add(c.next-1, "the head is damaged or missing: entries behind %d may be, too", c.next-1)
		head = auditHead{AuditHead{c.next - 1, c.newest()}, c.policy}
	case err != nil:
		return err
	case head.Seq >= c.next:
		c.missing(head.Seq + 1)
	case head.Seq < c.next-1:
		c.add(head.Seq+1, "entries are behind %d, where the head is", head.Seq)
	case len(c.prev) > 0 && !slices.Contains(c.prev, head.Hash):
		c.add(head.Seq, "entry %d is not the one that the head names", head.Seq)
	case head.Policy != c.policy && len(c.rep.Findings) == 0:
		c.add(head.Seq, "the head names another policy than the entries")
	}
	for seq := range c.known {
		if seq >= c.next {
			c.add(seq, "entry %d, which the head noted elsewhere names, is not there", seq)
		}
	}
	c.rep.Head, c.head = head.AuditHead, head
	return nil
}
