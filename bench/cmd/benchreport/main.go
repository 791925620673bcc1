// Benchreport runs every workload of package bench on every back end of this build,
// and the mount workloads on every file system that this machine offers,
// and writes RESULTS.md with its plots, results.jsonl, and results.txt, which
// benchstat reads (benchstat -col /backend results.txt).
//
// The back ends take turns: each round runs each workload on one after the other,
// and begins with another one each time. A sample is a process of its own, on its
// own copy of the store. So do the file systems, each with a server of its own, on
// trees that are new in every round. Run it from the top of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/agentvfs/avfs/bench"
	"github.com/agentvfs/avfs/bench/memfs"
)

// options are the flags.
type options struct {
	rounds int
	runs   int
	short  bool
	only   *regexp.Regexp
	skip   *regexp.Regexp // nil skips nothing
	out    string
	dir    string
	avfs   string
	note   string
	from   string

	profiles string // folder for profiles; empty: none
}

// wants reports whether the flags ask for what has this name.
func (o *options) wants(name string) bool {
	return o.only.MatchString(name) && (o.skip == nil || !o.skip.MatchString(name))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 2 && os.Args[1] == sampleCommand {
		exit(child(ctx, os.Stdin, os.Stdout))
	}
	if len(os.Args) == 3 && os.Args[1] == memoryCommand {
		stop() // the mount's end ends it, not an interrupt that its users get too
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
		exit(memfs.Serve(os.Args[2], func() { fmt.Println("mounted") }))
	}
	opts, err := parse(os.Args[1:])
	if err != nil {
		exit(err)
	}
	exit(run(ctx, opts))
}

func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	if !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
	}
	os.Exit(1)
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("benchreport", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 0, "rounds over the back ends and file systems; 5, or 2 in a short run")
	f.IntVar(&o.runs, "runs", 50, "runs of each command of the command line")
	f.BoolVar(&o.short, "short", false, "small sizes only")
	only := f.String("only", "", "run only what matches this `regexp`, such as mount")
	skip := f.String("skip", "", "leave out what matches this `regexp`, such as mount")
	f.StringVar(&o.out, "out", "bench", "`folder` for the report")
	f.StringVar(&o.dir, "dir", "", "`folder` on the disk to measure; the system's folder for temporary files")
	f.StringVar(&o.avfs, "avfs", filepath.Join("bin", "avfs"), "the avfs `program` to measure")
	f.StringVar(&o.note, "note", "", "a `sentence` for the header")
	f.StringVar(&o.profiles, "profiles", "", "`folder` for CPU profiles of the vaults' servers in the first round of the mount workloads")
	f.StringVar(&o.from, "from", "", "measure nothing, write the report from this results.jsonl `file`")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	if *skip != "" {
		if o.skip, err = regexp.Compile(*skip); err != nil {
			return nil, fmt.Errorf("-skip: %w", err)
		}
	}
	if o.rounds == 0 {
		o.rounds = 5
		if o.short {
			o.rounds = 2
		}
	}
	if o.avfs, err = filepath.Abs(o.avfs); err != nil {
		return nil, err
	}
	if err := o.ensureProfiles(); err != nil {
		return nil, err
	}
	if f.NArg() > 0 || o.rounds < 1 || o.runs < 1 {
		f.Usage()
		return nil, errors.New("no arguments, and at least one round and run")
	}
	return o, nil
}

// run measures, or loads what was measured, and writes the report. Failed samples
// are named in the report and make the command fail at the end.
func run(ctx context.Context, o *options) error {
	var res *Results
	var err error
	if o.from != "" {
		res, err = load(o.from)
	} else {
		res, err = measure(ctx, o)
	}
	if err != nil {
		return err
	}
	if err := write(res, o.out); err != nil {
		return err
	}
	if n := len(res.Failures); n > 0 {
		return fmt.Errorf("%d samples failed; the first: %s", n, res.Failures[0])
	}
	return nil
}

// measure runs everything in a scratch folder, which it removes.
func measure(ctx context.Context, o *options) (res *Results, err error) {
	dir, err := os.MkdirTemp(o.dir, "avfs-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	host, err := describeHost(ctx, dir)
	if err != nil {
		return nil, err
	}
	if host.FileSystem == "tmpfs" {
		return nil, fmt.Errorf("%s is in memory, where nothing is durable; name a folder on a disk with -dir", dir)
	}
	host.Note = o.note
	r := &runner{opts: o, dir: dir, res: &Results{Host: host, Rounds: o.rounds, Runs: o.runs, Short: o.short}}
	if err := r.all(ctx); err != nil {
		return nil, err
	}
	r.res.Host.finish()
	return r.res, nil
}

// sizes returns the sizes at which w runs.
func (o *options) sizes(w *bench.Workload) []int {
	if o.short {
		return w.Short
	}
	return w.Sizes
}
