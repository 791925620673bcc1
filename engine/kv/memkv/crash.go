package memkv

// Crash says what took a store down.
type Crash uint8

const (
	// ProcessDeath keeps every acknowledged update.
	ProcessDeath Crash = iota
	// PowerLoss keeps every durable update, everything before it, and of the
	// relaxed updates after it the oldest keep.
	PowerLoss
)

// Clone returns the store as it would come back after a crash at this moment, open
// and independent of s, which goes on. keep is for PowerLoss: how many of the
// Tail relaxed updates survived; a larger number keeps them all.
func (s *Store) Clone(crash Crash, keep int) *Store {
	s.disk.mu.Lock()
	survived := s.disk.durable
	n := len(s.disk.tail)
	if crash == PowerLoss {
		n = min(max(keep, 0), n)
	}
	if n > 0 {
		survived = s.disk.tail[n-1]
	}
	s.disk.mu.Unlock()
	return newStore(&disk{durable: survived, held: true}, s.decls, false)
}

// Tail returns how many relaxed updates a power loss at this moment could take:
// Clone(PowerLoss, 0) to Clone(PowerLoss, Tail()) are all the states that it could
// leave.
func (s *Store) Tail() int {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return len(s.disk.tail)
}
