package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/httpapi"
	"github.com/agentvfs/avfs/internal/storefile"
	"github.com/agentvfs/avfs/proxy/run"
)

// apiDoc is what 'serve --api' prints when it answers requests.
type apiDoc struct {
	Listen    string `json:"listen"`               // the address, as --listen takes it
	URL       string `json:"url"`                  // what the paths of requests follow; at a socket the host is not used
	TokenFile string `json:"token_file,omitempty"` // what requests need, at a port
	PID       int    `json:"pid"`
}

// serveAPI answers requests until the run is cancelled.
func (c *serveCmd) serveAPI(a *app) error {
	switch {
	case c.Vault != "" || a.flags.Vault != "" || c.Linger != "" || c.Stop || c.Force:
		return usageError("--api is for all vaults, and ends with its process: it excludes a vault, --linger, --stop and --force")
	case run.InsideRun() != "":
		return &engine.Error{Kind: engine.Permission, Op: "serve", Err: errors.New("a command that runs in a vault cannot serve the API")}
	}
	w, err := a.workspace()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(w.Home(), 0o700); err != nil {
		return err
	}
	if c.Listen == "" {
		c.Listen = unixPrefix + filepath.Join(w.Home(), "api.sock")
	}
	list, err := a.apiCommands()
	if err != nil {
		return err
	}
	failure, err := commandSchema(errorSchema)
	if err != nil {
		return err
	}
	event, err := commandSchema(eventSchema)
	if err != nil {
		return err
	}
	surviveBrokenPipe()
	errs := &apiErrors{a: a}
	cfg := httpapi.Config{
		Commands: list, Status: statusOf, Version: version(), Failure: failure, Event: event,
		Run: func(ctx context.Context, call httpapi.Call) httpapi.Outcome { return apiCall(ctx, call, errs) },
	}
	l, doc, err := c.listen(w.Home(), &cfg)
	if err != nil {
		return err
	}
	err = a.print(doc, func(io.Writer) { a.note("serving the API at %s", safe(doc.Listen)) })
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return httpapi.Serve(a.ctx, l, cfg, errs)
}

// apiErrors takes what the server has to say to the person who started it.
type apiErrors struct {
	a  *app
	mu sync.Mutex // held for a line
}

// Write implements io.Writer.
func (e *apiErrors) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		e.a.warn("%s", strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "avfs: "))
	}
	return len(p), nil
}

// unixPrefix is what the address of a Unix socket begins with.
const unixPrefix = "unix:"

// listen begins to listen, and completes cfg with what an address needs.
func (c *serveCmd) listen(home string, cfg *httpapi.Config) (net.Listener, apiDoc, error) {
	doc := apiDoc{PID: os.Getpid()}
	if path, ok := strings.CutPrefix(c.Listen, unixPrefix); ok {
		if c.Token != "" {
			return nil, doc, usageError("--token-file is for a port; a socket is this user's alone")
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, doc, err
		}
		doc.Listen, doc.URL = unixPrefix+path, "http://localhost/v1/"
		l, err := listenUnix(path)
		return l, doc, err
	}
	addr, err := loopback(c.Listen)
	if err != nil {
		return nil, doc, err
	}
	if c.Token == "" {
		c.Token = filepath.Join(home, "api.token")
	}
	if doc.TokenFile, err = filepath.Abs(c.Token); err != nil {
		return nil, doc, err
	}
	l, err := listenTCP(addr, doc.TokenFile, cfg)
	if err != nil {
		return nil, doc, err
	}
	doc.Listen = l.Addr().String()
	doc.URL = "http://" + doc.Listen + "/v1/"
	return l, doc, nil
}

// loopback is the address of a port that only this machine reaches.
func loopback(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", usageError("--listen takes unix:PATH or 127.0.0.1:PORT, not %q", address)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", usageError("--listen serves this machine alone, at 127.0.0.1:PORT or unix:PATH, not %q", address)
	}
	return net.JoinHostPort(host, port), nil
}

