package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

type auditCmds struct {
	List   auditListCmd   `cmd:"" default:"withargs" help:"List entries, oldest first. With --vault, those about that vault."`
	Verify auditVerifyCmd `cmd:"" help:"Check that no entry was changed, moved or removed since it was added."`
	Head   auditHeadCmd   `cmd:"" help:"Print the head of the chain of entries, to be kept elsewhere and given to verify."`
}

type auditListCmd struct {
	Limit     int      `short:"n" help:"List only the newest N of them; 0 lists all." placeholder:"N"`
	Since     string   `help:"Only entries made since then: a time such as 2026-01-02T15:04:05Z, or so long ago, such as 2h." placeholder:"TIME"`
	Until     string   `help:"Only entries made until then." placeholder:"TIME"`
	Kind      []string `help:"Only entries of this kind, such as exec or quota.set. May be given several times." placeholder:"KIND"`
	Status    string   `help:"Only entries with this status, such as denied." placeholder:"STATUS"`
	Exec      string   `help:"Only the entry of this exec, and those that its command asked for." placeholder:"ID"`
	Path      string   `help:"Only entries of what changed this path, or something below it, as far as the history reaches." placeholder:"PATH"`
	AllVaults bool     `help:"With --vault, entries about all vaults of its store."`
}

func (c *auditListCmd) run(a *app) error {
	q, err := c.query(a, time.Now())
	if err != nil {
		return err
	}
	list, err := call(a, workspace.OpAudit, func(v string) workspace.AuditRequest { return workspace.AuditRequest{Vault: v, Query: q} }, workspace.Streams{})
	if err != nil {
		return err
	}
	if list.Unknown > 0 {
		a.warn("the history does not reach back to %d entries; whether they changed the path is not known", list.Unknown)
	}
	return a.print(list.Entries, func(w io.Writer) { describeAudit(w, list.Entries) })
}

// query turns flags into a query.
func (c *auditListCmd) query(a *app, now time.Time) (q engine.AuditQuery, err error) {
	if c.Limit < 0 {
		return q, usageError("-n is a number, 0 or more")
	}
	q = engine.AuditQuery{Kinds: c.Kind, Status: c.Status, Exec: c.Exec, Path: c.Path, Limit: c.Limit}
	if !c.AllVaults {
		q.Vault = a.flags.Vault
	}
	for _, f := range []struct {
		flag, value string
		into        *time.Time
	}{{"--since", c.Since, &q.Since}, {"--until", c.Until, &q.Until}} {
		if f.value == "" {
			continue
		}
		if *f.into, err = parseMoment(f.value, now); err != nil {
			return q, usageError("%s takes a time such as 2026-01-02T15:04:05Z, or a duration such as 2h or 90m, not %q", f.flag, f.value)
		}
	}
	return q, nil
}

// parseMoment reads a time, a date, or how long ago something was.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	return time.Parse(time.RFC3339, text)
}

func describeAudit(w io.Writer, entries []engine.AuditEntry) {
	rows := [][]string{{"SEQ", "TIME", "KIND", "VAULT", "DECISION", "STATUS", "EXIT", "WHAT"}}
	for _, e := range entries {
		code := ""
		if e.ExitCode != nil {
			code = strconv.Itoa(*e.ExitCode)
		}
		rows = append(rows, []string{strconv.FormatUint(e.Seq, 10), clock(e.At), e.Kind, e.Vault, e.Action, e.Status, code, safe(auditWhat(e))})
	}
	table(w, rows)
}

// auditWhat says what an entry is about, in a line for people.
func auditWhat(e engine.AuditEntry) string {
	switch {
	case e.Shell != "":
		return e.Shell
	case len(e.Argv) > 0:
		return strings.Join(e.Argv, " ")
	case e.Kind == engine.AuditPolicyChange: // the subject is the policy before
		digest, _ := strings.CutPrefix(e.Policy, "sha256:")
		return "now " + digest[:min(len(digest), 12)]
	case e.Subject == "" && e.Event != 0:
		return fmt.Sprintf("event %d of the log", e.Event)
	}
	return e.Subject
}

type auditVerifyCmd struct {
	Head []string `help:"An entry that must be there, as audit head printed it. May be given several times." placeholder:"SEQ:HASH"`
}

func (c *auditVerifyCmd) run(a *app) error {
	var heads []engine.AuditHead
	for _, text := range c.Head {
		h, err := engine.ParseAuditHead(strings.TrimSpace(text))
		if err != nil {
			return usageError("%w", err)
		}
		heads = append(heads, h)
	}
	rep, err := verifyAudit(a, heads)
	if err != nil {
		return err
	}
	err = a.print(rep, func(w io.Writer) {
		for _, f := range rep.Findings {
			fmt.Fprintln(w, safe(f.Problem))
		}
		verdict := "whole"
		if n := len(rep.Findings); n > 0 {
			verdict = fmt.Sprintf("%d findings", n)
		}
		fmt.Fprintf(w, "%s: %d entries, head %s\n", verdict, rep.Entries, rep.Head)
	})
	if err == nil && len(rep.Findings) > 0 {
		return &ended{exitDamaged}
	}
	return err
}

func verifyAudit(a *app, heads []engine.AuditHead) (engine.AuditReport, error) {
	return call(a, workspace.OpAuditVerify, func(v string) workspace.AuditVerifyRequest {
		return workspace.AuditVerifyRequest{Vault: v, Heads: heads}
	}, workspace.Streams{})
}

type auditHeadCmd struct{}

func (auditHeadCmd) run(a *app) error {
	head, err := call(a, workspace.OpAuditHead, func(v string) workspace.InVault { return workspace.InVault{Vault: v} }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(head, func(w io.Writer) { fmt.Fprintln(w, head) })
}
