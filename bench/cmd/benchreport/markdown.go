package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// markdown writes the report.
func markdown(res *Results, sections []*section) []byte {
	var b strings.Builder
	b.WriteString("# Side by side\n\n")
	b.WriteString("<!-- written by \"make bench\"; edits are lost -->\n\n")
	header(&b, res)
	method(&b, res)
	mounts := slices.IndexFunc(sections, func(s *section) bool { return s.mounts })
	if mounts < 0 {
		mounts = len(sections)
	}
	summary(&b, res, sections[:mounts])
	mountSummary(&b, res, sections[mounts:])
	for _, s := range sections[:mounts] {
		s.markdown(&b, res.Backends)
	}
	for _, s := range sections[mounts:] {
		s.mountMarkdown(&b)
	}
	if len(res.Failures) > 0 {
		b.WriteString("## Failed samples\n\n")
		for _, f := range res.Failures {
			fmt.Fprintf(&b, "- %s\n", f)
		}
	}
	return []byte(b.String())
}

func header(b *strings.Builder, res *Results) {
	h := &res.Host
	fmt.Fprintf(b, "| | |\n|---|---|\n")
	for _, line := range [][2]string{
		{"date", h.Begin.Format("2006-01-02 15:04") + " UTC, " + h.End.Sub(h.Begin).Round(1e9).String()},
		{"machine", fmt.Sprintf("%s, %d CPUs, %s memory, stores on %s", h.CPU, h.CPUs, h.Memory, h.FileSystem)},
		{"system", h.System},
		{"versions", "avfs " + h.Version + ", " + h.Go + ", " + strings.Join(h.Modules, ", ")},
		{"other work", h.otherWork()},
		{"again with", "`make bench`"},
		{"note", h.Note},
	} {
		if line[1] != "" {
			fmt.Fprintf(b, "| %s | %s |\n", line[0], line[1])
		}
	}
	b.WriteString("\nThe settings in force, read back from the open databases:\n\n| back end | relaxed: survives the death of the process | durable: survives power loss |\n|---|---|---|\n")
	for _, name := range res.Backends {
		set := h.Settings[name]
		fmt.Fprintf(b, "| %s | `%s` | `%s` |\n", name, set[0], set[1])
	}
	b.WriteString("\n")
}

func (h *Host) otherWork() string {
	state := "the machine was idle when the run began"
	if h.shared() {
		state = "**the machine was shared with other work**: compare back ends, do not rely on absolute figures"
	}
	return fmt.Sprintf("%s (load average %.1f before, %.1f after)", state, h.LoadBefore, h.LoadAfter)
}

func method(b *strings.Builder, res *Results) {
	fmt.Fprintf(b, `Each figure is the median of %d rounds with the least and the greatest sample; on the command line, of %d runs.
The back ends take turns within a round, and each round begins with another one. A sample is a process of its own
on its own copy of the same store, and the median of its operations. Ratios are to %s, in the same run; `+"`~`"+` stands
before a ratio where the ranges overlap, so that the run shows no difference. A cold read finds the store %s.
Memory is the peak of resident memory, which includes the pages of mapped files. MB are 10^6 bytes.

`, res.Rounds, res.Runs, res.Backends[0], res.Host.Evicted)
	if res.Rounds == 1 {
		b.WriteString("There was one round only, so nothing is known about how much the figures vary.\n\n")
	}
	if res.Short {
		b.WriteString("This was a short run, with small sizes only.\n\n")
	}
}

// summary gives one ratio for each section: less than 1 is less time or space.
func summary(b *strings.Builder, res *Results, sections []*section) {
	others := res.Backends[1:]
	if len(others) == 0 || len(sections) == 0 {
		return
	}
	fmt.Fprintf(b, "## Back ends in short\n\nGeometric means of the ratios to %s; below 1 is faster or smaller. In brackets: rows in which it is clearly better, and clearly worse.\n\n|", res.Backends[0])
	fmt.Fprintf(b, " | rows | %s |\n|---|---|%s\n", strings.Join(others, " | "), strings.Repeat("---|", len(others)))
	for _, s := range sections {
		fmt.Fprintf(b, "| %s | %d |", s.title, len(s.rows))
		for i := range others {
			fmt.Fprintf(b, " %s |", s.mean(i+1, 0))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// mean is the geometric mean of a column's ratios to another one.
func (s *section) mean(column, to int) string {
	sum, n, better, worse := 0.0, 0, 0, 0
	for _, r := range s.rows {
		base, c := r.cells[to], r.cells[column]
		if base.missing() || c.missing() {
			continue
		}
		q := s.quotient(c, base)
		sum += math.Log(q)
		n++
		switch {
		case !c.apart(base):
		case q < 1:
			better++
		case q > 1:
			worse++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%d, %d)", math.Exp(sum/float64(n)), better, worse)
}

// quotient is the ratio of two figures, below 1 where c is the better one.
func (s *section) quotient(c, base cell) float64 {
	if s.unit == rateUnit {
		return base.median / c.median
	}
	return c.median / base.median
}

func (s *section) markdown(b *strings.Builder, backends []string) {
	fmt.Fprintf(b, "## %s\n\n![%s](plots/%s.svg)\n\n|", s.title, s.title, s.slug())
	fmt.Fprintf(b, " %s | | durability |", s.unit)
	for _, c := range s.columns {
		fmt.Fprintf(b, " %s |", c)
	}
	for _, c := range backends[1:] {
		fmt.Fprintf(b, " %s / %s |", c, backends[0])
	}
	fmt.Fprintf(b, "\n|---|---|---|%s\n", strings.Repeat("---|", len(s.columns)+len(backends)-1))
	for _, r := range s.rows {
		fmt.Fprintf(b, "| %s | %s | %s |", r.name, r.size, r.durability)
		for _, c := range r.cells {
			fmt.Fprintf(b, " %s |", c)
		}
		for i := 1; i < len(backends); i++ {
			fmt.Fprintf(b, " %s |", s.ratio(r.cells[i], r.cells[0]))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	s.notes(b)
}

// notes says what each row is about.
func (s *section) notes(b *strings.Builder) {
	last := ""
	for _, r := range s.rows {
		if r.what != last {
			fmt.Fprintf(b, "- **%s**: %s\n", r.name, r.what)
		}
		last = r.what
	}
	b.WriteString("\n")
}

// String is the median with its range, where there is one.
func (c cell) String() string {
	switch {
	case c.missing():
		return "-"
	case c.min == c.max:
		return number(c.median)
	}
	return fmt.Sprintf("%s (%s-%s)", number(c.median), number(c.min), number(c.max))
}

func (s *section) ratio(c, base cell) string {
	if c.missing() || base.missing() {
		return "-"
	}
	r := fmt.Sprintf("%.2f", s.quotient(c, base))
	if !c.apart(base) && c != base {
		r = "~" + r
	}
	return r
}
