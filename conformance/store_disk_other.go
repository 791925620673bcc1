//go:build !linux

package conformance

import "testing"

// smallDisk skips the test: a small disk is made on Linux only.
func smallDisk(t *testing.T) string {
	t.Helper()
	t.Skip("SKIP, THE FULL DISK IS NOT TESTED: a small disk is made on Linux only")
	return ""
}
