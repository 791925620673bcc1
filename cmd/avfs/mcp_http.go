package main

import (
	"cmp"
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
	Socket    string `json:"socket,omitempty"`     // where to connect to, if not to the host of the URL
	TokenFile string `json:"token_file,omitempty"` // holds what each request has to bring as a bearer token, at a port
}

// serveHTTP serves any number of clients over HTTP until the program is told to end.
func (s *mcpServer) serveHTTP(a *app, address string) error {
	l, doc, token, err := s.listen(address)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: s.handler(token), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	stop := context.AfterFunc(a.ctx, func() { // which has ended the calls
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), mcpEnd)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close() // what is left are streams on which nothing is said
		}
	})
	at := cmp.Or(doc.Socket, doc.URL)
	if err := a.print(doc, func(io.Writer) { a.note("serving the Model Context Protocol at %s", safe(at)) }); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	<-ended
	return nil
}

// listen begins to listen, and says what the clients need to know. Without a token
// everybody who reaches the listener may speak.
func (s *mcpServer) listen(address string) (l net.Listener, doc mcpDoc, token string, err error) {
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		if doc.Socket, err = filepath.Abs(path); err != nil {
			return nil, doc, "", err
		}
		doc.URL = "http://localhost" + mcpPath
		l, err = listenUnix(doc.Socket)
		return l, doc, "", err
	}
	addr, err := loopback(address)
	if err != nil {
		return nil, doc, "", err
	}
	if token, doc.TokenFile, err = bearerToken(s.workspace.Home()); err != nil {
		return nil, doc, "", err
	}
	if l, err = net.Listen("tcp", addr); err != nil {
		return nil, doc, "", err
	}
	doc.URL = "http://" + l.Addr().String() + mcpPath
	return l, doc, token, nil
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
	if token == "" {
		return mux
	}
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
	file = filepath.Join(home, "mcp.token")
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
