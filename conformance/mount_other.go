//go:build !linux

package conformance

import "testing"

// mountTests is empty outside Linux: the tests use Linux's system calls, and what
// a mount must hold differs between systems.
func mountTests() [][]mountTest {
	return [][]mountTest{{{
		name: "linux only",
		why:  "a suite that runs nothing must not look like one that passed",
		run:  func(_ *mountSuite, t *testing.T) { t.Skip("SKIP: the mount suite needs Linux") },
	}}}
}

// runAsChild has no roles to play outside Linux.
func (s *mountSuite) runAsChild() bool { return false }
