package httpapi

import (
	"net/http"
	"strconv"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// schemaOf refers to a schema of the document.
func schemaOf(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// The names of schemas that are not those of a command.
const (
	schemaFailure = "Failure"
	schemaEvent   = "Event"
	schemaHealth  = "Health"
	schemaBytes   = "Text"
)

// describe makes the OpenAPI document, which uses JSON Schema 2020-12 as it is.
func describe(cfg *Config) object {
	schemas := object{
		schemaFailure: cfg.Failure,
		schemaHealth: object{"type": "object", "required": []string{"status", "version", "pid"}, "properties": object{
			"status": object{"type": "string"}, "version": object{"type": "string"}, "pid": object{"type": "integer"},
		}},
		schemaBytes: object{"description": "a string, or the base64 of one that is not UTF-8", "anyOf": []object{
			{"type": "string"},
			{"type": "object", "required": []string{"b64"}, "additionalProperties": false, "properties": object{"b64": object{"type": "string", "contentEncoding": "base64"}}},
		}},
	}
	paths := object{
		prefix + "health":       object{"get": plain("health", "Tell that the server takes requests.", schemaOf(schemaHealth))},
		prefix + "openapi.json": object{"get": plain("openapi", "This description.", object{"type": "object"})},
	}
	for i := range cfg.Commands {
		c := &cfg.Commands[i]
		schemas[c.schemaName()] = c.Result
		if c.EventsFlag != "" {
			schemas[schemaEvent] = cfg.Event
		}
		item := object{"post": c.operation(http.MethodPost)}
		if c.ReadOnly {
			item["get"] = c.operation(http.MethodGet)
		}
		paths[prefix+c.path()] = item
	}
	doc := object{
		"openapi":    "3.1.0",
		"info":       object{"title": "avfs", "version": cfg.Version, "description": "The commands of avfs over HTTP. A property is a flag or an argument, an answer is what --json prints."},
		"servers":    []object{{"url": "http://localhost"}},
		"paths":      paths,
		"components": object{"schemas": schemas},
	}
	if cfg.Token != "" {
		doc["components"].(object)["securitySchemes"] = object{"token": object{"type": "http", "scheme": "bearer"}}
		doc["security"] = []object{{"token": []string{}}}
	}
	return doc
}

// schemaName is the name of the schema of what the command prints.
func (c *Command) schemaName() string { return strings.ReplaceAll(c.Name, " ", ".") }

// plain is an operation without properties.
func plain(id, summary string, schema object) object {
	return object{"operationId": id, "summary": summary, "responses": object{
		"200": object{"description": "The answer.", "content": object{typeJSON: object{"schema": schema}}}, "default": failed(),
	}}
}

// failed is the response to what fails.
func failed() object {
	return object{"description": "A failure; its kind decides the status.", "content": object{typeJSON: object{"schema": schemaOf(schemaFailure)}}}
}

// operation describes how the command is asked for.
func (c *Command) operation(method string) object {
	op := object{
		"operationId": strings.ReplaceAll(strings.ReplaceAll(c.Name, " ", "_"), "-", "_"),
		"summary":     c.Summary,
		"description": "On the command line: " + c.Example,
		"tags":        []string{c.Group},
		"responses":   object{"200": c.answer(), "default": failed()},
	}
	if method == http.MethodGet {
		op["operationId"] = op["operationId"].(string) + "_get"
		op["parameters"] = c.parameters()
		return op
	}
	content := object{typeJSON: object{"schema": c.properties()}}
	if c.Stdin {
		content[typeBytes] = object{"schema": object{"description": "the standard input; the properties are in the query"}}
		op["parameters"] = c.parameters()
	}
	op["requestBody"] = object{"required": c.needs(), "content": content}
	return op
}

// needs reports whether something has to be given.
func (c *Command) needs() bool {
	for _, p := range c.Params {
		if p.Required {
			return true
		}
	}
	return false
}

// answer describes what the command answers with.
func (c *Command) answer() object {
	content := object{typeJSON: object{"schema": schemaOf(c.schemaName())}}
	if c.Bytes {
		content[typeBytes] = object{}
	}
	if c.EventsFlag != "" {
		content[typeEvents] = object{"schema": object{
			"type": "string", "description": "events, the data of each is the JSON of an " + schemaEvent, "contentMediaType": typeJSON, "contentSchema": schemaOf(schemaEvent),
		}}
	}
	return object{
		"description": "The answer.", "content": content,
		"headers": object{headerExitCode: object{"description": "the exit code of the command line", "schema": object{"type": "integer"}}},
	}
}

// properties describes the body.
func (c *Command) properties() object {
	props, required := object{}, []string{}
	for i := range c.Params {
		p := &c.Params[i]
		props[p.Name] = p.schema(schemaOf(schemaBytes))
		if p.Required {
			required = append(required, p.Name)
		}
	}
	if c.Stdin {
		props[propStdin] = object{"type": "string", "description": "The standard input."}
		props[propStdinBase64] = object{"type": "string", "contentEncoding": "base64", "description": "The standard input, in base64."}
	}
	return object{"type": "object", "additionalProperties": false, "properties": props, "required": required}
}

// parameters describes the query. What the body may give instead is never required.
func (c *Command) parameters() []object {
	list := []object{}
	for i := range c.Params {
		p := &c.Params[i]
		list = append(list, object{
			"name": p.Name, "in": "query", "required": p.Required && !c.Stdin, "schema": p.schema(object{"type": "string"}),
		})
	}
	return list
}

// schema describes the values of a parameter; text is the schema of a string.
func (p *Param) schema(text object) object {
	one := object{}
	switch p.Kind {
	case Text:
		for k, v := range text {
			one[k] = v
		}
	case Bool:
		one["type"] = "boolean"
	case Int:
		one["type"] = "integer"
	case Number:
		one["type"] = "number"
	case Switch:
		one["type"] = []string{"boolean", "string"}
	}
	if len(p.Enum) > 0 {
		one = object{"type": "string", "enum": p.Enum}
	}
	s := one
	if p.List {
		s = object{"type": "array", "items": one}
	}
	if p.Help != "" {
		s["description"] = p.Help
	}
	if v, ok := p.value(); ok {
		s["default"] = v
	}
	return s
}

// value is the default as JSON has it.
func (p *Param) value() (any, bool) {
	if p.Default == "" || p.List {
		return nil, false
	}
	switch p.Kind {
	case Text:
		return p.Default, true
	case Int:
		n, err := strconv.ParseInt(p.Default, 10, 64)
		return n, err == nil
	case Number:
		n, err := strconv.ParseFloat(p.Default, 64)
		return n, err == nil
	}
	return nil, false
}
