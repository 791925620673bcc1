//go:build !linux

package bbolt

// trim does nothing: only Linux says how much of a map is resident.
func (h *handle) trim(int64) {}
