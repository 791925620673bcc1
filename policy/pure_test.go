package policy

import (
	"go/parser"
	gotoken "go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestIsPure holds that the package asks nothing but its arguments: it imports
// nothing that reads files, clocks, the network or the rest of the project.
func TestIsPure(t *testing.T) {
	forbidden := map[string]string{
		"os": "it reads the machine", "io": "it reads streams", "time": "it has a clock", "net": "it talks to others", "math/rand": "it is not repeatable", "math/rand/v2": "it is not repeatable",
		"os/exec": "it runs programs", "path/filepath": "it depends on the system", "syscall": "it reads the machine", "log": "libraries do not print", "unsafe": "nothing here needs it",
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		files++
		f, err := parser.ParseFile(gotoken.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why, bad := forbidden[name]; bad {
				t.Errorf("%s imports %s: %s", e.Name(), name, why)
			}
			if strings.HasPrefix(name, "github.com/agentvfs/") {
				t.Errorf("%s imports %s: policy stands alone", e.Name(), name)
			}
		}
	}
	if files < 10 {
		t.Errorf("only %d files were looked at", files)
	}
}
