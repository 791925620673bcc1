package deptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/agentvfs/avfs"

// rule forbids imports to packages.
type rule struct {
	pkgs   []string // folders whose packages the rule is about; "" is the repository
	except []string // folders below them that it is not about
	forbid []string // import paths, or folders of ours that begin with "./"
	allow  []string // exceptions from forbid
	direct bool     // look at direct imports only, not at what they import in turn
	reason string
}

// ours forbids every package of this repository that allow does not name.
var ours = []string{"./"}

var rules = []rule{
	{pkgs: []string{"policy"}, forbid: ours, allow: []string{"./policy"},
		reason: "policy is pure: command and rules in, decision out; it needs nothing of ours"},
	{pkgs: []string{"policy"}, forbid: []string{"os/exec", "net", "net/http", "syscall", "golang.org/x/sys"}, direct: true,
		reason: "policy does no I/O"},
	{pkgs: []string{"engine/kv"}, forbid: ours, allow: []string{"./engine/kv"},
		reason: "the seam must not know what stands on it, or a back end would drag it in"},
	{pkgs: []string{"engine"}, forbid: ours, allow: []string{"./engine"},
		reason: "the engine runs on any back end and below any door"},
	{pkgs: []string{"backends/sqlite", "backends/bbolt", "backends/badger"}, forbid: ours,
		allow:  []string{"./engine/kv", "./internal/storefile", "./backends/sqlite", "./backends/bbolt", "./backends/badger"},
		reason: "a back end knows the seam, its files and its database only"},
	{pkgs: []string{"internal/storefile"}, forbid: ours, allow: []string{"./engine/kv", "./internal/storefile"},
		reason: "what back ends share must not bring one into another"},
	{pkgs: []string{"backends/sqlite"}, forbid: []string{"./backends/bbolt", "./backends/badger", "go.etcd.io", "github.com/dgraph-io"},
		reason: "a build with one back end must not carry another database"},
	{pkgs: []string{"backends/bbolt"}, forbid: []string{"./backends/sqlite", "./backends/badger", "github.com/ncruces", "github.com/dgraph-io"},
		reason: "a build with one back end must not carry another database"},
	{pkgs: []string{"backends/badger"}, forbid: []string{"./backends/sqlite", "./backends/bbolt", "github.com/ncruces", "go.etcd.io"},
		reason: "a build with one back end must not carry another database"},
	{pkgs: []string{""}, except: []string{"backends"}, forbid: []string{"github.com/ncruces/go-sqlite3", "go.etcd.io/bbolt", "github.com/dgraph-io/badger"}, direct: true,
		reason: "a database is known to its back end alone"},
	{pkgs: []string{"conformance"}, forbid: []string{"./backends", "./cmd", "./proxy", "./workspace", "./bench"},
		reason: "third parties run the suites against their own back ends"},
	{pkgs: []string{"cgofusefs", "gofusefs"}, forbid: []string{"./backends", "./policy", "./proxy", "./workspace", "./cmd"},
		reason: "a mount binding translates between the kernel and the engine and knows nothing else"},
	{pkgs: []string{"transfer"}, forbid: ours, allow: []string{"./transfer", "./engine"},
		reason: "moving trees needs the engine and the host, not who asked for it"},
	{pkgs: []string{"search"}, forbid: ours, allow: []string{"./search", "./engine"},
		reason: "an index is kept by any database and knows states, not who asks"},
	{pkgs: []string{"patch"}, forbid: ours, allow: []string{"./patch", "./engine"},
		reason: "writing a difference as text needs the states and nothing else"},
	{pkgs: []string{"proxy/run"}, forbid: ours, allow: []string{"./proxy/run"},
		reason: "running a process has nothing to do with vaults, policies or mounts"},
	{pkgs: []string{"internal/httpapi"}, forbid: ours, allow: []string{"./internal/httpapi"},
		reason: "serving commands over HTTP needs their description and a way to run them, not what they do"},
	{pkgs: []string{"workspace"}, forbid: []string{"./proxy", "./policy", "./cgofusefs", "./gofusefs"},
		reason: "opening a store by name has nothing to do with running commands or mounting"},
	{pkgs: []string{""}, except: []string{"cmd"}, forbid: []string{"./cmd"},
		reason: "the command line stands on top; nothing points back"},
	{pkgs: []string{""}, except: []string{"cmd"}, forbid: []string{"github.com/alecthomas/kong"},
		reason: "only the command line knows its parser"},
}

