package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The properties of a request that are no parameter: the command's standard input.
const (
	propStdin       = "stdin"
	propStdinBase64 = "stdin_base64"
)

// values are what a request gives: for each parameter one text, or those of a list.
type values map[string][]string

// request is what the properties of a request come to.
type request struct {
	values values
	stdin  []byte // nil: not given
}

// param finds a parameter of the command.
func (c *Command) param(name string) (Param, error) {
	for _, p := range c.Params {
		if p.Name == name {
			return p, nil
		}
	}
	return Param{}, fmt.Errorf("%s has no property %q", c.Name, name)
}

// fromJSON reads an object with the properties.
func (c *Command) fromJSON(body []byte) (request, error) {
	req := request{values: values{}}
	if len(bytes.TrimSpace(body)) == 0 {
		return req, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	var props map[string]json.RawMessage
	if err := d.Decode(&props); err != nil || props == nil {
		return req, errors.New("the body has to be one JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return req, errors.New("something follows the JSON object")
	}
	for name, raw := range props {
		if c.Stdin && (name == propStdin || name == propStdinBase64) {
			if err := req.setStdin(name, raw); err != nil {
				return req, err
			}
			continue
		}
		p, err := c.param(name)
		if err != nil {
			return req, err
		}
		if req.values[name], err = p.fromJSON(raw); err != nil {
			return req, fmt.Errorf("%s: %w", name, err)
		}
	}
	return req, nil
}

func (r *request) setStdin(name string, raw json.RawMessage) error {
	if r.stdin != nil {
		return fmt.Errorf("%s and %s exclude each other", propStdin, propStdinBase64)
	}
	if name == propStdinBase64 {
		r.stdin = []byte{}
		if err := json.Unmarshal(raw, &r.stdin); err != nil {
			return fmt.Errorf("%s: want base64", name)
		}
		return nil
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		return fmt.Errorf("%s: want a string", name)
	}
	r.stdin = []byte(*text)
	return nil
}

// fromJSON takes one value, or those of a list.
func (p *Param) fromJSON(raw json.RawMessage) ([]string, error) {
	if !p.List {
		text, err := p.one(raw)
		return []string{text}, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return nil, errors.New("want a list of " + p.wants() + "s")
	}
	texts := []string{}
	for _, item := range list {
		text, err := p.one(item)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// wants is what a value has to be, in words.
func (p *Param) wants() string {
	return [...]string{Text: "string", Bool: "boolean", Int: "whole number", Number: "number", Switch: "boolean or string"}[p.Kind]
}

// one takes one value as the text that the command line takes.
func (p *Param) one(raw json.RawMessage) (string, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		if p.Kind == Text || p.Kind == Switch {
			return p.text(v)
		}
	case bool:
		if p.Kind == Bool || p.Kind == Switch {
			return strconv.FormatBool(v), nil
		}
	case json.Number:
		if p.Kind == Int || p.Kind == Number {
			return p.text(v.String())
		}
	case map[string]any: // exact bytes
		text, ok := v["b64"].(string)
		b, err := base64.StdEncoding.DecodeString(text)
		if p.Kind == Text && ok && len(v) == 1 && err == nil {
			return p.text(string(b))
		}
	}
	return "", errors.New("want a " + p.wants())
}

// text checks a value in the form that the command line takes.
func (p *Param) text(s string) (string, error) {
	var err error
	switch p.Kind {
	case Int:
		_, err = strconv.ParseInt(s, 10, 64)
	case Number:
		_, err = strconv.ParseFloat(s, 64)
	case Bool:
		_, err = strconv.ParseBool(s)
	}
	if err != nil {
		return "", errors.New("want a " + p.wants())
	}
	if strings.IndexByte(s, 0) >= 0 {
		return "", errors.New("no value has a NUL byte")
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, s) {
		return "", errors.New("want one of " + strings.Join(p.Enum, ", "))
	}
	return s, nil
}

// fromQuery reads the properties of a query. A list is its name more than once, and a
// name without a value is true.
func (c *Command) fromQuery(query string) (request, error) {
	req := request{values: values{}}
	props, err := url.ParseQuery(query)
	if err != nil {
		return req, fmt.Errorf("the query: %w", err)
	}
	for name, texts := range props {
		p, err := c.param(name)
		if err != nil {
			return req, err
		}
		if len(texts) > 1 && !p.List {
			return req, fmt.Errorf("%s is given more than once", name)
		}
		for _, s := range texts {
			if s == "" && (p.Kind == Bool || p.Kind == Switch) {
				s = "true"
			}
			if s, err = p.text(s); err != nil {
				return req, fmt.Errorf("%s: %w", name, err)
			}
			req.values[name] = append(req.values[name], s)
		}
	}
	return req, nil
}

// args makes the argument vector, with flags that every such call gets in front. stdin
// says that there is input.
func (c *Command) args(v values, stdin bool, flags ...string) ([]string, error) {
	args := strings.Fields(c.Name)
	for _, f := range flags {
		args = append(args, "--"+f)
	}
	fromStdin := false
	for _, p := range c.Params {
		if p.Flag == "" {
			continue
		}
		for _, s := range v[p.Name] {
			fromStdin = fromStdin || s == "-"
			args = p.flag(args, s)
		}
	}
	if c.StdinFlag != "" && stdin && !fromStdin { // else a flag says what it is
		args = append(args, "--"+c.StdinFlag)
	}
	behind, err := c.behind(v)
	if err != nil || len(behind) == 0 {
		return args, err
	}
	return append(append(args, "--"), behind...), nil
}

// flag adds the flag with a value.
func (p *Param) flag(args []string, s string) []string {
	if p.Kind == Switch {
		switch s {
		case "true":
			return append(args, "--"+p.Flag)
		case "false":
			return args
		}
	}
	return append(args, "--"+p.Flag+"="+s)
}

// behind are the arguments. One that is not given before one that is has its default.
func (c *Command) behind(v values) (args []string, err error) {
	var skipped []Param
	for _, p := range c.Params {
		if p.Flag != "" {
			continue
		}
		texts := v[p.Name]
		if len(texts) == 0 {
			skipped = append(skipped, p)
			continue
		}
		for _, s := range skipped {
			if s.Default == "" {
				return nil, fmt.Errorf("%s without %s makes no sense", p.Name, s.Name)
			}
			args = append(args, s.Default)
		}
		args, skipped = append(args, texts...), nil
	}
	return args, nil
}
