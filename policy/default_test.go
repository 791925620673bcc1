package policy

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"reflect"
	"strings"
	"testing"
)

const defaultRulesFile = "default_rules.go"

// TestDefaultRules holds that the rules in Go are those of default.yaml.
func TestDefaultRules(t *testing.T) {
	parsed, err := Parse(defaultYAML)
	if err != nil {
		t.Fatal(err)
	}
	want := generated(t, parsed.sets[0])
	if *update {
		if err := os.WriteFile(defaultRulesFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(defaultRulesFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what default.yaml says; run: go test ./policy -run TestDefaultRules -update", defaultRulesFile)
	}
	if Default().Digest() != parsed.Digest() {
		t.Error("the policy that is used is not the one that is shown")
	}
}

// generated is the source of default_rules.go.
func generated(t *testing.T, set *ruleset) []byte {
	t.Helper()
	var b strings.Builder
	b.WriteString("// Code generated from default.yaml by TestDefaultRules. DO NOT EDIT.\n\npackage policy\n\n")
	fmt.Fprintf(&b, "const (\ndefaultDef = %s\ndefaultOpaque = %s\n)\n\n", actionName(set.def), actionName(set.opaque))
	b.WriteString("var defaultSpecs = []ruleSpec{\n")
	for _, r := range set.rules {
		b.WriteString("{")
		v := reflect.ValueOf(r.spec)
		for i := range v.NumField() {
			name, f := v.Type().Field(i).Name, v.Field(i)
			switch {
			case f.IsZero() || name == "Match" || name == "NotMatch":
				continue // examples are for the tests
			case name == "Action":
				fmt.Fprintf(&b, "%s: %s, ", name, actionName(r.spec.Action))
			default:
				fmt.Fprintf(&b, "%s: %#v, ", name, f.Interface())
			}
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
	src, err := format.Source([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func actionName(a Action) string {
	return map[Action]string{Allow: "Allow", AllowWithCheckpoint: "AllowWithCheckpoint", RequireApproval: "RequireApproval", Deny: "Deny"}[a]
}
