package proxy

import (
	"encoding/base64"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy/run"
)

// EventKind says what an Event tells.
type EventKind string

// The kinds, in the order in which they come: one EventStarted if the command runs,
// any number of what it prints, one EventChanged for each listed change, and one
// EventEnded in every case.
const (
	EventStarted  EventKind = "started"
	EventStdout   EventKind = "stdout"
	EventStderr   EventKind = "stderr"
	EventCombined EventKind = "combined" // both streams, with Request.Combined
	EventChanged  EventKind = "changed"
	EventEnded    EventKind = "ended"
)

// Event is one thing that happened during an execution, told at once. What of its
// fields is there depends on its kind.
type Event struct {
	Kind   EventKind          `json:"event"`
	ExecID string             `json:"exec_id"`
	At     time.Time          `json:"at"`
	Vault  string             `json:"vault,omitempty"`    // started
	PID    int                `json:"pid,omitempty"`      // started
	Text   string             `json:"text,omitempty"`     // what was printed; whole characters
	Base64 string             `json:"base64,omitempty"`   // the same, where it is not UTF-8
	Change *engine.FileChange `json:"change,omitempty"`   // changed
	Result *Envelope          `json:"envelope,omitempty"` // ended
}

// teller tells events. Without a function to tell it does nothing.
type teller struct {
	exec  string
	relay *relay // through which everything goes while the command runs

	mu   sync.Mutex // guards what follows, and is held while something is told
	tell func(Event)
	rest map[EventKind][]byte // the beginning of a character, of each stream
}

func newTeller(exec string, tell func(Event)) *teller {
	return &teller{exec: exec, relay: newRelay(), tell: tell, rest: map[EventKind][]byte{}}
}

func (t *teller) send(ev Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sendLocked(ev)
}

func (t *teller) sendLocked(ev Event) {
	if t.tell == nil {
		return
	}
	ev.ExecID, ev.At = t.exec, time.Now().UTC()
	t.tell(ev)
}

// printed tells what the command has printed. The beginning of a character waits for
// its end.
func (t *teller) printed(kind EventKind, p []byte) {
	if t.tell == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p = append(t.rest[kind], p...)
	whole := run.WholeCharacters(p)
	t.rest[kind] = append([]byte(nil), p[len(whole):]...)
	t.text(kind, whole)
}

func (t *teller) text(kind EventKind, p []byte) {
	switch {
	case len(p) == 0:
	case utf8.Valid(p):
		t.sendLocked(Event{Kind: kind, Text: string(p)})
	default:
		t.sendLocked(Event{Kind: kind, Base64: base64.StdEncoding.EncodeToString(p)})
	}
}

// ended tells the rest and the result.
func (t *teller) ended(env *Envelope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, kind := range []EventKind{EventStdout, EventStderr, EventCombined} {
		t.text(kind, t.rest[kind])
		t.rest[kind] = nil
	}
	for i := range env.ChangedFiles {
		t.sendLocked(Event{Kind: EventChanged, Change: &env.ChangedFiles[i]})
	}
	t.sendLocked(Event{Kind: EventEnded, Result: env})
}
