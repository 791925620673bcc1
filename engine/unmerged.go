package engine

import "context"

// Unmerged is what a vault has that no other vault got from it.
type Unmerged struct {
	Changes []FileChange `json:"unmerged"` // the first of them
	Total   int          `json:"unmerged_total"`
	// Merged is the vault that it was last merged into; empty if it was not, and then
	// the changes are those since it was forked.
	Merged string `json:"merged_into,omitempty"`
}

// Unmerged lists up to limit of the changes of a fork since it was last merged into
// another vault, or else since it began.
func (s *Store) Unmerged(ctx context.Context, name string, limit int) (u Unmerged, err error) {
	v, err := s.Vault(ctx, name)
	if err != nil {
		return u, err
	}
	since, _ := v.ForkPoint()
	seq := uint64(0)
	for _, rec := range s.records() {
		for _, m := range rec.merges() {
			if m.Vault == v.id && m.Seq > seq {
				since, seq, u.Merged = m.Root, m.Seq, rec.Name
			}
		}
	}
	now, err := v.Pin(ctx)
	if err != nil {
		return u, err
	}
	defer v.Unpin(now)
	u.Changes, u.Total, err = s.Diff(ctx, since, now, &DiffOptions{Limit: limit})
	return u, err
}
