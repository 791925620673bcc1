package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentvfs/avfs/bench"
	"github.com/agentvfs/avfs/internal/mountpoint"
)

// Target is a file system that the mount workloads run on.
type Target struct {
	Name    string `json:"name"`
	What    string `json:"what"`    // what it is and how it is mounted
	Keeps   string `json:"keeps"`   // what is durable without a sync
	Missing string `json:"missing"` // why it was not measured; empty: it was
}

// mountTarget is a target with the means to mount it.
type mountTarget struct {
	Target
	// create prepares a new folder on the disk; nil where that needs nothing.
	create func(ctx context.Context, p *place) error
	// mount makes what is in p.data visible at p.point, and returns what takes
	// it away again. Nil is a plain directory.
	mount func(ctx context.Context, p *place) (unmount func(context.Context) error, err error)
	// volatile says that an unmount loses everything.
	volatile bool
}

// place is a mounted target.
type place struct {
	target  *mountTarget
	data    string // folder on the disk
	point   string
	profile string // file for a CPU profile of the server, where it can write one; or empty
	unmount func(context.Context) error
	failed  bool // what follows in this group would measure something else
}

// floor is the name of the file system in memory.
const floor = "memfs"

// targets lists the file systems, the disk first and the floor second: those two are
// what ratios refer to.
func (r *runner) targets(ctx context.Context, disk string) []*mountTarget {
	list := []*mountTarget{
		{Target: Target{Name: disk, What: "a directory on the disk", Keeps: "what the kernel has written back, within about 30 s"}},
		{Target: Target{Name: floor, What: "bench/memfs, in memory over go-fuse like gofuse: the floor that FUSE sets", Keeps: "nothing"},
			mount: mountMemory, volatile: true},
	}
	for _, backend := range r.res.Backends {
		list = append(list, r.vaultTarget("avfs/"+backend, backend, "gofuse"))
	}
	list = append(list, r.vaultTarget("avfs/"+r.res.Backends[0]+"/cgofuse", r.res.Backends[0], "cgofuse"))
	overlay := &mountTarget{
		Target: Target{Name: "fuse-overlayfs", What: version(ctx, "fuse-overlayfs") + ", an empty lower directory, its own default options", Keeps: "as " + disk},
		create: func(_ context.Context, p *place) error { return p.mkdirs("lower", "upper", "work") },
		mount: func(ctx context.Context, p *place) (func(context.Context) error, error) {
			o := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", p.data)
			return p.detach, command(ctx, "fuse-overlayfs", "-o", o, p.point)
		},
	}
	bind := &mountTarget{
		Target: Target{Name: "bindfs", What: version(ctx, "bindfs") + ", its own default options", Keeps: "as " + disk},
		create: func(_ context.Context, p *place) error { return p.mkdirs("source") },
		mount: func(ctx context.Context, p *place) (func(context.Context) error, error) {
			return p.detach, command(ctx, "bindfs", filepath.Join(p.data, "source"), p.point)
		},
	}
	for _, t := range []*mountTarget{overlay, bind} {
		if _, err := exec.LookPath(t.Name); err != nil {
			t.Missing = "not installed (scripts/install-deps bench)"
		}
	}
	return append(list, overlay, bind)
}

// version is what a program says about its version: the line that begins with its
// name, as some name their libraries first.
func version(ctx context.Context, name string) string {
	text := output(ctx, name, "--version")
	line, _, _ := strings.Cut(text, "\n")
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, name) {
			line = strings.TrimSpace(l)
			break
		}
	}
	return strings.Replace(line, ": version", "", 1)
}

func (p *place) mkdirs(names ...string) error {
	var err error
	for _, name := range names {
		err = errors.Join(err, os.Mkdir(filepath.Join(p.data, name), 0o755))
	}
	return err
}

// detach takes the mount away by the kernel's means.
func (p *place) detach(ctx context.Context) error { return mountpoint.Detach(ctx, p.point, false) }

// memoryCommand is the hidden first argument of a process that serves a file system
// in memory; the second is the mount point.
const memoryCommand = "__memfs"

