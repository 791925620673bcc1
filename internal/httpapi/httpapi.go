// Package httpapi serves the commands of a command line over HTTP. It knows none of
// them: it is given a description of each and a function that runs a command line, and
// makes of a request an argument vector, of what the command prints the answer, and of
// the descriptions an OpenAPI document. docs/api.md says what it promises.
//
// A value of a request can never become a flag or another command: a flag and its value
// are one argument, and what has no flag stands behind "--".
package httpapi

import (
	"context"
	"encoding/json"
	"io"
)

// Command describes a command that can be asked for.
type Command struct {
	// Name is its words, such as "vault create". The endpoint has slashes between them.
	Name    string
	Summary string
	Group   string
	Example string
	Params  []Param
	// Result is the JSON Schema of the document that it prints.
	Result any
	// ReadOnly commands change nothing, and answer GET too.
	ReadOnly bool
	// Stdin commands read standard input; those with a StdinFlag only if it is given.
	Stdin     bool
	StdinFlag string
	// Bytes commands print what is no document, unless they are given DocumentFlag.
	Bytes bool
	// EventsFlag has the command print lines of JSON as something happens; empty if it
	// cannot.
	EventsFlag string
}

// DocumentFlag is the flag with which every command prints one JSON document.
const DocumentFlag = "json"

// Kind is what values a parameter takes.
type Kind int

// The kinds. A Switch is true or a text.
const (
	Text Kind = iota
	Bool
	Int
	Number
	Switch
)

// Param is a flag or an argument of a command.
type Param struct {
	Name     string // of the property
	Flag     string // without dashes; empty if it is an argument, which stand in their order
	Help     string
	Kind     Kind
	List     bool
	Required bool
	Default  string
	Enum     []string
}

// Call is a command line to run.
type Call struct {
	Args  []string
	Stdin io.Reader // nil: empty
	// Stdout gets what the command prints, from one goroutine at a time.
	Stdout io.Writer
	Peer   Peer
}

// Outcome is how a command ended.
type Outcome struct {
	ExitCode int
	// Failure says why there is no answer; nil if there is one.
	Failure *Failure
}

// Failure is a document that tells of an error. It has the fields error, a stable kind,
// and message.
type Failure struct {
	Kind     string
	Document json.RawMessage
}

// Peer is the process at the other end of a connection.
type Peer struct {
	Known    bool
	UID, PID int
}

// Config is what a server serves.
type Config struct {
	Commands []Command
	// Run runs a command line until it ends, or ctx does. Any number run at a time.
	Run func(ctx context.Context, c Call) Outcome
	// Status is the HTTP status of a kind of failure that Run returns.
	Status func(kind string) int
	// Version is that of the program.
	Version string
	// Failure and Event are the JSON Schemas of failures and of events.
	Failure, Event any
	// Token has to be in every request; empty: none.
	Token string
	// Hosts are what the Host of a request may be; empty: anything.
	Hosts []string
}

// The kinds of failures that the server itself has.
const (
	KindUsage       = "Usage"
	KindNotFound    = "NotFound"
	KindNoToken     = "Unauthorized"
	KindForbidden   = "Forbidden"
	KindMethod      = "MethodNotAllowed"
	KindAccept      = "NotAcceptable"
	KindTooLarge    = "RequestTooLarge"
	KindMediaType   = "UnsupportedMediaType"
	KindUnavailable = "Unavailable"
)
