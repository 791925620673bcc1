package policy

import "testing"

// The expressions are compiled late; one that cannot be must not wait for the
// command that needs it.
func TestPatternsCompile(t *testing.T) {
	for _, s := range []*scanner{
		pythonShells, nodeShells, perlShells, phpShells, luaShells, rShells, appleShells, anyShells, editorShells, sqlShells, awkShells,
	} {
		for _, p := range []pattern{s.starts, s.calls, awkFile} {
			if p != nil && p().String() == "" {
				t.Error("an empty expression matches everything")
			}
		}
	}
}
