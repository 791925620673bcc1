package engine

// NodeReads is how many tree nodes were asked for so far, cached or not.
func (s *Store) NodeReads() int64 { return s.nodes.reads.Load() }

// EncodeAudit gives an entry its hash and its row, as the engine does.
func EncodeAudit(e AuditEntry) (AuditEntry, []byte, error) { return encodeAudit(e) }

// ParseAudit is the entry of a row, without the hash of the one before.
func ParseAudit(key, row []byte) (AuditEntry, error) { return parseAudit(key, row) }
