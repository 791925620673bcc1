package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/bench"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// Host is where and with what the figures were measured.
type Host struct {
	Begin      time.Time           `json:"begin"`
	End        time.Time           `json:"end"`
	CPU        string              `json:"cpu"`
	CPUs       int                 `json:"cpus"`
	Memory     string              `json:"memory"`
	System     string              `json:"system"`
	FileSystem string              `json:"file_system"`
	Go         string              `json:"go"`
	Version    string              `json:"version"`
	Modules    []string            `json:"modules"`
	LoadBefore float64             `json:"load_before"`
	LoadAfter  float64             `json:"load_after"`
	Evicted    string              `json:"evicted"`
	Settings   map[string][]string `json:"settings"` // per back end: relaxed, durable
	Note       string              `json:"note,omitempty"`
}

const unknown = "unknown"

// databases are the modules whose versions matter.
var databases = [...]string{"github.com/ncruces/go-sqlite3", "go.etcd.io/bbolt", "github.com/dgraph-io/badger/v4"}

// describeHost looks at this machine, and at the settings of stores in dir.
func describeHost(ctx context.Context, dir string) (Host, error) {
	h := Host{
		Begin:      time.Now().UTC(),
		CPU:        field("/proc/cpuinfo", "model name"),
		CPUs:       runtime.NumCPU(),
		Memory:     memory(),
		System:     output(ctx, "uname", "-srm"),
		FileSystem: lastLine(output(ctx, "df", "--output=fstype", dir)),
		Go:         runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Version:    output(ctx, "git", "describe", "--tags", "--always", "--dirty"),
		LoadBefore: loadAverage(),
		Evicted:    bench.Evicted,
		Settings:   map[string][]string{},
	}
	info, ok := debug.ReadBuildInfo()
	for _, name := range databases {
		for i := 0; ok && i < len(info.Deps); i++ {
			if d := info.Deps[i]; d.Path == name {
				h.Modules = append(h.Modules, d.Path+" "+d.Version)
			}
		}
	}
	for _, d := range backends.All() {
		set, err := settings(ctx, d, filepath.Join(dir, "settings-"+d.Name()))
		if err != nil {
			return h, fmt.Errorf("%s: %w", d.Name(), err)
		}
		h.Settings[d.Name()] = set
	}
	return h, nil
}

// finish notes what is known at the end only.
func (h *Host) finish() { h.End, h.LoadAfter = time.Now().UTC(), loadAverage() }

// shared reports whether the machine had other work when the run began.
func (h *Host) shared() bool { return h.LoadBefore > 0.3*float64(h.CPUs) }

// settings reads back what relaxed and durable mean on a new store at path.
func settings(ctx context.Context, d kv.Driver, path string) (set []string, err error) {
	db, err := d.Open(ctx, path, kv.Options{Tables: engine.Tables(), Create: true})
	if err != nil {
		return nil, err
	}
	for _, mode := range []kv.Mode{kv.Relaxed, kv.Durable} {
		s, err := bench.Durability(ctx, db, mode)
		if err != nil {
			return nil, err
		}
		set = append(set, s)
	}
	return set, db.Close()
}

// field returns the first value of key in a file of "key: value" lines.
func field(path, key string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		k, v, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return unknown
}

func memory() string {
	kib, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64)
	if err != nil {
		return unknown
	}
	return fmt.Sprintf("%.0f GiB", kib/(1<<20))
}

// loadAverage is the load average of the last minute, 0 where it is not known.
func loadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return v
}

// output is what a command prints, or unknown where it cannot run here.
func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(out))
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }
