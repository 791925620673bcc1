package proxy

import _ "embed"

//go:embed schema/exec.v1.json
var envelopeSchema []byte

//go:embed schema/exec-event.v1.json
var eventSchema []byte

// EventSchema is the JSON Schema (draft 2020-12) of an Event, as published.
func EventSchema() []byte { return eventSchema }

// EnvelopeSchema is the JSON Schema (draft 2020-12) of the envelope, as published.
// A test generates it from the Go types.
func EnvelopeSchema() []byte { return envelopeSchema }

//go:embed schema/fanout.v1.json
var fanoutSchema []byte

// FanoutResultSchema is the JSON Schema (draft 2020-12) of a Fanout, as published.
func FanoutResultSchema() []byte { return fanoutSchema }
