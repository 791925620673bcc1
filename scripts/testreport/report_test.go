package main

import (
	"bytes"
	"strings"
	"testing"
)

// reportOf is what a report of events says.
func reportOf(t *testing.T, events ...string) (text string, failed bool) {
	t.Helper()
	var out bytes.Buffer
	r := newReport(&out)
	if err := r.read(strings.NewReader(strings.Join(events, "\n"))); err != nil {
		t.Fatal(err)
	}
	failed = r.close()
	return out.String(), failed
}

func TestReport(t *testing.T) {
	const (
		start = `{"Action":"start","Package":"p"}`
		pass  = `{"Action":"pass","Package":"p"}`
		fail  = `{"Action":"fail","Package":"p"}`
		ok    = `{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`
		bad   = `{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`
		runA  = `{"Action":"run","Package":"p","Test":"A"}`
		saysA = `{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:1: said\n"}`
		endA  = `{"Action":"output","Package":"p","Test":"A","Output":"--- SKIP: A (0.00s)\n"}`
		passA = `{"Action":"pass","Package":"p","Test":"A"}`
		failA = `{"Action":"fail","Package":"p","Test":"A"}`
		skipA = `{"Action":"skip","Package":"p","Test":"A"}`
		passB = `{"Action":"pass","Package":"p","Test":"A/b"}`
	)
	for _, tc := range []struct {
		name   string
		events []string
		want   string
		failed bool
	}{
		{"passed", []string{start, runA, saysA, passB, passA, ok, pass}, "ok  \tp\t0.1s\n2 passed, 0 failed, 0 skipped\n", false},
		{"failed", []string{start, runA, saysA, passB, failA, bad, fail}, "    a_test.go:1: said\nFAIL\tp\t0.1s\n1 passed, 1 failed, 0 skipped\n", true},
		{"skipped", []string{start, passB, runA, saysA, endA, skipA, ok, pass},
			"ok  \tp\t0.1s\nskipped: p A: a_test.go:1: said\n1 passed, 0 failed, 1 skipped\n", false},
		{"died in a test", []string{start, passB, runA, saysA, bad, fail}, "    a_test.go:1: said\nFAIL\tp\t0.1s\n1 passed, 1 failed, 0 skipped\n", true},
		{"died outside any test", []string{start, runA, passA, bad, fail}, "FAIL\tp\t0.1s\n1 passed, 1 failed, 0 skipped\n", true},
		{"cut off", []string{start, runA, passA}, "FAIL\tp [no end seen]\n1 passed, 1 failed, 0 skipped\n", true},
		{"does not compile", []string{
			`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1: wrong\n"}`,
			`{"ImportPath":"p [p.test]","Action":"build-fail"}`, start,
			`{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}`,
			`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
		}, "p.go:1: wrong\nFAIL\tp [build failed]\n0 passed, 1 failed, 0 skipped\n", true},
		{"nothing ran", []string{start, `{"Action":"skip","Package":"p"}`}, "no test passed\n0 passed, 0 failed, 0 skipped\n", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, failed := reportOf(t, tc.events...)
			if got != tc.want || failed != tc.failed {
				t.Errorf("failed %v, report\n%s\nwant failed %v, report\n%s", failed, got, tc.failed, tc.want)
			}
		})
	}
}

func TestReportRefusesOtherText(t *testing.T) {
	if err := newReport(new(bytes.Buffer)).read(strings.NewReader("panic: no JSON")); err == nil {
		t.Error("text that is no event was taken for one")
	}
}
