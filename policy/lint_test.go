package policy

import "testing"

// TestDefaultIsClean holds that the shipped policy has no fault that Lint knows.
func TestDefaultIsClean(t *testing.T) {
	for _, f := range Default().Lint() {
		t.Errorf("line %d, %s: %s: %s", f.Line, f.Rule, f.Kind, f.Message)
	}
}