// mountMemory starts a server of memory and waits until it has mounted.
func mountMemory(_ context.Context, p *place) (func(context.Context) error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, memoryCommand, p.point)
	cmd.Stderr = os.Stderr
	ownSession(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("memfs did not mount: %w", errors.Join(err, cmd.Wait()))
	}
	return func(ctx context.Context) error { return errors.Join(p.detach(ctx), cmd.Wait()) }, nil
}

// vaultTarget is a vault, mounted by the program that is measured.
func (r *runner) vaultTarget(name, backend, driver string) *mountTarget {
	in := func(p *place) home {
		h := home{avfs: r.opts.avfs, backend: backend, dir: filepath.Join(p.data, "home"), vault: "bench", linger: "0s"}
		if p.profile != "" {
			h.env = append(h.env, "AVFS_PPROF="+p.profile)
		}
		return h
	}
	t := &mountTarget{
		Target: Target{Name: name, What: "avfs mount --driver " + driver + " of a new vault on " + backend, Keeps: "what a relaxed commit, 1 s after a change at most, has given to the disk; see the settings above"},
		create: func(ctx context.Context, p *place) error {
			_, err := in(p).run(ctx, "vault", "create", "bench", "--backend", backend)
			return errors.Join(err, in(p).ended(ctx))
		},
		mount: func(ctx context.Context, p *place) (func(context.Context) error, error) {
			out, err := in(p).print(ctx, "--json", "mount", "--driver", driver, "bench", p.point)
			if err != nil {
				return nil, err
			}
			var server struct {
				PID int `json:"pid"`
			}
			if err := json.Unmarshal(out, &server); err != nil {
				return nil, fmt.Errorf("what avfs mount printed: %w", err)
			}
			return func(ctx context.Context) error {
				_, err := in(p).run(ctx, "unmount", p.point)
				// It is not our child. Once it has ended it has closed its store.
				return errors.Join(err, gone(ctx, fmt.Sprintf("/proc/%d", server.PID)))
			}, nil
		},
	}
	t.Missing = r.opts.missing()
	return t
}

// open makes a new folder below dir and mounts it. Nothing stays where that fails.
func (t *mountTarget) open(ctx context.Context, dir, profile string) (*place, error) {
	base := filepath.Join(dir, strings.ReplaceAll(t.Name, "/", "-"))
	p := &place{target: t, data: filepath.Join(base, "data"), point: filepath.Join(base, "mount"), profile: profile}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	return p, nil
}

// prepare is open for a place that is only planned.
func (p *place) prepare(ctx context.Context) error {
	for _, name := range []string{p.data, p.point} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			return err
		}
	}
	if p.target.create != nil {
		if err := p.target.create(ctx, p); err != nil {
			return err
		}
	}
	return p.mountAgain(ctx)
}

func (p *place) mountAgain(ctx context.Context) (err error) {
	if p.target.mount != nil {
		p.unmount, err = p.target.mount(ctx, p)
	}
	return err
}

// settle brings everything to the disk, so that what runs next does not pay for
// what ran before.
func (p *place) settle(ctx context.Context) error {
	if err := command(ctx, "sync", p.point); err != nil {
		return err
	}
	return command(ctx, "sync", "-f", p.data)
}

// cool takes what is in the file system out of memory. Memory that is the file
// system keeps its files; there only the kernel forgets them.
func (p *place) cool(ctx context.Context) error {
	if p.target.mount == nil || p.target.volatile {
		return bench.Evict(p.point)
	}
	if err := p.unmount(ctx); err != nil {
		return err
	}
	p.unmount = nil
	if err := bench.Evict(p.data); err != nil {
		return err
	}
	return p.mountAgain(ctx)
}

// closeTime bounds the unmount, also of a run that was interrupted.
const closeTime = time.Minute

// close unmounts and removes everything. What does not unmount, or was interrupted
// while it mounted, is detached: nobody may remove files through it.
func (p *place) close(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	var err error
	if p.unmount != nil {
		err = p.unmount(ctx)
	}
	if p.target.mount != nil && (p.unmount == nil || err != nil) {
		_ = mountpoint.Detach(ctx, p.point, true) // it may not be mounted at all
	}
	return errors.Join(err, os.RemoveAll(filepath.Dir(p.data)))
}
