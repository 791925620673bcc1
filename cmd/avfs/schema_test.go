package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"
)

// schemaFaultsVar names the variable with the file that gets a line for each
// document that is not what the schema of its command says.
const schemaFaultsVar = "AVFS_TEST_SCHEMA_FAULTS"

// checkedCode is mainCode, and compares what a command prints with its schema.
func checkedCode() int {
	file, args := os.Getenv(schemaFaultsVar), os.Args[1:]
	if _, ok := ownerArgs(args); ok || file == "" || !wantsJSON(args) && !wantsFlag(args, "--events") {
		return mainCode()
	}
	ctx, stop := signalContext(context.Background())
	defer stop()
	a := newApp(ctx)
	var doc bytes.Buffer
	a.stdout = io.MultiWriter(os.Stdout, &doc)
	code := a.run(args)
	check := checkEvents
	if a.flags.JSON {
		check = checkDocument
	}
	if err := check(a.command, code, doc.Bytes()); err != nil {
		line := fmt.Sprintf("%q ended with %d: %v\n", os.Args, code, err)
		f, ferr := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if ferr == nil {
			_, ferr = f.WriteString(line)
			ferr = errors.Join(ferr, f.Close())
		}
		if ferr != nil {
			fmt.Fprintln(os.Stderr, line, ferr)
			return exitSchemaFault
		}
	}
	return code
}

// exitSchemaFault is the exit code where a wrong document could not be reported.
const exitSchemaFault = 99

// checkDocument compares a document with the schema of its command, or, where the
// command failed, with that of failures. Without a command it is help, or a failure.
func checkDocument(command string, code int, doc []byte) error {
	if command == "" && code == exitOK || command == "serve" && len(doc) == 0 {
		return nil
	}
	var value any
	if err := json.Unmarshal(doc, &value); err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	failed := matches(errorSchema, value)
	if code != exitOK && failed == nil {
		return nil
	}
	if command == "" {
		return failed
	}
	return matches(command, value)
}

// checkEvents compares each line that exec --events prints with its schema.
func checkEvents(_ string, _ int, lines []byte) error {
	for line := range bytes.Lines(lines) {
		var value any
		if err := json.Unmarshal(line, &value); err != nil {
			return fmt.Errorf("no JSON: %q: %w", line, err)
		}
		if err := matches(eventSchema, value); err != nil {
			return err
		}
	}
	return nil
}

func matches(name string, value any) error {
	s, err := commandSchema(name)
	if err != nil {
		return err
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	return r.Validate(value)
}

// leafCommands lists the commands that the parser knows.
func leafCommands(t *testing.T) []string {
	k, err := newApp(t.Context()).parser(commands(), &globals{}, new(bool))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, n := range k.Model.Leaves(false) {
		list = append(list, commandName(n))
	}
	return list
}

func TestEveryCommandIsInTheTable(t *testing.T) {
	known := map[string]bool{}
	for _, l := range leaves() {
		if known[l.command] {
			t.Errorf("%s is listed twice", l.command)
		}
		known[l.command] = true
	}
	for _, name := range leafCommands(t) {
		if !known[name] {
			t.Errorf("%q is missing from leaves(): its example and what it prints with --json", name)
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("leaves() has %q, which is no command", name)
	}
}

// TestExamples parses every example.
func TestExamples(t *testing.T) {
	for _, l := range leaves() {
		line := l.example
		if _, after, ok := strings.Cut(line, " | "); ok {
			line = after
		}
		words, err := shell.Fields(line, func(string) string { return "" })
		if err != nil || words[0] != "avfs" {
			t.Errorf("%s: %q is no call of avfs: %v", l.command, l.example, err)
			continue
		}
		a := newApp(t.Context())
		if _, err := a.parse(words[1:]); err != nil || a.command != l.command {
			t.Errorf("%q is understood as %q: %v", l.example, a.command, err)
		}
	}
}

// TestSchemas holds each schema to be a schema, and to reject what is none of its
// documents.
func TestSchemas(t *testing.T) {
	for _, l := range leaves() {
		if len(l.types) == 0 || l.command == "schema" {
			continue
		}
		for _, wrong := range []any{nil, "text", 1.5, []any{1.0}, map[string]any{"unrelated": true}} {
			if err := matches(l.command, wrong); err == nil {
				t.Errorf("%s: %v is taken", l.command, wrong)
			}
		}
	}
	if err := matches(errorSchema, map[string]any{"message": "without a kind"}); err == nil {
		t.Error("an error without a kind is taken")
	}
	if err := checkEvents("", 0, []byte(`{"event":"ended"}`)); err == nil {
		t.Error("an event without the id of its exec is taken")
	}
}

// TestContractNamesEveryKind compares the table of the document with that of the
// program.
func TestContractNamesEveryKind(t *testing.T) {
	text, err := os.ReadFile("../../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // by exit code
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			rows[strings.TrimSpace(cells[1])] = cells[2]
		}
	}
	for kind, code := range exitByKind {
		if !strings.Contains(rows[strconv.Itoa(code)], "`"+string(kind)+"`") {
			t.Errorf("the row of %d does not name %s", code, kind)
		}
	}
}
