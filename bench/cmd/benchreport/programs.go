package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/bench"
)

// What is measured on whole programs.
const (
	execWarm   = "exec-warm"
	execCold   = "exec-cold"
	listBig    = "ls"
	embedSize  = "binary-embed"
	avfsSize   = "binary-avfs"
	bare       = "bare process"
	everything = "all three"
	execVault  = "bench"
	listVault  = "big"
)

// programs measures whole processes: their time and the size of their files.
func (r *runner) programs(ctx context.Context) error {
	for _, p := range []struct {
		name string
		run  func(context.Context) error
	}{
		{execWarm, r.execs(execWarm)}, {execCold, r.execs(execCold)}, {listBig, r.lists},
		{embedSize, r.binaries(embedSize, "./bench/embed", "")}, {avfsSize, r.binaries(avfsSize, "./cmd/avfs", "fuse3")},
	} {
		if !r.opts.wants(p.name) {
			continue
		}
		r.log("%s", p.name)
		if err := p.run(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.keep(bench.Sample{}, p.name, err)
		}
	}
	return nil
}

// home is one back end's AVFS_HOME, with a vault in it.
type home struct {
	avfs, backend, dir, vault string
	linger                    string   // AVFS_LINGER
	env                       []string // more variables
}

// missing says that the program which is measured is not there; empty: it is.
func (o *options) missing() string {
	if _, err := os.Stat(o.avfs); err != nil {
		return "the avfs program is missing (make build)"
	}
	return ""
}

// homes makes one for each back end.
func (r *runner) homes(ctx context.Context, name, vault, linger string) ([]home, error) {
	if why := r.opts.missing(); why != "" {
		return nil, errors.New(why)
	}
	var homes []home
	for _, backend := range r.res.Backends {
		h := home{avfs: r.opts.avfs, backend: backend, vault: vault, linger: linger, dir: filepath.Join(r.dir, "home-"+name+"-"+backend)}
		if _, err := h.run(ctx, "vault", "create", vault, "--backend", backend); err != nil {
			return nil, err
		}
		homes = append(homes, h)
	}
	return homes, nil
}

// run runs avfs and returns how long the whole process took.
func (h home) run(ctx context.Context, args ...string) (time.Duration, error) {
	return timed(h.command(ctx, args...))
}

// print runs avfs and returns what it printed.
func (h home) print(ctx context.Context, args ...string) ([]byte, error) {
	var out bytes.Buffer
	cmd := h.command(ctx, args...)
	cmd.Stdout = &out
	_, err := timed(cmd)
	return out.Bytes(), err
}

func (h home) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.avfs, args...)
	cmd.Env = append(os.Environ(), "AVFS_HOME="+h.dir, "AVFS_LINGER="+h.linger, "AVFS_VAULT="+h.vault)
	cmd.Env = append(cmd.Env, h.env...)
	return cmd
}

func timed(cmd *exec.Cmd) (time.Duration, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return took, err
}

// store is where the vault's store is.
func (h home) store() string { return filepath.Join(h.dir, "vaults", h.vault+".avfs") }

// ended waits until no process serves the store any more.
func (h home) ended(ctx context.Context) error {
	return gone(ctx, strings.TrimSuffix(h.store(), ".avfs")+".sock")
}

// goneTime bounds the wait for something to go.
const goneTime = 30 * time.Second

// gone waits until nothing is at path.
func gone(ctx context.Context, path string) error {
	ctx, stop := context.WithTimeout(ctx, goneTime)
	defer stop()
	for {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is still there: %w", path, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// execs measures an exec of true: warm while a process serves the store and has it
// mounted, cold when the command has to start one and the one before has ended.
func (r *runner) execs(name string) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		linger := "0s"
		if name == execWarm {
			linger = "10s"
		}
		homes, err := r.homes(ctx, name, execVault, linger)
		if err != nil {
			return err
		}
		defer func() {
			for _, h := range homes {
				err = errors.Join(err, h.ended(ctx))
			}
		}()
		if name == execWarm {
			for _, h := range homes {
				if _, err := h.run(ctx, "proxy", "exec", "--", "true"); err != nil {
					return err
				}
			}
		}
		return r.interleave(ctx, name, homes, 0, func(h home) (time.Duration, error) {
			if name == execCold {
				if err := h.ended(ctx); err != nil {
					return 0, err
				}
			}
			return h.run(ctx, "proxy", "exec", "--", "true")
		})
	}
}

// interleave runs a bare process and one in each home, again and again.
func (r *runner) interleave(ctx context.Context, name string, homes []home, size int, run func(home) (time.Duration, error)) error {
	for i := range r.opts.runs {
		took, err := timed(exec.CommandContext(ctx, "true"))
		if err != nil {
			return err
		}
		r.keep(bench.Sample{Workload: name, Backend: bare, Size: size, Round: i, NS: int64(took), Reps: 1}, "", nil)
		for _, h := range turn(homes, i) {
			took, err := run(h)
			if err != nil {
				return err
			}
			r.keep(bench.Sample{Workload: name, Backend: h.backend, Size: size, Round: i, NS: int64(took), Reps: 1}, "", nil)
		}
	}
	return nil
}

// lists measures ls of the top directory of a vault with many files, as a whole
// process that opens the store and closes it.
func (r *runner) lists(ctx context.Context) error {
	size := bench.Base(r.opts.short)
	homes, err := r.homes(ctx, listBig, listVault, "0s")
	if err != nil {
		return err
	}
	for _, h := range homes {
		if err := h.ended(ctx); err != nil {
			return err
		}
		d, err := backends.ByName(h.backend)
		if err != nil {
			return err
		}
		if err := bench.FillStore(ctx, d, h.store(), h.vault, size); err != nil {
			return err
		}
	}
	return r.interleave(ctx, listBig, homes, size, func(h home) (time.Duration, error) { return h.run(ctx, "ls", "/") })
}

// binaries builds a program with one back end at a time, and with all.
func (r *runner) binaries(name, pkg, tags string) func(context.Context) error {
	return func(ctx context.Context) error {
		out := filepath.Join(r.dir, "program")
		for _, backend := range append([]string{everything}, r.res.Backends...) {
			all := tags
			if backend != everything {
				all = strings.TrimSpace(tags + " avfs_" + backend)
			}
			if err := command(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", all, "-o", out, pkg); err != nil {
				return err
			}
			info, err := os.Stat(out)
			if err != nil {
				return err
			}
			r.keep(bench.Sample{Workload: name, Backend: backend, Reps: 1, Figures: map[string]float64{"bytes": float64(info.Size())}}, "", nil)
		}
		return nil
	}
}
