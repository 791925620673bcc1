package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// mcpPath is where the protocol is spoken.
	mcpPath = "/mcp"
	// mcpIdle is how long a session may be silent before it is forgotten.
	mcpIdle = time.Hour
	// mcpEnd is how long the requests may take to come to an end when the server ends.
	mcpEnd = 5 * time.Second
	// mcpBodyBytes bounds a request: it may have the content of a file.
	mcpBodyBytes = 64 << 20
	// statelessSince is the first version of the protocol that has no sessions. Versions
	// are dates.
	statelessSince = "2026-07-28"
)

// mcpDoc is what 'mcp --listen --json' prints when it serves.
type mcpDoc struct {
	URL       string `json:"url"`
	Socket    string `json:"socket,omitempty"` // where to connect to, if not to the host of the URL
	TokenFile string `json:"token_file"`       // holds what each request has to bring as a bearer token
}

// serveHTTP serves any number of clients over HTTP until the program is told to end.
func (s *mcpServer) serveHTTP(a *app, address string) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	token, file, err := bearerToken(w.Home())
	if err != nil {
		return err
	}
	l, err := listenHere(address)
	if err != nil {
		return err
	}
	doc := mcpDoc{URL: "http://localhost" + mcpPath, Socket: l.Addr().String(), TokenFile: file}
	if l.Addr().Network() == "tcp" {
		doc.URL, doc.Socket = "http://"+l.Addr().String()+mcpPath, ""
	}
	srv := &http.Server{Handler: s.handler(token), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(a.ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), mcpEnd)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close() // what is left are streams on which nothing is said
		}
	})
	defer stop()
	if err := a.print(doc, nil); err != nil {
		return errors.Join(err, l.Close())
	}
	at := doc.URL
	if doc.Socket != "" {
		at = doc.Socket
	}
	a.note("avfs: serving the Model Context Protocol at %s; the token is in %s", at, file)
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler speaks both forms of the protocol, with sessions and without, to who has the
// token and is no page of another site in a browser.
func (s *mcpServer) handler(token string) http.Handler {
	server := func(*http.Request) *mcp.Server { return s.Server }
	stateful := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{SessionTimeout: mcpIdle, MaxRequestBodyBytes: mcpBodyBytes})
	stateless := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: mcpBodyBytes,
	})
	mux := http.NewServeMux()
	mux.HandleFunc(mcpPath, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Mcp-Protocol-Version") >= statelessSince:
			stateless.ServeHTTP(w, r)
			return
		case r.Method == http.MethodDelete: // the end of a session waits for its calls
			s.endSession(r.Header.Get("Mcp-Session-Id"))
		}
		stateful.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(withToken(token, mux))
}

// withToken lets only requests through that bring the token.
func withToken(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "bearer") || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bearerToken reads the token of the workspace, or makes one that stays. Only the user
// can read the file.
func bearerToken(home string) (token, file string, err error) {
	file = filepath.Join(home, "mcp-token")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		token = rand.Text()
		_, err = io.WriteString(f, token+"\n")
		return token, file, errors.Join(err, f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", "", err
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", "", err
	}
	if info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		return "", "", usageError("%s can be read by others: remove it, and a new one is made", file)
	}
	b, err := os.ReadFile(file)
	if token = strings.TrimSpace(string(b)); err == nil && len(token) < 16 {
		err = usageError("%s holds no token: remove it, and a new one is made", file)
	}
	return token, file, err
}

// listenHere listens at an address of this machine: 127.0.0.1:PORT or unix:PATH.
func listenHere(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(path)
	}
	address, err := loopback(address)
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", address)
}
