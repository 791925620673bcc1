package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// ownerCommand is the hidden first argument of a background owner. It is not part
// of the grammar, because an owner has to start fast.
const ownerCommand = "__own"

// lingerVar names the variable that says how long a background owner stays when
// nothing needs it.
const lingerVar = "AVFS_LINGER"

const defaultLinger = 5 * time.Second

// lingerTime reads AVFS_LINGER.
func lingerTime(getenv func(string) string) (time.Duration, error) {
	text := getenv(lingerVar)
	if text == "" {
		return defaultLinger, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, usageError("%s is a duration such as 5s or 0s, not %q", lingerVar, text)
	}
	return d, nil
}

// ownerArgs reports whether the program was started as a background owner, and of
// which store.
func ownerArgs(args []string) (path string, ok bool) {
	if len(args) == 2 && args[0] == ownerCommand {
		return args[1], true
	}
	return "", false
}

// ready is the line that a background owner writes to its standard output when it
// answers requests, or when it cannot.
type ready struct {
	PID   int              `json:"pid"`
	Error *workspace.Fault `json:"error,omitempty"`
}

// spawner starts background owners.
type spawner struct {
	linger time.Duration
	getenv func(string) string
	trace  func(format string, args ...any)
}

// spawn starts an owner of the store at path and returns when it listens. The
// owner has a session of its own and nothing of ours open.
func (s *spawner) spawn(ctx context.Context, path string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := openLog(path)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := closeInheritedOnExec(); err != nil {
		return err
	}
	cmd := exec.Command(exe, ownerCommand, path)
	cmd.Args[0] = os.Args[0]
	cmd.Dir = string(filepath.Separator)
	cmd.Env = s.environment(path)
	cmd.Stderr = log
	cmd.SysProcAttr = detached()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the owner of the store: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = out.Close() }) // ends the wait below
	defer stop()
	err = awaitReady(out, log.Name())
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	// It ends by itself, and nobody is interested in how; but who stays must not keep what
	// is left of it.
	go func() { _ = cmd.Wait() }()
	if err != nil {
		return err
	}
	s.trace("owner of the store started in %s, pid %d", time.Since(started).Round(time.Millisecond), cmd.Process.Pid)
	return nil
}

// awaitReady reads the owner's line.
func awaitReady(out io.ReadCloser, log string) error {
	defer out.Close()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return &engine.Error{Kind: workspace.OwnerLost, Op: "start the owner of the store", Err: fmt.Errorf("it ended at once; see %s", log)}
	}
	var r ready
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	if r.Error != nil {
		return r.Error.Err()
	}
	return nil
}

// environment is what an owner gets: ours, except for what belongs to one command
// in a vault.
func (s *spawner) environment(path string) []string {
	home := filepath.Dir(filepath.Dir(path))
	env := []string{"AVFS_HOME=" + home, lingerVar + "=" + s.linger.String()}
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "AVFS_HOME", lingerVar, "AVFS_VAULT", "AVFS_EXEC_ID", "PWD", "OLDPWD":
		default:
			env = append(env, kv)
		}
	}
	return env
}

// maxLog is how long a log may be before it starts anew, in bytes.
const maxLog = 1 << 20

// openLog opens the file that takes what an owner and the libraries in it write to
// standard error.
func openLog(store string) (*os.File, error) {
	dir := filepath.Join(filepath.Dir(filepath.Dir(store)), "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(store), filepath.Ext(store)) + ".log"
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > maxLog {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ownStore is the main function of a background owner.
func ownStore(path string) int {
	ctx, stop := signalContext(context.Background())
	defer stop()
	told := false
	tell := func(r ready) {
		if told {
			return
		}
		told = true
		r.PID = os.Getpid()
		_ = json.NewEncoder(os.Stdout).Encode(r) // who started us may be gone
		leaveStdout()
	}
	err := serveStore(ctx, path, func() { tell(ready{}) })
	if err != nil {
		if told || engine.KindOf(err) != engine.Locked { // who lost a race is told, and that is all
			fmt.Fprintf(os.Stderr, "%s owner %d of %s: %v\n", time.Now().Format(time.RFC3339), os.Getpid(), path, err)
		}
		tell(ready{Error: workspace.NewFault(err)})
		return exitFailure
	}
	return exitOK
}

func serveStore(ctx context.Context, path string, listening func()) error {
	linger, err := lingerTime(os.Getenv)
	if err != nil {
		return err
	}
	w, err := workspace.Open(workspace.Config{Drivers: backends.All(), Mounter: mounter{os.Getenv(driverVar)},
		EndCommand: proxy.EndCommand, Version: version()})
	if err != nil {
		return err
	}
	return profileOwner(func() error {
		return w.Serve(ctx, path, workspace.ServeOptions{Linger: linger, Ready: listening})
	})
}
