package posix

import "testing"

func TestSplitTime(t *testing.T) {
	for ns, want := range map[int64][2]int64{
		0: {}, 1: {0, 1}, 1_999_999_999: {1, 999_999_999}, -1: {-1, 999_999_999}, -2e9: {-2, 0}, -2e9 - 1: {-3, 999_999_999},
	} {
		sec, nsec := SplitTime(ns)
		if got := [2]int64{sec, nsec}; got != want {
			t.Errorf("%d ns is %d, want %d", ns, got, want)
		}
	}
}

func TestWithoutSetID(t *testing.T) {
	for mode, want := range map[uint32]uint32{0o4755: 0o755, 0o6755: 0o755, 0o2745: 0o2745, 0o2754: 0o754, 0o644: 0o644} {
		if got := WithoutSetID(mode); got != want {
			t.Errorf("%o becomes %o, want %o", mode, got, want)
		}
	}
}
