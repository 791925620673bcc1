package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/httpapi"
	"github.com/agentvfs/avfs/proxy/run"
	"github.com/agentvfs/avfs/workspace"
)

// notInAPI are the commands that the API leaves out, and why.
func notInAPI() map[string]string {
	return map[string]string{
		"shell":       "needs a terminal",
		"serve":       "is a server itself",
		"mcp":         "is a server itself",
		"completions": "prints a text for a shell",
		"man":         "prints a text for people",
	}
}

// apiTrait is what the grammar does not say of a command.
type apiTrait struct {
	readOnly bool     // changes nothing
	stdin    bool     // reads standard input
	bytes    bool     // prints what is no document
	without  []string // flags that make no sense there
}

// apiTraits are those of the commands that have any.
func apiTraits() map[string]apiTrait {
	traits := map[string]apiTrait{
		"write":         {stdin: true},
		"import":        {stdin: true},
		"exec":          {stdin: true, without: []string{"stdin", "events"}},
		"proxy exec":    {stdin: true, without: []string{"stdin", "events"}},
		"export":        {bytes: true},
		"cat":           {readOnly: true, bytes: true},
		"output":        {readOnly: true, bytes: true},
		"services logs": {readOnly: true, bytes: true},
		"diff":          {readOnly: true, bytes: true},
		"mount":         {without: []string{"foreground"}},

		"checkpoint diff": {readOnly: true, bytes: true},
	}
	for _, name := range []string{
		"vault list", "vault info", "ls", "stat", "tree", "find", "grep", "search", "du", "checkpoint list", "checkpoint info", "log", "blame-exec",
		"services list", "sessions list", "sessions show", "approvals list", "approvals show", "mounts", "audit list", "audit verify", "audit head",
		"quota show", "stats", "policy check", "policy explain", "policy lint", "policy test", "version", "schema",
	} {
		traits[name] = apiTrait{readOnly: true}
	}
	return traits
}

// eventsFlag is the flag of exec that prints lines as something happens.
const eventsFlag = "events"

// stdinFlag is the flag of exec that passes standard input on.
const stdinFlag = "stdin"

// apiCommands describes every command that the API has, from the grammar.
func (a *app) apiCommands() ([]httpapi.Command, error) {
	k, err := a.parser(commands(), &globals{}, new(bool))
	if err != nil {
		return nil, err
	}
	out, traits := notInAPI(), apiTraits()
	var list []httpapi.Command
	for _, n := range k.Model.Leaves(false) {
		name := commandName(n)
		l, ok := leafOf(name)
		if _, left := out[name]; left || !ok || len(l.types) == 0 {
			continue
		}
		result, err := commandSchema(name)
		if err != nil {
			return nil, err
		}
		t := traits[name]
		c := httpapi.Command{
			Name: name, Summary: n.Help, Example: l.example, Result: result, ReadOnly: t.readOnly, Stdin: t.stdin, Bytes: t.bytes, Params: apiParams(n, t),
		}
		if g := n.ClosestGroup(); g != nil {
			c.Group = g.Key
		}
		for _, f := range flagsOf(n) {
			switch f.Name {
			case eventsFlag:
				c.EventsFlag = f.Name
			case stdinFlag:
				c.StdinFlag = f.Name
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// apiParams describes the flags and arguments of a command. Those of every command that
// are about standard output and standard error are none.
func apiParams(n *kong.Node, t apiTrait) []httpapi.Param {
	general := append([]string{"help", "json", "json-errors", "verbose", "quiet"}, t.without...)
	var params []httpapi.Param
	for _, f := range flagsOf(n) {
		if !slices.Contains(general, f.Name) {
			p := apiParam(f.Value)
			p.Flag = f.Name
			params = append(params, p)
		}
	}
	for _, v := range n.Positional {
		if p := apiParam(v); p.Name != "vault" { // which is the flag of that name as well
			params = append(params, p)
		}
	}
	return params
}

// apiParam describes what a flag and an argument have in common.
func apiParam(v *kong.Value) httpapi.Param {
	p := httpapi.Param{Name: propertyName(v.Name), Help: v.Help, Required: v.Required, List: v.IsSlice()}
	if v.HasDefault {
		p.Default = v.Default
	}
	if v.Enum != "" {
		p.Enum = v.EnumSlice()
	}
	t := v.Target.Type()
	for t.Kind() == reflect.Pointer || p.List && t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[keepRunning]():
		p.Kind = httpapi.Switch
	case t == reflect.TypeFor[time.Duration](): // a text such as 15m
	case t.Kind() == reflect.Bool:
		p.Kind = httpapi.Bool
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		p.Kind = httpapi.Int
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		p.Kind = httpapi.Number
	}
	return p
}

// propertyName is the name of a flag or an argument with letters, digits and _ alone.
func propertyName(name string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return '_'
		}
		return unicode.ToLower(r)
	}, name)
}

