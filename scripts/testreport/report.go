package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of go test -json: see "go doc test2json".
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Output      string
	FailedBuild string
}

// test names a test, or a package where name is empty.
type test struct{ pkg, name string }

// ended is a test whose output is still wanted.
type ended struct {
	test
	output string
}

// report turns the events of one go test into text and counts.
type report struct {
	out     io.Writer
	output  map[test]*bytes.Buffer // of tests and packages that have not ended
	failing map[string]int         // package to its tests that failed so far
	builds  map[string]*bytes.Buffer

	passed, failed, skipped int
	skips                   []ended
}

func newReport(out io.Writer) *report {
	return &report{
		out:     out,
		output:  make(map[test]*bytes.Buffer),
		failing: make(map[string]int),
		builds:  make(map[string]*bytes.Buffer),
	}
}

// read takes in events until there are no more.
func (r *report) read(events io.Reader) error {
	dec := json.NewDecoder(events)
	for {
		var e event
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the events of go test: %w", err)
		}
		r.add(e)
	}
}

func (r *report) add(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "start", "run":
		r.output[t] = new(bytes.Buffer)
	case "output":
		r.keep(t, e.Output)
	case "build-output":
		b := r.builds[e.ImportPath]
		if b == nil {
			b = new(bytes.Buffer)
			r.builds[e.ImportPath] = b
		}
		b.WriteString(e.Output)
	case "pass", "fail", "skip":
		if t.name == "" {
			r.endPackage(e)
		} else {
			r.endTest(t, e.Action)
		}
	}
}

// keep adds to the output of a test or package.
func (r *report) keep(t test, s string) {
	b := r.output[t]
	if b == nil {
		b = new(bytes.Buffer)
		r.output[t] = b
	}
	b.WriteString(s)
}

func (r *report) endTest(t test, action string) {
	output := r.take(t)
	switch action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		r.skips = append(r.skips, ended{t, output})
	default:
		r.fail(t, output)
	}
}

func (r *report) fail(t test, output string) {
	r.failed++
	r.failing[t.pkg]++
	r.print(output)
}

// endPackage prints what go test prints of a package. Whatever of its tests has not
// ended by then did not pass.
func (r *report) endPackage(e event) {
	var open []test
	for t := range r.output {
		if t.pkg == e.Package && t.name != "" {
			open = append(open, t)
		}
	}
	slices.SortFunc(open, func(a, b test) int { return strings.Compare(a.name, b.name) })
	for _, t := range open {
		r.fail(t, r.take(t))
	}
	if b := r.builds[e.FailedBuild]; b != nil {
		r.print(b.String())
		delete(r.builds, e.FailedBuild)
	}
	if e.Action == "fail" && r.failing[e.Package] == 0 {
		r.failed++ // it did not compile, or its process died outside any test
	}
	output := r.take(test{e.Package, ""})
	for line := range strings.Lines(output) {
		if line != "PASS\n" && (e.Action != "pass" || strings.HasPrefix(line, "ok ")) {
			r.print(line)
		}
	}
}

// take returns the output of what has ended, and forgets it.
func (r *report) take(t test) string {
	b := r.output[t]
	delete(r.output, t)
	if b == nil {
		return ""
	}
	return b.String()
}

// close prints what was skipped and the counts, and reports whether anything
// failed. A run in which no test passed has failed.
func (r *report) close() bool {
	slices.SortFunc(r.skips, func(a, b ended) int {
		return cmp.Or(strings.Compare(a.pkg, b.pkg), strings.Compare(a.name, b.name))
	})
	for _, s := range r.skips {
		r.print(fmt.Sprintf("skipped: %s %s: %s\n", s.pkg, s.name, reason(s.output)))
	}
	for _, path := range slices.Sorted(maps.Keys(r.builds)) {
		r.print(r.builds[path].String()) // warnings, or what no package's end named
	}
	for _, pkg := range r.packagesLeft() {
		r.failed++
		r.print(fmt.Sprintf("FAIL\t%s [no end seen]\n", pkg))
	}
	if r.passed == 0 && r.failed == 0 {
		r.print("no test passed\n")
	}
	r.print(fmt.Sprintf("%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped))
	return r.failed > 0 || r.passed == 0
}

// packagesLeft are the packages that have not ended.
func (r *report) packagesLeft() []string {
	left := make(map[string]bool)
	for t := range r.output {
		left[t.pkg] = true
	}
	return slices.Sorted(maps.Keys(left))
}

// reason is what a skipped test said, without the lines that testing adds.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

// print writes to standard output; a failure to do so shows in the exit code of
// whoever reads the pipe, and nothing can be done here.
func (r *report) print(s string) {
	_, _ = io.WriteString(r.out, s)
}
