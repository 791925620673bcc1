package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/transfer"
	"github.com/agentvfs/avfs/workspace"
)

// leaf is what is said of a command besides its flags: how to use it, and what it
// prints with --json, which is a document of one of the types.
type leaf struct {
	command, example string
	types            []reflect.Type
}

func prints[T any](command, example string) leaf {
	return leaf{command, example, []reflect.Type{reflect.TypeFor[T]()}}
}

func printsEither[A, B any](command, example string) leaf {
	return leaf{command, example, []reflect.Type{reflect.TypeFor[A](), reflect.TypeFor[B]()}}
}

// or adds another type.
func or[T any](l leaf) leaf {
	l.types = append(l.types, reflect.TypeFor[T]())
	return l
}

// leaves lists every command. The help shows the examples, the schemas are made of
// the types, and the tests fail where a command is not in the list, where an example
// is no command line, and where a script makes a command print anything else.
func leaves() []leaf {
	return []leaf{
		prints[workspace.VaultDoc]("vault create", "avfs vault create project --backend bbolt"),
		prints[[]workspace.VaultDoc]("vault list", "avfs vault list --json"),
		prints[workspace.VaultDoc]("vault use", "avfs vault use project"),
		prints[workspace.VaultDoc]("vault info", "avfs vault info project"),
		prints[workspace.VaultDoc]("vault fork", "avfs vault fork project task"),
		prints[workspace.DeleteResult]("vault delete", "avfs vault delete task --yes"),
		prints[engine.MergeResult]("vault merge", "avfs vault merge task --into project"),
		prints[workspace.DiscardResult]("vault discard", "avfs vault discard task"),
		prints[workspace.BackupResult]("vault backup", "avfs vault backup project.avfs"),
		prints[[]workspace.VaultDoc]("vault restore", "avfs vault restore project.avfs"),
		prints[workspace.MigrateResult]("vault migrate", "avfs vault migrate --to badger"),

		prints[[]workspace.Entry]("ls", "avfs ls -l src"),
		printsEither[content, []content]("cat", "avfs cat README.md@before"),
		prints[workspace.WriteResult]("write", "echo text | avfs write --parents notes/today.md"),
		prints[workspace.EditResult]("edit", "avfs edit README.md --old teh --new the"),
		prints[workspace.PathsResult]("mkdir", "avfs mkdir -p src/deep"),
		prints[workspace.PathsResult]("rm", "avfs rm -r build"),
		prints[workspace.PathsResult]("cp", "avfs cp -r src copy"),
		prints[workspace.PathsResult]("mv", "avfs mv notes/today.md notes/done.md"),
		prints[workspace.PathsResult]("touch", "avfs touch -d 2026-01-31 notes/done.md"),
		prints[workspace.PathsResult]("ln", "avfs ln -s ../shared/config.yaml src/config.yaml"),
		prints[[]workspace.Entry]("stat", "avfs stat README.md"),
		prints[[]workspace.Entry]("tree", "avfs tree -L 2 src"),
		prints[[]workspace.Entry]("find", "avfs find src -name '*.go' -size +10k -mtime -7"),
		printsEither[[]workspace.GrepMatch, []workspace.GrepFile]("grep", "avfs grep -i --glob '*.go' -C 2 'func Test' src"),
		prints[workspace.SearchResult]("search", "avfs search 'http \"read body\" retry*' src --glob '*.go'"),
		prints[[]workspace.PathUsage]("du", "avfs du -d 1"),
		or[[]tagCount](printsEither[workspace.PathsResult, []workspace.TaggedPath]("tag", "avfs tag reviewed src/main.go")),
		prints[workspace.PathsResult]("untag", "avfs untag reviewed src/main.go"),
		prints[workspace.Meta]("meta", "avfs meta src/main.go owner=ada"),

		prints[workspace.ImportResult]("import", "avfs import ~/src/project"),
		prints[transfer.Report]("export", "avfs export / ~/result"),
		prints[transfer.ApplyReport]("apply", "avfs apply --to ~/src/project --dry-run"),

		prints[engine.Checkpoint]("checkpoint save", "avfs checkpoint save before -m 'before the migration'"),
		prints[[]engine.Checkpoint]("checkpoint list", "avfs checkpoint list"),
		prints[engine.RestoreResult]("checkpoint restore", "avfs checkpoint restore before -- README.md"),
		printsEither[[]engine.FileChange, diffDoc]("checkpoint diff", "avfs checkpoint diff before"),
		prints[engine.Checkpoint]("checkpoint delete", "avfs checkpoint delete before"),
		prints[engine.Checkpoint]("checkpoint info", "avfs checkpoint info before"),
		prints[diffDoc]("diff", "avfs diff -u before now src"),
		printsEither[[]engine.LogEntry, []pathEventDoc]("log", "avfs log -n 20 src/main.go"),
		prints[engine.RestoreResult]("checkout", "avfs checkout 'src/main.go@10m ago'"),
		prints[blameDoc]("blame-exec", "avfs blame-exec src/main.go"),
		prints[engine.UndoResult]("undo", "avfs undo"),
		prints[engine.UndoResult]("redo", "avfs redo"),
		prints[engine.UndoResult]("revert", "avfs revert 12 src/main.go --preview"),

		prints[proxy.Fanout]("fanout", "avfs fanout 4 --keep first-success -- make test"),
		printsEither[proxy.Envelope, []proxy.Envelope]("exec", "avfs exec -- go test ./..."),
		printsEither[proxy.Envelope, []proxy.Envelope]("proxy exec", "avfs proxy exec --json -- make"),
		prints[proxy.Envelope]("shell", "avfs shell --fork task"),
		prints[outputDoc]("output", "avfs output --tail 1000 last"),
		prints[[]serviceDoc]("services list", "avfs services list"),
		prints[outputDoc]("services logs", "avfs services logs web --tail 2000"),
		prints[workspace.Service]("services stop", "avfs services stop web"),
		prints[[]workspace.Session]("sessions list", "avfs sessions list"),
		prints[workspace.Session]("sessions show", "avfs sessions show work"),
		prints[workspace.Session]("sessions delete", "avfs sessions delete work"),
		prints[[]workspace.Approval]("approvals list", "avfs approvals list"),
		prints[workspace.Approval]("approvals show", "avfs approvals show 01J8ZQ4V6T"),
		prints[workspace.Approval]("approvals approve", "avfs approvals approve 01J8ZQ4V6T -m 'checked'"),
		prints[workspace.Approval]("approvals deny", "avfs approvals deny 01J8ZQ4V6T -m 'not on Friday'"),
		prints[workspace.MountInfo]("mount", "avfs mount project ~/project"),
		prints[workspace.MountInfo]("unmount", "avfs unmount ~/project"),
		prints[[]workspace.MountInfo]("mounts", "avfs mounts"),
		prints[mcpDoc]("mcp", "avfs mcp --vault project"),
		printsEither[stopDoc, apiDoc]("serve", "avfs serve --stop project"),

		prints[[]engine.AuditEntry]("audit list", "avfs audit list -n 20 --since 2h"),
		prints[engine.AuditReport]("audit verify", "avfs audit verify"),
		prints[engine.AuditHead]("audit head", "avfs audit head"),
		prints[workspace.QuotaDoc]("quota show", "avfs quota show"),
		prints[workspace.QuotaDoc]("quota set", "avfs quota set --bytes 2G --files 100000"),
		prints[engine.Stats]("stats", "avfs stats"),
		prints[engine.PruneReport]("prune", "avfs prune --keep-last 10 --dry-run"),
		prints[engine.GCReport]("gc", "avfs gc"),
		prints[workspace.CompactResult]("compact", "avfs compact"),
		printsEither[engine.CheckReport, engine.RepairReport]("fsck", "avfs fsck --read-data"),
		prints[policy.Decision]("policy check", "avfs policy check -- git push"),
		prints[policy.Decision]("policy explain", "avfs policy explain -- git push"),
		prints[[]policy.Finding]("policy lint", "avfs policy lint policy.yaml"),
		prints[policyTestDoc]("policy test", "avfs policy test commands.tsv"),
		prints[initDoc]("policy init", "avfs policy init"),
		prints[doctorDoc]("doctor", "avfs doctor"),
		prints[textDoc]("completions", "avfs completions bash"),
		prints[textDoc]("man", "avfs man"),
		prints[versionDoc]("version", "avfs version"),
		printsEither[jsonschema.Schema, []schemaDoc]("schema", "avfs schema vault create"),
	}
}