// apiCall runs a command line for a request. What it warns of goes to errs.
func apiCall(ctx context.Context, c httpapi.Call, errs io.Writer) httpapi.Outcome {
	if c.Peer.Known {
		ctx = engine.WithActor(ctx, engine.Actor{UID: c.Peer.UID, PID: c.Peer.PID, Exec: run.Inside(c.Peer.PID)})
	}
	call := innerCall{args: c.Args, door: "api", stdin: c.Stdin, stdout: c.Stdout}
	if wantsJSON(c.Args) { // else failures go there, of which the client is told
		call.stderr = errs
	}
	code, fault := call.outcome(ctx)
	out := httpapi.Outcome{ExitCode: code}
	if fault != nil {
		out.Failure = apiFailure(fault)
	}
	return out
}

func apiFailure(fault *workspace.Fault) *httpapi.Failure {
	doc, err := json.Marshal(fault)
	if err != nil { // the details have no form in JSON
		fault = &workspace.Fault{Kind: fault.Kind, Message: fault.Message}
		doc, _ = json.Marshal(fault) // texts always have one
	}
	return &httpapi.Failure{Kind: string(fault.Kind), Document: doc}
}

// statusByKind is the one table of HTTP statuses; docs/api.md prints the same.
var statusByKind = map[engine.Kind]int{
	kindUsage:                  http.StatusBadRequest,
	engine.Invalid:             http.StatusBadRequest,
	engine.InvalidName:         http.StatusBadRequest,
	engine.NameTooLong:         http.StatusBadRequest,
	engine.IsDirectory:         http.StatusBadRequest,
	engine.NotDirectory:        http.StatusBadRequest,
	engine.Loop:                http.StatusBadRequest,
	engine.TooManyLinks:        http.StatusBadRequest,
	engine.AttributeTooLarge:   http.StatusBadRequest,
	engine.NoData:              http.StatusBadRequest,
	engine.BadHandle:           http.StatusBadRequest,
	httpapi.KindNoToken:        http.StatusUnauthorized,
	httpapi.KindForbidden:      http.StatusForbidden,
	engine.Permission:          http.StatusForbidden,
	engine.ReadOnly:            http.StatusForbidden,
	engine.NotFound:            http.StatusNotFound,
	engine.VaultNotFound:       http.StatusNotFound,
	engine.CheckpointNotFound:  http.StatusNotFound,
	engine.EventNotFound:       http.StatusNotFound,
	engine.NothingToUndo:       http.StatusNotFound,
	engine.NothingToRedo:       http.StatusNotFound,
	engine.NoAttribute:         http.StatusNotFound,
	workspace.NotMounted:       http.StatusNotFound,
	workspace.ApprovalNotFound: http.StatusNotFound,
	workspace.SessionNotFound:  http.StatusNotFound,
	workspace.ServiceNotFound:  http.StatusNotFound,
	workspace.TextNotFound:     http.StatusNotFound,
	httpapi.KindMethod:         http.StatusMethodNotAllowed,
	httpapi.KindAccept:         http.StatusNotAcceptable,
	engine.Exists:              http.StatusConflict,
	engine.VaultExists:         http.StatusConflict,
	engine.CheckpointExists:    http.StatusConflict,
	engine.Busy:                http.StatusConflict,
	workspace.VaultBusy:        http.StatusConflict,
	engine.Drift:               http.StatusConflict,
	engine.Conflict:            http.StatusConflict,
	engine.NoAncestor:          http.StatusConflict,
	engine.NotEmpty:            http.StatusConflict,
	workspace.TextNotUnique:    http.StatusConflict,
	workspace.ApprovalInvalid:  http.StatusConflict,
	workspace.SessionMoved:     http.StatusConflict,
	workspace.MountMoved:       http.StatusConflict,
	engine.Stale:               http.StatusConflict,
	httpapi.KindTooLarge:       http.StatusRequestEntityTooLarge,
	engine.FileTooLarge:        http.StatusRequestEntityTooLarge,
	httpapi.KindMediaType:      http.StatusUnsupportedMediaType,
	engine.NotStore:            http.StatusUnprocessableEntity,
	engine.Locked:              http.StatusLocked,
	engine.Unsupported:         http.StatusNotImplemented,
	workspace.NoMounter:        http.StatusNotImplemented,
	engine.Interrupted:         http.StatusServiceUnavailable,
	httpapi.KindUnavailable:    http.StatusServiceUnavailable,
	workspace.OwnerLost:        http.StatusServiceUnavailable,
	workspace.VersionSkew:      http.StatusServiceUnavailable,
	engine.Closed:              http.StatusServiceUnavailable,
	engine.NoSpace:             http.StatusInsufficientStorage,
	engine.QuotaExceeded:       http.StatusInsufficientStorage,
}

// statusOf is the HTTP status of a failure.
func statusOf(kind string) int {
	if status, ok := statusByKind[engine.Kind(kind)]; ok {
		return status
	}
	return http.StatusInternalServerError
}
