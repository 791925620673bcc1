package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/bench"
)

// Results is all that was measured.
type Results struct {
	Host     Host           `json:"host"`
	Backends []string       `json:"backends"`          // the first one is what ratios refer to
	Targets  []Target       `json:"targets,omitempty"` // of the mount workloads; ratios refer to the first two
	Rounds   int            `json:"rounds"`
	Runs     int            `json:"runs"`
	Short    bool           `json:"short"`
	Failures []string       `json:"failures,omitempty"`
	Samples  []bench.Sample `json:"-"`
}

// resultsName is the file with everything that was measured: the Results without
// samples on the first line, and then one sample a line.
const resultsName = "results.jsonl"

func load(path string) (*Results, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	res, lines := &Results{}, json.NewDecoder(f)
	if err := lines.Decode(res); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for {
		var s bench.Sample
		err := lines.Decode(&s)
		if errors.Is(err, io.EOF) {
			return res, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		res.Samples = append(res.Samples, s)
	}
}

func encode(res *Results) ([]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	err := lines.Encode(res)
	for _, s := range res.Samples {
		err = errors.Join(err, lines.Encode(s))
	}
	return b.Bytes(), err
}

// write writes the report and what it is made of into dir.
func write(res *Results, dir string) error {
	plots := filepath.Join(dir, "plots")
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	data, err := encode(res)
	if err != nil {
		return err
	}
	sections := sectionsOf(res)
	files := map[string][]byte{
		resultsName:   data,
		"results.txt": benchstat(res),
		"RESULTS.md":  markdown(res, sections),
	}
	for _, s := range sections {
		files[filepath.Join("plots", s.slug()+".svg")] = chartOf(s).SVG()
	}
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	return err
}

// benchstat gives the times in the format of Go's benchmarks.
func benchstat(res *Results) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "pkg: github.com/agentvfs/avfs/bench\ncpu: %s\n", res.Host.CPU)
	for _, s := range res.Samples {
		if s.NS > 0 {
			backend := strings.NewReplacer(" ", "_", ",", "").Replace(s.Backend)
			fmt.Fprintf(&b, "BenchmarkBackends/workload=%s/backend=%s/size=%d %d %d ns/op\n", s.Workload, backend, s.Size, s.Reps, s.NS)
		}
	}
	return []byte(b.String())
}

// cell is a quantity on one back end.
type cell struct{ median, min, max float64 }

func (c cell) missing() bool { return c.median == 0 }

// apart reports whether no sample of c reached one of d.
func (c cell) apart(d cell) bool { return c.max < d.min || d.max < c.min }

// cellOf summarises the samples of a workload; value picks the quantity.
func cellOf(samples []bench.Sample, workload, backend string, size int, value func(bench.Sample) float64) cell {
	var values []float64
	for _, s := range samples {
		if s.Workload == workload && s.Backend == backend && s.Size == size {
			if v := value(s); v > 0 {
				values = append(values, v)
			}
		}
	}
	if len(values) == 0 {
		return cell{}
	}
	return cell{median: bench.Median(values), min: slices.Min(values), max: slices.Max(values)}
}
