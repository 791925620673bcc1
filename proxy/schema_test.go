package proxy

import (
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentvfs/avfs/workspace"
)

// generateSchema makes the schema from the Go types. Fields may be added within a
// version, so other properties are allowed.
func generateSchema() ([]byte, error) {
	fault := &jsonschema.Schema{
		Type:        "object",
		Description: "an error of avfs itself, with details beside the two fields",
		Required:    []string{"error", "message"},
		Properties: map[string]*jsonschema.Schema{
			"error":   {Type: "string", Description: "a stable kind"},
			"message": {Type: "string", Description: "a sentence for people"},
		},
	}
	s, err := jsonschema.For[Envelope](&jsonschema.ForOptions{
		TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[workspace.Fault](): fault},
	})
	if err != nil {
		return nil, err
	}
	open(s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = Schema
	s.Properties["schema"].Const = jsonschema.Ptr[any](Schema)
	statuses := []any{}
	for _, st := range allStatuses {
		statuses = append(statuses, string(st))
	}
	s.Properties["status"].Enum = statuses
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// generateEventSchema makes the schema of an Event from the Go types.
func generateEventSchema() ([]byte, error) {
	s, err := jsonschema.For[Event](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Envelope](): {Type: "object", Description: "the envelope, as its own schema says: " + Schema},
	}})
	if err != nil {
		return nil, err
	}
	open(s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "avfs.exec-event/v1"
	s.Properties["event"].Enum = []any{
		string(EventStarted), string(EventStdout), string(EventStderr), string(EventCombined), string(EventChanged), string(EventEnded),
	}
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// generateFanoutSchema makes the schema of a Fanout from the Go types.
func generateFanoutSchema() ([]byte, error) {
	s, err := jsonschema.For[Fanout](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Envelope](): {Type: "object", Description: "the envelope, as its own schema says: " + Schema},
	}})
	if err != nil {
		return nil, err
	}
	open(s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = FanoutSchema
	s.Properties["schema"].Const = jsonschema.Ptr[any](FanoutSchema)
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// open lets every object have further properties, and no list be null.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Items != nil {
		s.Type, s.Types = "array", nil
	}
	s.AdditionalProperties = nil
	for _, p := range s.Properties {
		open(p)
	}
	open(s.Items)
}

var allStatuses = [...]Status{
	StatusCompleted, StatusTimedOut, StatusInterrupted, StatusRunning, StatusStopped, StatusDenied, StatusApprovalRequired, StatusFailedToStart, StatusError,
}
