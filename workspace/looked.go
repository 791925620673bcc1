package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/agentvfs/avfs/engine"
)

// StateMoved says that what a decision was made by is not what the vault holds by now.
const StateMoved engine.Kind = "StateMoved"

// Looked is what a caller has decided by: paths that it has looked at, and what it saw.
type Looked struct {
	PeekRequest
	Sum string `json:"sum"` // of what was seen
}

// Add notes a further look.
func (l *Looked) Add(req PeekRequest, seen []Peek) error {
	sum, err := sumPeeks(l.Sum, seen)
	if err == nil {
		l.Vault, l.Bytes, l.Names = req.Vault, req.Bytes, req.Names
		l.Paths, l.Sum = append(l.Paths, req.Paths...), sum
	}
	return err
}

// sumPeeks goes on with a digest of what was seen, which is the same however many looks
// it took.
func sumPeeks(sum string, seen []Peek) (string, error) {
	for i := range seen {
		text, err := json.Marshal(&seen[i])
		if err != nil {
			return "", err
		}
		next := sha256.Sum256(append([]byte(sum), text...))
		sum = hex.EncodeToString(next[:])
	}
	return sum, nil
}

// checkLooked fails with StateMoved if the vault holds something else by now than the
// caller of an exec has seen. What programs that run in the vault change from here on is
// not seen any more: a mount has one state for all.
func (o *Owner) checkLooked(ctx context.Context, v *engine.Vault, req *ExecRequest) error {
	if req.Looked == nil {
		return nil
	}
	seen := make([]Peek, len(req.Looked.Paths))
	for i, p := range req.Looked.Paths {
		var err error
		if seen[i], err = peek(ctx, v, string(p), req.Looked.PeekRequest); err != nil {
			return err
		}
	}
	sum, err := sumPeeks("", seen)
	if err == nil && sum != req.Looked.Sum {
		err = &engine.Error{Kind: StateMoved, Op: "exec", Path: req.Vault, Err: errors.New("what the policy has decided by keeps changing")}
	}
	return err
}