// leafOf finds a command in the list.
func leafOf(command string) (leaf, bool) {
	all := leaves()
	if i := slices.IndexFunc(all, func(l leaf) bool { return l.command == command }); i >= 0 {
		return all[i], true
	}
	return leaf{}, false
}

// The schemas that are not those of a command: of failures, and of a line that exec
// prints with --events.
const (
	errorSchema = "error"
	eventSchema = "exec events"
)

type schemaCmd struct {
	Name []string `arg:"" optional:"" help:"The command, such as vault create, or error, or exec events; without one they are listed."`
}

// schemaDoc names a schema.
type schemaDoc struct {
	Name string `json:"name"`
}

func (c *schemaCmd) run(a *app) error {
	if len(c.Name) == 0 {
		docs := []schemaDoc{{errorSchema}, {eventSchema}}
		for _, o := range leaves() {
			if len(o.types) > 0 {
				docs = append(docs, schemaDoc{o.command})
			}
		}
		return a.print(docs, func(w io.Writer) {
			for _, d := range docs {
				fmt.Fprintln(w, d.Name)
			}
		})
	}
	s, err := commandSchema(strings.Join(c.Name, " "))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(a.stdout)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	return w.Flush()
}

// commandSchema is the schema of what a command prints with --json when it does
// not fail, or with the name errorSchema of what every command prints when it does,
// or with eventSchema of each line of exec --events.
func commandSchema(name string) (*jsonschema.Schema, error) {
	switch name {
	case errorSchema:
		return titled(faultSchema(), "avfs error"), nil
	case eventSchema:
		s, err := typeSchema(reflect.TypeFor[proxy.Event]())
		if err != nil {
			return nil, err
		}
		return titled(s, "avfs "+eventSchema), nil
	}
	l, ok := leafOf(name)
	if !ok || len(l.types) == 0 {
		return nil, &engine.Error{Kind: engine.NotFound, Op: "schema", Path: name, Err: fmt.Errorf("there is no such schema; list them with: avfs schema")}
	}
	var forms []*jsonschema.Schema
	for _, t := range l.types {
		s, err := typeSchema(t)
		if err != nil {
			return nil, err
		}
		forms = append(forms, s)
	}
	if len(forms) == 1 {
		return titled(forms[0], "avfs "+name), nil
	}
	return titled(&jsonschema.Schema{AnyOf: forms}, "avfs "+name), nil
}

