package main

import (
	"fmt"
	"io"
	"os"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
)

// policyTestCmd judges a corpus.
type policyTestCmd struct {
	File           string  `arg:"" optional:"" type:"path" help:"The commands with their answers; by default those that the default policy is held to."`
	Policy         string  `help:"Judge by this file." type:"path" placeholder:"FILE"`
	MaxFalseAlarms float64 `help:"Fail if more than so many percent of the harmless commands do not simply run." default:"2" placeholder:"PERCENT"`
}

// policyTestDoc is what 'policy test' prints.
type policyTestDoc struct {
	policy.Report
	FalseAlarmPercent float64 `json:"false_alarm_percent"`
	OK                bool    `json:"ok"`
}

func (c *policyTestCmd) run(a *app) error {
	p, err := a.policy(c.Policy)
	if err != nil {
		return err
	}
	cases, err := c.cases()
	if err != nil {
		return err
	}
	doc := policyTestDoc{Report: p.Test(cases)}
	doc.FalseAlarmPercent = 100 * doc.FalseAlarmShare()
	doc.OK = len(doc.Failures) == 0 && doc.Missed == 0 && doc.FalseAlarmPercent <= c.MaxFalseAlarms
	err = a.print(doc, func(w io.Writer) {
		for _, f := range doc.Failures {
			text := f.Shell
			if text == "" {
				text = fmt.Sprint(f.Argv)
			}
			fmt.Fprintf(w, "line %d: %s: got %s by %s, want %s\n", f.Line, safe(text), f.Got, f.Rule, f.Want)
		}
		fmt.Fprintf(w, "%d commands, %d with another answer; %d of %d harmless ones are false alarms (%.1f %%), %d of %d dangerous ones are missed\n",
			doc.Cases, len(doc.Failures), doc.FalseAlarms, doc.Harmless, doc.FalseAlarmPercent, doc.Missed, doc.Dangerous)
	})
	if err == nil && !doc.OK {
		err = &ended{exitFailure}
	}
	return err
}

func (c *policyTestCmd) cases() ([]policy.Case, error) {
	if c.File == "" {
		return policy.DefaultCorpus()
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		return nil, err
	}
	cases, err := policy.ParseCorpus(text)
	if err != nil {
		return nil, &engine.Error{Kind: engine.Invalid, Op: "policy test", Path: c.File, Err: err}
	}
	return cases, nil
}
