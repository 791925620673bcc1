package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/bench"
	"github.com/agentvfs/avfs/bench/plot"
)

// rateUnit is the unit of figures of which more is better.
const rateUnit = "MB/s"

// bases are the columns that ratios of mounts refer to: the disk and the floor.
var bases = [...]int{0, 1}

// mountSections arranges what was measured on mounts.
func mountSections(res *Results) []*section {
	var columns []string
	for _, t := range res.Targets {
		if t.Missing == "" {
			columns = append(columns, t.Name)
		}
	}
	var all []*section
	for _, g := range bench.MountGroups() {
		for _, w := range g.Workloads {
			size := w.SizeOf(res.Short)
			r := row{name: w.Name, size: sizeLabel(size, w.Unit), what: w.What, durability: w.Durability}
			value, unit := millis, "ms"
			if w.Rate() {
				unit = rateUnit
				value = func(s bench.Sample) float64 { return float64(s.Size) / (float64(s.NS) / 1e9) }
			}
			for _, c := range columns {
				r.cells = append(r.cells, cellOf(res.Samples, w.Name, c, size, value))
			}
			if !slices.ContainsFunc(r.cells, func(c cell) bool { return !c.missing() }) {
				continue
			}
			i := slices.IndexFunc(all, func(s *section) bool { return s.title == w.Section })
			if i < 0 {
				i = len(all)
				all = append(all, &section{title: w.Section, unit: unit, columns: columns, mounts: true})
			}
			all[i].rows = append(all[i].rows, r)
		}
	}
	return all
}

// mountSummary says what the file systems are and gives one ratio for each part.
func mountSummary(b *strings.Builder, res *Results, sections []*section) {
	if len(sections) == 0 {
		return
	}
	b.WriteString("## Mounts in short\n\n" +
		"Programs work in a directory of each file system. In each round mounts and trees are new, the workloads of a group follow each other,\n" +
		"and each runs on one file system after the other before the next workload begins. Before each, everything is synced; that is not measured.\n\n" +
		"| file system | what it is | what survives power loss without a sync |\n|---|---|---|\n")
	for _, t := range res.Targets {
		what := t.What
		if t.Missing != "" {
			what = "**not measured**: " + t.Missing
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", t.Name, what, t.Keeps)
	}
	columns := sections[0].columns
	fmt.Fprintf(b, "\nGeometric means of the ratios of time; below 1 is faster. In brackets: rows in which it is clearly better, and clearly worse.\n\n| | rows | %s |\n|---|---|%s\n",
		strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, s := range sections {
		for _, to := range bases {
			fmt.Fprintf(b, "| %s, to %s | %d |", s.title, columns[to], len(s.rows))
			for i := range columns {
				if i == to {
					b.WriteString(" 1 |")
					continue
				}
				fmt.Fprintf(b, " %s |", s.mean(i, to))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
}

// mountMarkdown writes the tables of a section: the figures, and their ratios to the
// disk and to the floor.
func (s *section) mountMarkdown(b *strings.Builder) {
	fmt.Fprintf(b, "## %s\n\n![%s](plots/%s.svg)\n\n", s.title, s.title, s.slug())
	head := func(first string, more ...string) {
		all := slices.Concat([]string{first, ""}, more, s.columns)
		fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(all, " | "), strings.Repeat("---|", len(all)))
	}
	head(s.unit, "durability")
	for _, r := range s.rows {
		fmt.Fprintf(b, "| %s | %s | %s |", r.name, r.size, r.durability)
		for _, c := range r.cells {
			fmt.Fprintf(b, " %s |", c)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "\nAs multiples of the time on %s / %s:\n\n", s.columns[bases[0]], s.columns[bases[1]])
	head("times")
	for _, r := range s.rows {
		fmt.Fprintf(b, "| %s | %s |", r.name, r.size)
		for i, c := range r.cells {
			fmt.Fprintf(b, " %s / %s |", s.multiple(i, c, r.cells[bases[0]], bases[0]), s.multiple(i, c, r.cells[bases[1]], bases[1]))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	s.notes(b)
}

// multiple is the ratio of a column to the base at index to.
func (s *section) multiple(column int, c, base cell, to int) string {
	if column == to {
		return "1"
	}
	return s.ratio(c, base)
}

// mountChart draws times as multiples of those on the disk.
func mountChart(s *section) plot.Chart {
	disk := s.columns[bases[0]]
	c := plot.Chart{Title: s.title + ", time as a multiple of that on " + disk, Unit: "times " + disk, Series: s.columns, Format: number}
	for _, r := range s.rows {
		base := r.cells[bases[0]]
		if base.missing() {
			continue
		}
		g := plot.Group{Label: strings.TrimSpace(r.name + "  " + r.size)}
		for _, c := range r.cells {
			g.Bars = append(g.Bars, s.relative(c, base.median))
		}
		c.Groups = append(c.Groups, g)
	}
	return c
}

// relative is the bar of c, given the median of the base.
func (s *section) relative(c cell, base float64) plot.Bar {
	switch {
	case c.missing():
		return plot.Bar{}
	case s.unit == rateUnit:
		return plot.Bar{Value: base / c.median, Min: base / c.max, Max: base / c.min}
	}
	return plot.Bar{Value: c.median / base, Min: c.min / base, Max: c.max / base}
}
