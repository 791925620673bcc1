package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// inVault is the argument that every tool about files, commands or history has.
type inVault struct {
	Vault string `json:"vault,omitempty" jsonschema:"the vault to work in; by default the one that the server was started for"`
}

// named is the vault that a call names; empty without.
func (i inVault) named() string { return i.Vault }

// mcpTool says what a tool is.
type mcpTool struct {
	name, title, text string
	command           string // the command whose document the result is
	hints             hints
}

// hints are what a tool tells of itself to clients, which may ask a person because of
// them.
type hints struct {
	reads      bool // changes nothing
	adds       bool // changes nothing that is there
	idempotent bool // a second call with the same arguments changes nothing more
	reachesOut bool // touches more than vaults
}

func (h hints) annotations(title string) *mcp.ToolAnnotations {
	destructive := !h.reads && !h.adds
	return &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: h.reads, DestructiveHint: &destructive, IdempotentHint: h.idempotent || h.reads, OpenWorldHint: &h.reachesOut,
	}
}

// mcpLine is the command line of a call.
type mcpLine struct {
	vault string // for --vault; empty leaves it out
	args  []string
	stdin string
}

// addTool offers a command as a tool: line makes the command line of the arguments, and
// say tells a model of the document that the command has printed.
func addTool[In, Doc any](s *mcpServer, t mcpTool, line func(In) (mcpLine, error), say func(w io.Writer, in In, doc Doc)) {
	addHandler(s, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (answer, error) {
		l, err := line(in)
		if err != nil {
			return answer{}, err
		}
		if i, ok := any(in).(interface{ named() string }); ok {
			l.vault = s.or(i.named())
		}
		tell := newTeller(ctx, req)
		defer tell.close()
		got, err := l.run(ctx, tell)
		if err != nil || got.fault != nil {
			return got, err
		}
		var doc Doc
		if err := json.Unmarshal(got.doc, &doc); err != nil {
			return got, err
		}
		var text strings.Builder
		say(&text, in, doc)
		got.text = text.String()
		if f, ok := any(&doc).(*proxy.Envelope); ok {
			got.failed = execFailed(f)
		}
		return got, nil
	})
}

// addHandler offers a tool that do answers. Clients that are told that they can only
// look do not see one that changes something.
func addHandler[In any](s *mcpServer, t mcpTool, do func(context.Context, *mcp.CallToolRequest, In) (answer, error)) {
	if s.readOnly && !t.hints.reads {
		return
	}
	tool := &mcp.Tool{Name: t.name, Title: t.title, Description: t.text, Annotations: t.hints.annotations(t.title), OutputSchema: t.output()}
	mcp.AddTool(s.Server, tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		session := ""
		if req.Session != nil {
			session = req.Session.ID()
		}
		ctx, done := s.begin(ctx, session)
		defer done()
		got, err := do(ctx, req, in)
		if err != nil {
			fault := workspace.NewFault(err)
			got = answer{fault: fault}
		}
		return got.result()
	})
}

// output is the schema of what a tool gives: the document of its command, or an error.
// A list is a member of an object, because that is all that most clients take.
func (t mcpTool) output() *jsonschema.Schema {
	doc, err := commandSchema(t.command)
	if err != nil {
		panic(err) // the table of commands has it
	}
	doc.Schema = ""
	forms := doc.AnyOf
	if len(forms) == 0 {
		forms = []*jsonschema.Schema{doc}
	}
	all := []*jsonschema.Schema{}
	for _, f := range forms {
		if f.Type == "array" {
			f = &jsonschema.Schema{Type: "object", Required: []string{listMember}, Properties: map[string]*jsonschema.Schema{listMember: f}}
		}
		all = append(all, f)
	}
	return &jsonschema.Schema{Type: "object", AnyOf: append(all, faultSchema())}
}

// listMember is the member that holds the list where the document of a command is one.
const listMember = "result"

// run runs the command line in this process.
func (l mcpLine) run(ctx context.Context, tell *teller) (answer, error) {
	args := []string{"--json"}
	if l.vault != "" {
		args = append(args, "--vault="+l.vault)
	}
	var out, errs bytes.Buffer
	call := innerCall{
		args: append(args, l.args...), stdin: strings.NewReader(l.stdin), stdout: &out, stderr: &errs,
		events: tell.event, progress: tell.count,
	}
	code := call.do(ctx)
	doc := bytes.TrimSpace(out.Bytes())
	if !json.Valid(doc) {
		return answer{}, fmt.Errorf("%s gave no document: %s", strings.Join(l.args, " "), errs.Bytes())
	}
	got := answer{doc: doc}
	if code != exitOK {
		got.fault = faultIn(doc)
	}
	return got, nil
}

// faultIn is the error that a document tells, nil where it is none.
func faultIn(doc json.RawMessage) *workspace.Fault {
	var probe struct {
		Kind    engine.Kind `json:"error"`
		Message string      `json:"message"`
	}
	if json.Unmarshal(doc, &probe) != nil || probe.Kind == "" || probe.Message == "" {
		return nil // an envelope has an object there
	}
	var f workspace.Fault
	if err := json.Unmarshal(doc, &f); err != nil {
		return nil
	}
	return &f
}