// pkg is what go list says about a package.
type pkg struct {
	ImportPath string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	Deps       []string
}

// TestImports checks every rule against the packages of this repository.
func TestImports(t *testing.T) {
	pkgs := list(t)
	for _, r := range rules {
		name := strings.Join(r.pkgs, "+") + " without " + strings.Join(r.forbid, ",")
		t.Run(name, func(t *testing.T) {
			checked := 0
			for _, p := range pkgs {
				if !r.about(p) {
					continue
				}
				checked++
				for _, bad := range r.violations(p) {
					t.Errorf("%s imports %s: %s", p.ImportPath, bad, r.reason)
				}
			}
			if checked == 0 {
				t.Skipf("SKIP: no package with Go files in %q yet", r.pkgs)
			}
		})
	}
}

// list returns the packages of this repository that have Go files.
func list(t *testing.T) (pkgs []pkg) {
	t.Helper()
	// -e: a package that does not compile right now still has imports.
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,GoFiles,CgoFiles,Imports,Deps", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles)+len(p.CgoFiles) > 0 {
			pkgs = append(pkgs, p)
		}
	}
	if len(pkgs) < 3 {
		t.Fatalf("go list names %d packages of ours, which cannot be all", len(pkgs))
	}
	return pkgs
}

// about reports whether r is about p.
func (r *rule) about(p pkg) bool {
	in := func(folders []string) bool {
		for _, f := range folders {
			if matches(p.ImportPath, "./"+f) {
				return true
			}
		}
		return false
	}
	return in(r.pkgs) && !in(r.except)
}

// violations lists what p must not import and does.
func (r *rule) violations(p pkg) (bad []string) {
	imports := p.Deps
	if r.direct {
		imports = p.Imports
	}
	for _, path := range imports {
		if matchesAny(path, r.forbid) && !matchesAny(path, r.allow) {
			bad = append(bad, path)
		}
	}
	return bad
}

// matchesAny reports whether path matches one of patterns.
func matchesAny(path string, patterns []string) bool {
	for _, p := range patterns {
		if matches(path, p) {
			return true
		}
	}
	return false
}

// matches reports whether path is the package pattern or one below it. "./x" is the
// folder x of this repository, "./" all of it.
func matches(path, pattern string) bool {
	if folder, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = strings.TrimSuffix(module+"/"+folder, "/")
	}
	return path == pattern || strings.HasPrefix(path, pattern+"/")
}

// TestRulesCanFail checks the checker: a made-up package that breaks a rule is found,
// and one that keeps it is not.
func TestRulesCanFail(t *testing.T) {
	r := rule{pkgs: []string{"engine"}, forbid: ours, allow: []string{"./engine"}}
	for _, tc := range []struct {
		path string
		deps []string
		want int
	}{
		{module + "/engine", []string{"fmt", module + "/engine/kv"}, 0},
		{module + "/engine/kv", []string{module + "/backends/sqlite", module + "/enginex"}, 2},
	} {
		p := pkg{ImportPath: tc.path, Deps: tc.deps}
		if got := r.violations(p); !r.about(p) || len(got) != tc.want {
			t.Errorf("%s with %q: violations %q, want %d", tc.path, tc.deps, got, tc.want)
		}
	}
	for path, want := range map[string]bool{module + "/enginex": false, module: false, module + "/engine/internal/tree": true} {
		if got := r.about(pkg{ImportPath: path}); got != want {
			t.Errorf("the rule is about %s: %v, want %v", path, got, want)
		}
	}
}
