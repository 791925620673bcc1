package proxy

import _ "embed"

//go:embed schema/exec.v1.json
var envelopeSchema []byte

// EnvelopeSchema is the JSON Schema (draft 2020-12) of the envelope, as published.
// A test generates it from the Go types.
func EnvelopeSchema() []byte { return envelopeSchema }
