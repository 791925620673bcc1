package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// The limits of requests.
const (
	maxBody       = 16 << 20
	maxHeader     = 64 << 10
	bodyWait      = time.Minute      // for a whole JSON body
	headerWait    = 10 * time.Second // for the headers
	idleWait      = 2 * time.Minute  // between two requests of a connection
	writeWait     = time.Minute      // for a client to read what is sent
	answerWait    = 5 * time.Minute  // for a client to read an answer that is no stream
	keepAliveTime = 15 * time.Second // between two signs of life of a stream
	// endWait is how long requests may take to end when the server does, after their
	// commands have been interrupted.
	endWait = 30 * time.Second
)

// prefix is what every path of the API begins with.
const prefix = "/v1/"

// server answers requests.
type server struct {
	cfg      Config
	commands map[string]*Command // by path, such as "vault/create"
	openapi  []byte
	origin   *http.CrossOriginProtection
	running  sync.WaitGroup // requests under way
	life     time.Duration  // keepAliveTime, in tests less
}

// newServer prepares to serve.
func newServer(cfg Config) (*server, error) {
	s := &server{cfg: cfg, commands: map[string]*Command{}, origin: http.NewCrossOriginProtection(), life: keepAliveTime}
	for i := range cfg.Commands {
		c := &cfg.Commands[i]
		s.commands[c.path()] = c
	}
	var err error
	s.openapi, err = json.Marshal(describe(&cfg))
	return s, err
}

// path is where the command is, behind prefix.
func (c *Command) path() string { return strings.ReplaceAll(c.Name, " ", "/") }

type peerKey struct{}

// Serve answers requests until ctx ends. Then it takes no more, interrupts the commands
// that run and returns when they have ended. It closes l. errs gets a line for each
// failure that no client can be told of.
func Serve(ctx context.Context, l net.Listener, cfg Config, errs io.Writer) error {
	s, err := newServer(cfg)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: headerWait, IdleTimeout: idleWait, MaxHeaderBytes: maxHeader, ErrorLog: log.New(errs, "", 0),
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, peerOf(c))
		},
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }() // ends with the shutdown below
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	cancel()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer stop()
	err = srv.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	s.running.Wait() // what was cut off may still be recording what it did
	if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}

// ServeHTTP answers one request.
func (s *server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.running.Add(1)
	defer s.running.Done()
	_ = http.NewResponseController(rw).SetWriteDeadline(time.Time{}) // that of the request before; a connection that cannot is gone
	h := rw.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if !s.admit(rw, r) {
		return
	}
	if r.Context().Err() != nil {
		s.refuse(rw, http.StatusServiceUnavailable, KindUnavailable, "the server ends")
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, prefix)
	c := s.commands[path]
	switch {
	case ok && path == "openapi.json":
		s.fixed(rw, r, s.openapi)
	case ok && path == "health":
		s.health(rw, r)
	case !ok || c == nil:
		s.refuse(rw, http.StatusNotFound, KindNotFound, "there is nothing at "+r.URL.Path+"; GET "+prefix+"openapi.json lists what there is")
	default:
		s.command(rw, r, c)
	}
}

// admit refuses who must not ask.
func (s *server) admit(rw http.ResponseWriter, r *http.Request) bool {
	peer := peerIn(r)
	switch {
	case peer.Known && peer.UID != os.Getuid() && peer.UID != 0:
		s.refuse(rw, http.StatusForbidden, KindForbidden, "the server is another user's")
	case !s.knownHost(r.Host):
		s.refuse(rw, http.StatusForbidden, KindForbidden, "the Host of the request is not this server")
	case s.origin.Check(r) != nil:
		s.refuse(rw, http.StatusForbidden, KindForbidden, "a browser sends this from another site")
	case !s.authorized(r.Header.Get("Authorization")):
		rw.Header().Set("WWW-Authenticate", "Bearer")
		s.refuse(rw, http.StatusUnauthorized, KindNoToken, "the request needs the server's token: Authorization: Bearer TOKEN")
	default:
		return true
	}
	return false
}

func peerIn(r *http.Request) Peer {
	p, _ := r.Context().Value(peerKey{}).(Peer)
	return p
}

// knownHost keeps out pages whose site has the address of this machine by now.
func (s *server) knownHost(host string) bool {
	if len(s.cfg.Hosts) == 0 {
		return true
	}
	for _, h := range s.cfg.Hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

// authorized compares the token in a time that tells nothing of it.
func (s *server) authorized(header string) bool {
	if s.cfg.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(header, " ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.Token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// health tells that the server takes requests.
func (s *server) health(rw http.ResponseWriter, r *http.Request) {
	b, err := json.Marshal(healthDoc{Status: "ok", Version: s.cfg.Version, PID: os.Getpid()})
	if err != nil {
		s.refuse(rw, http.StatusInternalServerError, "Internal", err.Error())
		return
	}
	s.fixed(rw, r, b)
}

// healthDoc is the answer of health.
type healthDoc struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
}

// fixed answers GET with a document.
func (s *server) fixed(rw http.ResponseWriter, r *http.Request, doc []byte) {
	if r.Method != http.MethodGet {
		s.refuseMethod(rw, r, http.MethodGet)
		return
	}
	send(rw, http.StatusOK, doc)
}

func (s *server) refuseMethod(rw http.ResponseWriter, r *http.Request, allowed ...string) {
	rw.Header().Set("Allow", strings.Join(allowed, ", "))
	s.refuse(rw, http.StatusMethodNotAllowed, KindMethod, r.URL.Path+" takes "+strings.Join(allowed, " and "))
}

// refuse answers with a failure of the server itself.
func (s *server) refuse(rw http.ResponseWriter, status int, kind, message string) {
	doc, err := json.Marshal(map[string]string{"error": kind, "message": message})
	if err != nil { // strings always have a form
		doc = []byte("{}")
	}
	send(rw, status, doc)
}

// fail answers with the failure of a command.
func (s *server) fail(rw http.ResponseWriter, f *Failure) { send(rw, s.cfg.Status(f.Kind), f.Document) }

// send answers with a document. A client that is gone needs none.
func send(rw http.ResponseWriter, status int, doc []byte) {
	_ = http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(answerWait)) // likewise
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(doc)
}