func titled(s *jsonschema.Schema, title string) *jsonschema.Schema {
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", title
	return s
}

// typeSchema makes the schema of a Go type. Later versions add fields, so further
// properties are allowed everywhere.
func typeSchema(t reflect.Type) (*jsonschema.Schema, error) {
	if t == reflect.TypeFor[jsonschema.Schema]() {
		return &jsonschema.Schema{Type: "object"}, nil
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[workspace.Fault](): faultSchema(),
		reflect.TypeFor[engine.Root]():     {Type: "string", Description: "a state of a vault"},
		reflect.TypeFor[engine.Path]():     pathSchema(),
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	}})
	if err != nil {
		return nil, fmt.Errorf("the schema of %v: %w", t, err)
	}
	extensible(s)
	typed(s, t)
	return s, nil
}

// typeKeyword is the keyword of a schema that holds the name of an object's type. It
// checks nothing, and is there for programs that make types of schemas.
const typeKeyword = "x-type"

// typed names the objects of a schema after their Go types.
func typed(s *jsonschema.Schema, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer:
		typed(s, t.Elem())
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			typed(s.Items, t.Elem())
		}
	case reflect.Map:
		if s.AdditionalProperties != nil {
			typed(s.AdditionalProperties, t.Elem())
		}
	case reflect.Struct:
		if len(s.Properties) == 0 || s.Extra[typeKeyword] != nil {
			return
		}
		s.Extra = map[string]any{typeKeyword: t.String()}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if p := s.Properties[name]; p != nil {
				typed(p, f.Type)
			}
		}
	}
}

// pathSchema describes a path that stands for itself, such as in a list.
func pathSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Description: "a path, with its exact bytes in base64 where it is not UTF-8",
		AnyOf: []*jsonschema.Schema{
			{Type: "string"},
			{Type: "object", Required: []string{"b64"}, Properties: map[string]*jsonschema.Schema{"b64": {Type: "string"}},
				Extra: map[string]any{typeKeyword: "engine.PathBytes"}},
		},
	}
}

// faultSchema describes an error of avfs.
func faultSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:        "object",
		Description: "an error of avfs itself, with details beside the two fields",
		Required:    []string{"error", "message"},
		Extra:       map[string]any{typeKeyword: "workspace.Fault"},
		Properties: map[string]*jsonschema.Schema{
			"error":   {Type: "string", Description: "a stable kind"},
			"message": {Type: "string", Description: "a sentence for people"},
			"hint":    {Type: "string", Description: "what to do about it"},
		},
	}
}

// extensible lets every object have further properties, and no list be null.
func extensible(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Items != nil {
		s.Type, s.Types = "array", nil
	}
	if len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	}
	for _, p := range s.Properties {
		extensible(p)
	}
	extensible(s.Items)
	extensible(s.AdditionalProperties)
}
