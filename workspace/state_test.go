package workspace

import (
	"testing"
	"time"
)

// TestParseTime reads every form of a time, and nothing else.
func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	local := func(s string) time.Time {
		got, err := time.ParseInLocation("2006-01-02 15:04:05", s, time.Local)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for s, want := range map[string]time.Time{
		"2026-03-04T10:00:00Z":        now.Add(-2 * time.Hour),
		"2026-03-04T10:00:00.5+02:00": now.Add(-4*time.Hour + 500*time.Millisecond),
		"2026-03-04 10:11:12":         local("2026-03-04 10:11:12"),
		"2026-03-04T10:11":            local("2026-03-04 10:11:00"),
		"2026-03-04":                  local("2026-03-04 00:00:00"),
		"10m ago":                     now.Add(-10 * time.Minute),
		"-10m":                        now.Add(-10 * time.Minute),
		"1w2d3h4m ago":                now.Add(-(9*24*time.Hour + 3*time.Hour + 4*time.Minute)),
		"-1.5d":                       now.Add(-36 * time.Hour),
		"0s ago":                      now,
	} {
		if got, ok := parseTime(s, now); !ok || !got.Equal(want) {
			t.Errorf("%s is %v, %v, want %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "ago", " ago", "-", "10", "10m", "-10", "--10m", "-5m-", "-d", "1d-2h ago", "-1000000000w", "2026-13-01", "noon", "c1"} {
		if got, ok := parseTime(s, now); ok {
			t.Errorf("%q is %v", s, got)
		}
	}
}

// TestSplitPast finds where the path ends and the state begins.
func TestSplitPast(t *testing.T) {
	for name, want := range map[string][2]string{
		"a@c1":               {"a", "c1"},
		"a@b@c1":             {"a@b", "c1"},
		"@c1":                {"", "c1"},
		"a@vault:w":          {"a", "vault:w"},
		"a@b@vault:w@#12^":   {"a@b", "vault:w@#12^"},
		"a@2026-03-04 10:11": {"a", "2026-03-04 10:11"},
	} {
		p, state, ok := splitPast(name)
		if !ok || p != want[0] || state != want[1] {
			t.Errorf("%s is %q in %q, %v", name, p, state, ok)
		}
	}
	for _, name := range []string{"", "a", "a@"} {
		if _, _, ok := splitPast(name); ok {
			t.Errorf("%q has a state", name)
		}
	}
}
