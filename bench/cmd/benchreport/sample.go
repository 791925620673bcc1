package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/bench"
)

// sampleCommand is the hidden first argument of a process that takes one sample.
const sampleCommand = "__sample"

// request says which sample to take.
type request struct {
	Workload string `json:"workload"`
	Backend  string `json:"backend"`
	Store    string `json:"store"`
	Source   string `json:"source"`
	Size     int    `json:"size"`
	Base     int    `json:"base"`
}

// child takes the sample that in asks for and writes it to out.
func child(ctx context.Context, in io.Reader, out io.Writer) error {
	var req request
	if err := json.NewDecoder(in).Decode(&req); err != nil {
		return err
	}
	w, err := bench.ByName(req.Workload)
	if err != nil {
		return err
	}
	d, err := backends.ByName(req.Backend)
	if err != nil {
		return err
	}
	s, err := bench.Measure(ctx, w, &bench.Env{Driver: d, Store: req.Store, Source: req.Source, Size: req.Size, Base: req.Base})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(s)
}

// sample runs child in a process of its own.
func sample(ctx context.Context, req request) (s bench.Sample, err error) {
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	in, err := json.Marshal(req)
	if err != nil {
		return s, err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self, sampleCommand)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return s, json.Unmarshal(out, &s)
}
