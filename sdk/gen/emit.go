package main

import (
	"fmt"
	"slices"
	"strings"
)

const generated = "Generated from the contract of avfs by \"make sdk-types\". Do not edit."

// union joins types, each once.
func union(types []string) string {
	var each []string
	for _, t := range types {
		if !slices.Contains(each, t) {
			each = append(each, t)
		}
	}
	return strings.Join(each, " | ")
}

// language says how a type is written.
type language struct {
	scalars map[string]string // by the name in a schema
	any     string
	list    func(item string) string
	byName  func(value string) string // an object with names of any kind
}

// write is the type of a schema, null among it where that is allowed.
func (l language) write(s *schema) string {
	if len(s.AnyOf) > 0 {
		var types []string
		for _, sub := range s.AnyOf {
			types = append(types, l.write(sub))
		}
		return union(types)
	}
	if len(s.Type) == 0 {
		return l.any
	}
	names := slices.Clone(s.Type)
	slices.SortStableFunc(names, func(a, b string) int { // null stands last
		return btoi(a == "null") - btoi(b == "null")
	})
	var types []string
	for _, name := range names {
		types = append(types, l.one(s, name))
	}
	return union(types)
}

func (l language) one(s *schema, name string) string {
	switch {
	case name == "array" && s.Items != nil:
		return l.list(l.write(s.Items))
	case name == "array":
		return l.list(l.any)
	case name == "object" && len(s.Properties) > 0:
		return s.Name
	case name == "object" && s.Additional != nil:
		return l.byName(l.write(s.Additional))
	case name == "object":
		return l.byName(l.any)
	}
	return l.scalars[name]
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

var inPython = language{
	scalars: map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"},
	any:     "Any",
	list:    func(item string) string { return "list[" + item + "]" },
	byName:  func(value string) string { return "dict[str, " + value + "]" },
}

var inTypescript = language{
	scalars: map[string]string{"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"},
	any:     "unknown",
	list: func(item string) string {
		if strings.Contains(item, " ") {
			item = "(" + item + ")"
		}
		return item + "[]"
	},
	byName: func(value string) string { return "{ [name: string]: " + value + " }" },
}

func typescriptType(s *schema) string { return inTypescript.write(s) }

// printedBy says which commands a type comes from.
func printedBy(o *object) string {
	const most = 4
	names := o.of[:min(len(o.of), most)]
	text := strings.Join(names, ", ")
	if len(o.of) > most {
		text += " and others"
	}
	return text
}

// keywords are the words that are no names of fields in a class of Python.
var keywords = strings.Fields(`False None True and as assert async await break class continue def del elif else except
finally for from global if import in is lambda nonlocal not or pass raise return try while with yield`)

// python is the types as a module.
func python(all *typeSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", generated)
	b.WriteString("\"\"\"What the commands of avfs print with --json.\n\nA document may have more fields than its type: later versions add some.\n\"\"\"\n\n")
	b.WriteString("from __future__ import annotations\n\nfrom typing import Any, NotRequired, TypedDict\n\n")
	names := make([]string, 0, len(all.objects))
	for _, o := range all.objects {
		names = append(names, fmt.Sprintf("    %q,\n", o.name))
	}
	fmt.Fprintf(&b, "__all__ = [\n%s]\n", strings.Join(names, ""))
	for _, o := range all.objects {
		pythonClass(&b, o)
	}
	return b.String()
}

func pythonClass(b *strings.Builder, o *object) {
	type field struct{ name, text string }
	var fields []field
	plain := true
	for _, p := range o.schema.Properties {
		text := inPython.write(p.schema)
		if !slices.Contains(o.schema.Required, p.name) {
			text = "NotRequired[" + text + "]"
		}
		plain = plain && !slices.Contains(keywords, p.name)
		fields = append(fields, field{p.name, text})
	}
	if !plain {
		fmt.Fprintf(b, "\n\n# In the documents of: %s.\n%s = TypedDict(\n    %q,\n    {\n", printedBy(o), o.name, o.name)
		for _, f := range fields {
			fmt.Fprintf(b, "        %q: %q,\n", f.name, f.text)
		}
		b.WriteString("    },\n)\n")
		return
	}
	fmt.Fprintf(b, "\n\nclass %s(TypedDict):\n    \"\"\"In the documents of: %s.\"\"\"\n\n", o.name, printedBy(o))
	for _, f := range fields {
		fmt.Fprintf(b, "    %s: %s\n", f.name, f.text)
	}
}

// typescript is the types as declarations.
func typescript(all *typeSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n//\n// A document may have more fields than its type: later versions add some.\n", generated)
	for _, o := range all.objects {
		fmt.Fprintf(&b, "\n/** In the documents of: %s. */\nexport interface %s {\n", printedBy(o), o.name)
		for _, p := range o.schema.Properties {
			mark := "?"
			if slices.Contains(o.schema.Required, p.name) {
				mark = ""
			}
			if p.schema.Description != "" {
				fmt.Fprintf(&b, "  /** %s */\n", p.schema.Description)
			}
			fmt.Fprintf(&b, "  %s%s: %s;\n", p.name, mark, typescriptType(p.schema))
		}
		b.WriteString("}\n")
	}
	b.WriteString("\n/** What each command prints with --json. */\nexport interface Results {\n")
	for _, r := range all.results {
		if r.command == "error" || r.command == "exec events" {
			continue
		}
		fmt.Fprintf(&b, "  %q: %s;\n", r.command, typescriptType(r.schema))
	}
	b.WriteString("}\n")
	return b.String()
}
