package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/bench"
	"github.com/agentvfs/avfs/bench/plot"
)

// section is a part of the report: one table and one picture.
type section struct {
	title   string
	unit    string   // "ms", "MB", or "MB/s", of which more is better
	columns []string // back ends, then what they are compared with besides; or file systems
	mounts  bool     // the columns are file systems, and ratios refer to the first two
	rows    []row
}

// row is one quantity at one size.
type row struct {
	name       string
	size       string
	what       string
	durability string
	cells      []cell // as the columns
}

func (s *section) slug() string {
	return strings.ReplaceAll(strings.ToLower(s.title), " ", "-")
}

const (
	sectionMemory  = "Memory"
	sectionBinary  = "Binary size"
	sectionProgram = "Command line"
	sectionSpace   = "Store size"
)

// sectionsOf arranges the results; what was not measured has no row.
func sectionsOf(res *Results) []*section {
	var all []*section
	add := func(title, unit string, peers []string, r row, samples func(column string) cell) {
		i := slices.IndexFunc(all, func(s *section) bool { return s.title == title })
		if i < 0 {
			i = len(all)
			all = append(all, &section{title: title, unit: unit, columns: slices.Concat(res.Backends, peers)})
		}
		found := false
		for _, column := range all[i].columns {
			c := samples(column)
			r.cells = append(r.cells, c)
			found = found || !c.missing()
		}
		if found {
			all[i].rows = append(all[i].rows, r)
		}
	}
	addTimes(res, add)
	addFigures(res, add)
	addMemory(res, add)
	addPrograms(res, add)
	all = slices.DeleteFunc(all, func(s *section) bool { return len(s.rows) == 0 })
	for _, s := range all {
		s.dropEmptyColumns(len(res.Backends))
	}
	return append(all, mountSections(res)...)
}

type adder = func(title, unit string, peers []string, r row, samples func(column string) cell)

func millis(s bench.Sample) float64 { return float64(s.NS) / 1e6 }

func sizesOf(res *Results, w *bench.Workload) []int {
	if res.Short {
		return w.Short
	}
	return w.Sizes
}

func addTimes(res *Results, add adder) {
	for _, w := range bench.All() {
		if w.Untimed {
			continue
		}
		for _, size := range sizesOf(res, w) {
			r := row{name: w.Name, size: sizeLabel(size, w.Unit), what: w.What, durability: w.Durability}
			add(w.Section, "ms", []string{copyPeer}, r, func(column string) cell {
				return cellOf(res.Samples, w.Name, column, size, millis)
			})
		}
	}
}

func addFigures(res *Results, add adder) {
	for _, w := range bench.All() {
		for _, f := range w.Figures {
			for _, size := range sizesOf(res, w) {
				r := row{name: f.Name, size: sizeLabel(size, w.Unit), what: w.What + " " + f.What, durability: w.Durability}
				add(sectionSpace, "MB", nil, r, func(column string) cell {
					return cellOf(res.Samples, w.Name, column, size, func(s bench.Sample) float64 { return s.Figures[f.Name] / 1e6 })
				})
			}
		}
	}
}

// memoryOf are the workloads whose memory is told, each at its greatest size.
var memoryOf = [...]string{"open", "commit", "create", "import", "write", "read-warm", "read-file-warm", "diff", "gc"}

func addMemory(res *Results, add adder) {
	for _, w := range bench.All() {
		if !slices.Contains(memoryOf[:], w.Name) {
			continue
		}
		sizes := sizesOf(res, w)
		size := sizes[len(sizes)-1]
		r := row{name: w.Name, size: sizeLabel(size, w.Unit), what: "peak while: " + w.What, durability: w.Durability}
		add(sectionMemory, "MB", nil, r, func(column string) cell {
			return cellOf(res.Samples, w.Name, column, size, func(s bench.Sample) float64 { return float64(s.PeakB) / 1e6 })
		})
	}
}

func addPrograms(res *Results, add adder) {
	bytes := func(s bench.Sample) float64 { return s.Figures["bytes"] / 1e6 }
	for _, p := range []struct{ name, what string }{
		{embedSize, "an embedder's program (bench/embed), stripped, with this back end alone"},
		{avfsSize, "the avfs program, stripped, with this back end alone"},
	} {
		add(sectionBinary, "MB", []string{everything}, row{name: p.name, what: p.what, durability: "none: a program on disk"}, func(column string) cell {
			return cellOf(res.Samples, p.name, column, 0, bytes)
		})
	}
	listed := bench.Base(res.Short)
	for _, p := range []struct {
		name, size, what, durability string
		n                            int
	}{
		{execWarm, "", "avfs proxy exec -- true, while a process serves the store; the bare process is true by itself", "what an exec did survives power loss when it returns", 0},
		{execCold, "", "avfs proxy exec -- true, with nothing running before; the bare process is true by itself", "what an exec did survives power loss when it returns", 0},
		{listBig, sizeLabel(listed, "files"), "avfs ls / as a whole process; nothing serves the store; the bare process is true", "nothing is written", listed},
	} {
		add(sectionProgram, "ms", []string{bare}, row{name: p.name, size: p.size, what: p.what, durability: p.durability}, func(column string) cell {
			return cellOf(res.Samples, p.name, column, p.n, millis)
		})
	}
}

// dropEmptyColumns removes the peers that no row has.
func (s *section) dropEmptyColumns(keep int) {
	for i := len(s.columns) - 1; i >= keep; i-- {
		used := slices.ContainsFunc(s.rows, func(r row) bool { return !r.cells[i].missing() })
		if used {
			continue
		}
		s.columns = slices.Delete(s.columns, i, i+1)
		for j := range s.rows {
			s.rows[j].cells = slices.Delete(s.rows[j].cells, i, i+1)
		}
	}
}

func sizeLabel(n int, unit string) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if n == 1 {
		unit = strings.TrimSuffix(unit, "s")
	}
	return text + " " + unit
}

// chartOf draws a section.
func chartOf(s *section) plot.Chart {
	if s.mounts {
		return mountChart(s)
	}
	c := plot.Chart{Title: s.title, Unit: s.unit, Series: s.columns, Format: number}
	for _, r := range s.rows {
		g := plot.Group{Label: strings.TrimSpace(r.name + "  " + r.size)}
		for _, c := range r.cells {
			g.Bars = append(g.Bars, plot.Bar{Value: c.median, Min: c.min, Max: c.max})
		}
		c.Groups = append(c.Groups, g)
	}
	return c
}

// number writes v with three digits that count, or all before the point.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	case v >= 1:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00")
	}
	return fmt.Sprintf("%.2g", v)
}
