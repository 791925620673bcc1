package engine

import (
	"math"
	"testing"
	"time"
)

// TestKeeperForEver checks that a rule of very many days keeps everything of a day
// apart.
func TestKeeperForEver(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	for _, days := range []int{1000, 110_000, 999_999, math.MaxInt} {
		k := keeper{rule: Retention{Days: days}, now: now}
		if !k.keep(now.Add(-48*time.Hour)) || !k.keep(now.Add(-999*24*time.Hour)) {
			t.Errorf("a rule of %d days drops what is younger", days)
		}
	}
	k := keeper{rule: Retention{Days: 10}, now: now}
	if k.keep(now.Add(-11 * 24 * time.Hour)) {
		t.Error("a rule of 10 days keeps an entry of 11 days ago")
	}
}
