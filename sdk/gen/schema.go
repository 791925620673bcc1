package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// schema is what the generator reads of a JSON Schema.
type schema struct {
	Type        types      `json:"type"`
	Name        string     `json:"x-type"`
	Description string     `json:"description"`
	Format      string     `json:"format"`
	Properties  properties `json:"properties"`
	Required    []string   `json:"required"`
	Items       *schema    `json:"items"`
	Additional  *schema    `json:"additionalProperties"`
	AnyOf       []*schema  `json:"anyOf"`
}

// types is the keyword "type", one name or a list of them.
type types []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *types) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(t))
	}
	*t = types{""}
	return json.Unmarshal(b, &(*t)[0])
}

// property is a field of an object.
type property struct {
	name   string
	schema *schema
}

// properties are the fields of an object in the order of the schema, which is that of
// the documents.
type properties []property

// UnmarshalJSON implements json.Unmarshaler.
func (p *properties) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		field := property{name: fmt.Sprint(name), schema: &schema{}}
		if err := d.Decode(field.schema); err != nil {
			return err
		}
		*p = append(*p, field)
	}
	return nil
}

// typeSet is every type that a command prints.
type typeSet struct {
	objects []*object // by name
	results []result  // in the order of avfs schema
}

// object is a type with a name.
type object struct {
	name   string
	schema *schema
	of     []string // the commands that print it
}

// result is what one command prints.
type result struct {
	command string
	schema  *schema
}

// readTypes asks a program for all its schemas.
func readTypes(program string) (*typeSet, error) {
	var names []struct{ Name string }
	if err := ask(program, &names, "--json"); err != nil {
		return nil, err
	}
	all := &typeSet{}
	byName := map[string]*object{}
	for _, n := range names {
		s := &schema{}
		if err := ask(program, s, strings.Fields(n.Name)...); err != nil {
			return nil, err
		}
		all.results = append(all.results, result{n.Name, s})
		if err := collect(byName, n.Name, s); err != nil {
			return nil, err
		}
	}
	for _, o := range byName {
		all.objects = append(all.objects, o)
	}
	slices.SortFunc(all.objects, func(a, b *object) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

func ask(program string, doc any, args ...string) error {
	cmd := exec.Command(program, append([]string{"schema"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%q: %w: %s", cmd.Args, err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, doc); err != nil {
		return fmt.Errorf("%q: %w", cmd.Args, err)
	}
	return nil
}

// collect adds the objects of a schema to those with a name. Two objects of one name
// must be the same.
func collect(all map[string]*object, command string, s *schema) error {
	if s == nil {
		return nil
	}
	if len(s.Properties) > 0 {
		if s.Name == "" {
			return fmt.Errorf("%s: an object with %s has no x-type", command, s.Properties[0].name)
		}
		if !strings.Contains(s.Name, ".") {
			return fmt.Errorf("%s: x-type %s has no package", command, s.Name)
		}
		s.Name = publicName(s.Name)
		o := all[s.Name]
		if o == nil {
			o = &object{name: s.Name, schema: s}
			all[s.Name] = o
		}
		if !slices.Contains(o.of, command) {
			o.of = append(o.of, command)
		}
	}
	for _, p := range s.Properties {
		if err := collect(all, command, p.schema); err != nil {
			return err
		}
	}
	for _, sub := range append([]*schema{s.Items, s.Additional}, s.AnyOf...) {
		if err := collect(all, command, sub); err != nil {
			return err
		}
	}
	if o := all[s.Name]; o != nil && len(s.Properties) > 0 && shape(o.schema) != shape(s) {
		return fmt.Errorf("%s: there are two types %s", command, s.Name)
	}
	return nil
}

// renamed are types that an SDK calls otherwise than avfs does: a Vault is what the
// methods belong to, and a type of one package may have the name of another's.
var renamed = map[string]string{
	"workspace.VaultDoc": "VaultInfo",
	"main.serviceDoc":    "ServiceInfo",
	"proxy.ServiceDoc":   "ServiceStarted",
	"proxy.ApprovalDoc":  "ApprovalState",
	"main.pathEventDoc":  "PathLogEntry",
	"proxy.Event":        "ExecEvent",
	"engine.Finding":     "CheckFinding",
	"policy.Finding":     "PolicyFinding",
	"transfer.Report":    "TransferReport",
	"main.policyTestDoc": "PolicyTestResult",
}

// publicName is the name of a type in an SDK.
func publicName(name string) string {
	if other, ok := renamed[name]; ok {
		return other
	}
	_, name, _ = strings.Cut(name, ".")
	return strings.TrimSuffix(strings.ToUpper(name[:1])+name[1:], "Doc")
}

// shape is the fields of an object with their types, as text.
func shape(s *schema) string {
	var b strings.Builder
	for _, p := range s.Properties {
		fmt.Fprintln(&b, p.name, typescriptType(p.schema), slices.Contains(s.Required, p.name))
	}
	return b.String()
}