// held is a listener that leaves nothing behind.
type heldListener struct {
	net.Listener
	lock  *storefile.Lock
	path  string      // of the socket, or of the token
	made  os.FileInfo // what is there is ours while it is this file
	close sync.Once
	err   error
}

// Close stops listening, removes the file, unless it is another by now, and gives the
// lock up.
func (l *heldListener) Close() error {
	l.close.Do(func() {
		err := l.Listener.Close()
		if now, serr := os.Lstat(l.path); serr == nil && os.SameFile(now, l.made) {
			err = errors.Join(err, os.Remove(l.path))
		}
		l.err = errors.Join(err, l.lock.Release())
	})
	return l.err
}

// lockBeside makes this process the only one that serves at a file. The lock has a file
// of its own, which stays: one that is removed could be locked twice.
func lockBeside(path string) (*storefile.Lock, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	lock, err := storefile.OpenLock(name, false)
	if err != nil {
		return nil, err
	}
	ok, err := lock.Try()
	if err == nil && !ok {
		busy := &engine.Error{Kind: engine.Busy, Op: "serve", Path: path, Err: errors.New("another server uses it"), Details: map[string]any{}}
		if pid := storefile.Holder(name); pid != 0 {
			busy.Details["pid"] = pid
		}
		err = busy
	}
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

// maxSocket is the longest path of a socket that every system takes, in bytes.
const maxSocket = 100

// listenUnix listens at a socket, for this user alone. What a dead server left there
// goes; anything but a socket stays.
func listenUnix(path string) (net.Listener, error) {
	if len(path) > maxSocket {
		return nil, usageError("the path of a socket has at most %d bytes: choose a shorter one with --listen unix:PATH", maxSocket)
	}
	lock, err := lockBeside(path)
	if err != nil {
		return nil, err
	}
	l, err := bindUnix(path)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	l.lock = lock
	return l, nil
}

func bindUnix(path string) (*heldListener, error) {
	there, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	case there.Mode()&os.ModeSocket == 0:
		return nil, &engine.Error{Kind: engine.Exists, Op: "serve", Path: path, Err: errors.New("it is no socket")}
	default:
		if answers(path) { // a server of another kind
			return nil, &engine.Error{Kind: engine.Busy, Op: "serve", Path: path, Err: errors.New("somebody listens there")}
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	u.SetUnlinkOnClose(false)
	made, err := os.Lstat(path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return &heldListener{Listener: u, path: path, made: made}, nil
}

// answers reports whether somebody listens at a socket.
func answers(path string) bool {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close() // it only asked
	return true
}

// listenTCP listens at a port and writes a new token to its file.
func listenTCP(addr, tokenFile string, cfg *httpapi.Config) (net.Listener, error) {
	lock, err := lockBeside(tokenFile)
	if err != nil {
		return nil, err
	}
	t, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	cfg.Token = rand.Text()
	made, err := writeToken(tokenFile, cfg.Token)
	if err != nil {
		return nil, errors.Join(err, t.Close(), lock.Release())
	}
	_, port, err := net.SplitHostPort(t.Addr().String())
	if err != nil {
		return nil, errors.Join(err, t.Close(), os.Remove(tokenFile), lock.Release())
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		cfg.Hosts = append(cfg.Hosts, net.JoinHostPort(host, port))
	}
	cfg.Hosts = append(cfg.Hosts, t.Addr().String()) // 127.0.0.2, for example
	return &heldListener{Listener: t, lock: lock, path: tokenFile, made: made}, nil
}

// writeToken replaces the file in one step with one that only this user can read.
func writeToken(path, token string) (os.FileInfo, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".avfs-token-*") // with mode 0600
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(tmp, token)
	made, serr := tmp.Stat()
	if err = errors.Join(err, serr, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(tmp.Name()))
	}
	return made, nil
}
