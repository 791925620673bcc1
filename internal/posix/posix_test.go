package posix

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"runtime"
	"strconv"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// neverOnMount are the kinds that no file system operation returns, or that have
// no better number than EIO.
var neverOnMount = map[engine.Kind]bool{
	engine.Corrupt: true, engine.Closed: true, engine.NothingToUndo: true, engine.NothingToRedo: true, engine.Drift: true,
	engine.NotStore: true, engine.Internal: true, engine.Conflict: true, engine.NoAncestor: true,
}

// Every kind that the engine declares has a number of its own or is listed above;
// a new kind fails here until somebody decides.
func TestCodeOfCoversEveryKind(t *testing.T) {
	for _, kind := range declaredKinds(t) {
		code := CodeOf(&engine.Error{Kind: kind})
		if code == EIO && !neverOnMount[kind] {
			t.Errorf("kind %s has no error number", kind)
		}
		if code != EIO && neverOnMount[kind] {
			t.Errorf("kind %s is listed without a number, but has %s", kind, code)
		}
	}
}

// declaredKinds reads the constants of type Kind from the engine's source.
func declaredKinds(t *testing.T) []engine.Kind {
	file, err := parser.ParseFile(token.NewFileSet(), "../../engine/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []engine.Kind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Kind" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, engine.Kind(text))
		return true
	})
	if len(kinds) < 20 {
		t.Fatalf("found only %d kinds", len(kinds))
	}
	return kinds
}

func TestCodeOf(t *testing.T) {
	quota := func(limit string) error {
		return &engine.Error{Kind: engine.QuotaExceeded, Details: map[string]any{"type": limit}}
	}
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, ""},
		{errors.New("anything else"), EIO},
		{fmt.Errorf("wrapped: %w", &engine.Error{Kind: engine.NotEmpty}), ENOTEMPTY},
		{context.Canceled, EINTR},
		{fs.ErrNotExist, ENOENT},
		{quota("max_file_size_mb"), EFBIG},
		{quota("max_size_mb"), EDQUOT},
		{quota("max_files"), EDQUOT},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestXattrSupported(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has name spaces")
	}
	for name, want := range map[string]bool{
		"user.k": true, "trusted.overlay.opaque": true, "security.capability": true,
		"system.posix_acl_access": false, "system.posix_acl_default": false, "system.other": false,
		"user": false, "user.": false, "other.k": false, "": false,
	} {
		if got := XattrSupported(name); got != want {
			t.Errorf("XattrSupported(%q) = %v, want %v", name, got, want)
		}
	}
}
