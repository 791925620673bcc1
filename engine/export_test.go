package engine

// NodeReads is how many tree nodes were asked for so far, cached or not.
func (s *Store) NodeReads() int64 { return s.nodes.reads.Load() }