// answer is the result of a tool.
type answer struct {
	doc    json.RawMessage
	text   string           // for a model
	failed bool             // the document tells that it did not work
	fault  *workspace.Fault // it is an error
}

// result turns an answer into the form of the protocol.
func (g answer) result() (*mcp.CallToolResult, any, error) {
	if g.fault != nil {
		g.failed = true
		g.text = faultText(g.fault)
		if len(g.doc) == 0 {
			doc, err := json.Marshal(g.fault)
			if err != nil {
				return nil, nil, err
			}
			g.doc = doc
		}
	}
	doc, err := bounded(g.doc)
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: shorten(g.text, maxText)}}, StructuredContent: doc, IsError: g.failed,
	}, nil, nil
}

// toolHints say to a model what to do about an error, where the hint of the command
// line speaks of commands and flags.
var toolHints = map[engine.Kind]string{
	workspace.TextNotFound:    "read the file again: its text has to be given exactly, with its white space",
	workspace.TextNotUnique:   "give more of the text around it, or set replace_all",
	engine.CheckpointNotFound: "list them with avfs_checkpoint_list",
	engine.EventNotFound:      "list them with avfs_log",
	engine.VaultNotFound:      "list them with avfs_vault_list",
	engine.Conflict:           `decide each path with "ours" or "theirs"; "." is everything`,
	engine.Drift:              `look with "preview", and go on all the same with "force"`,
}

// faultText tells a model of an error.
func faultText(f *workspace.Fault) string {
	text := fmt.Sprintf("%s: %s", f.Kind, f.Message)
	hint, _ := f.Details["hint"].(string)
	if own, ok := toolHints[f.Kind]; ok {
		hint = own
	}
	if hint != "" {
		text += "\nhint: " + hint
	}
	if list, ok := f.Details["conflicts"].([]any); ok {
		for i, c := range list {
			if m, ok := c.(map[string]any); ok && i < shownChanges {
				text += fmt.Sprintf("\n%v: %v", m["path"], conflictTexts[engine.ConflictKind(fmt.Sprint(m["kind"]))])
			}
		}
	}
	return text
}

// errArguments says that arguments make no sense.
func errArguments(format string, args ...any) error {
	return &engine.Error{Kind: engine.Invalid, Err: fmt.Errorf(format, args...)}
}

// bounds on what one call gives: a model has to read it. What is longer is cut, and says
// so.
const (
	maxDocument = 128 << 10
	maxText     = 40 << 10
)

// errTooLarge says that a document cannot be cut.
var errTooLarge = errors.New("the result is too large")

// bounded makes an object of a document, which is no longer than maxDocument. Its longest
// texts lose their middle and its longest lists their end; "omitted" says how much.
func bounded(doc json.RawMessage) (json.RawMessage, error) {
	if bytes.HasPrefix(doc, []byte("[")) {
		doc = fmt.Appendf(nil, `{%q:%s}`, listMember, doc)
	}
	if len(doc) <= maxDocument {
		return doc, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return nil, err
	}
	left := map[string]int{}
	if told := members["omitted"]; told != nil { // by who made the document
		if err := json.Unmarshal(told, &left); err != nil {
			return nil, err
		}
	}
	for total := len(doc); total > maxDocument; {
		name := longest(members)
		short, cut := halved(members[name])
		if cut == 0 {
			return nil, errTooLarge
		}
		total -= len(members[name]) - len(short)
		members[name] = short
		left[name] += cut
	}
	told, err := json.Marshal(left)
	if err != nil {
		return nil, err
	}
	members["omitted"] = told
	return json.Marshal(members)
}

func longest(members map[string]json.RawMessage) string {
	name := ""
	for n, v := range members {
		if name == "" || len(v) > len(members[name]) || len(v) == len(members[name]) && n < name {
			name = n
		}
	}
	return name
}

// halved is a text without its middle or a list without its second half, and how many
// bytes or elements are left out; 0 if it is neither.
func halved(v json.RawMessage) (json.RawMessage, int) {
	var text string
	var list []json.RawMessage
	switch {
	case json.Unmarshal(v, &text) == nil && len(text) > 64:
		short := shorten(text, len(text)/2)
		b, err := json.Marshal(short)
		if err != nil {
			return v, 0
		}
		return b, len(text) - len(text)/2
	case json.Unmarshal(v, &list) == nil && len(list) > 0:
		b, err := json.Marshal(list[:len(list)/2])
		if err != nil {
			return v, 0
		}
		return b, len(list) - len(list)/2
	}
	return v, 0
}

// shorten leaves out the middle of a text that is longer than most bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := text[:most/2], text[len(text)-most/2:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n[... %d bytes left out ...]\n", len(text)-2*(most/2)) + strings.ToValidUTF8(tail, "")
}
