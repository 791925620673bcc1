package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The types of requests and answers.
const (
	typeJSON   = "application/json"
	typeBytes  = "application/octet-stream"
	typeEvents = "text/event-stream"
)

// headerExitCode has the exit code of a command that has an answer.
const headerExitCode = "Avfs-Exit-Code"

// command runs a command and answers with what it prints.
func (s *server) command(rw http.ResponseWriter, r *http.Request, c *Command) {
	if r.Method != http.MethodPost && (r.Method != http.MethodGet || !c.ReadOnly) {
		allowed := []string{http.MethodPost}
		if c.ReadOnly {
			allowed = append(allowed, http.MethodGet)
		}
		s.refuseMethod(rw, r, allowed...)
		return
	}
	wants := c.accepts(r.Header.Values("Accept"))
	if wants == "" {
		s.refuse(rw, http.StatusNotAcceptable, KindAccept, c.Name+" answers with "+strings.Join(c.types(), " or "))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	req, stdin, ok := s.read(rw, r, c, cancel)
	if !ok {
		return
	}
	var flags []string
	switch wants {
	case typeJSON:
		flags = []string{DocumentFlag}
	case typeEvents:
		flags = []string{c.EventsFlag}
	}
	args, err := c.args(req.values, stdin != nil, flags...)
	in, _ := stdin.(*input) // nil where the input is no body
	if err != nil {
		in.end()
		s.refuse(rw, http.StatusBadRequest, KindUsage, err.Error())
		return
	}
	call := Call{Args: args, Stdin: stdin, Peer: peerIn(r)}
	switch wants {
	case typeEvents:
		s.events(ctx, rw, call, in)
	case typeBytes:
		s.bytes(ctx, rw, call, in)
	default:
		s.document(ctx, rw, call, in)
	}
}

// types are those of the command's answers.
func (c *Command) types() []string {
	list := []string{typeJSON}
	if c.Bytes {
		list = append(list, typeBytes)
	}
	if c.EventsFlag != "" {
		list = append(list, typeEvents)
	}
	return list
}

// accepts is the first type that the client takes and the command has; empty if there is
// none. Whoever names none, or any, gets a document.
func (c *Command) accepts(headers []string) string {
	header := strings.Join(headers, ",")
	if strings.TrimSpace(header) == "" {
		return typeJSON
	}
	for _, part := range strings.Split(header, ",") {
		t, _, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		if t == "*/*" || t == "application/*" {
			return typeJSON
		}
		for _, have := range c.types() {
			if t == have {
				return t
			}
		}
	}
	return ""
}

// read reads the properties and finds the standard input. If it cannot, it answers. gone
// is called when the client goes away while it sends the input.
func (s *server) read(rw http.ResponseWriter, r *http.Request, c *Command, gone func()) (req request, stdin io.Reader, ok bool) {
	var err error
	t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // one that cannot be read is none
	switch {
	case r.Method == http.MethodGet:
		req, err = c.fromQuery(r.URL.RawQuery)
	case t == typeBytes && c.Stdin:
		if err := http.NewResponseController(rw).EnableFullDuplex(); err != nil {
			s.refuse(rw, http.StatusInternalServerError, "Internal", err.Error())
			return req, nil, false
		}
		in := newInput(rw, r, gone)
		stdin = in
		if req, err = c.fromQuery(r.URL.RawQuery); err != nil {
			in.end()
		}
	case t == typeJSON || t == "" && r.ContentLength == 0:
		var body []byte
		if body, ok = s.body(rw, r); !ok {
			return req, nil, false
		}
		if r.URL.RawQuery != "" {
			err = errors.New("the properties are in the body, not in the query")
			break
		}
		if req, err = c.fromJSON(body); req.stdin != nil {
			stdin = bytes.NewReader(req.stdin)
		}
	default:
		s.refuse(rw, http.StatusUnsupportedMediaType, KindMediaType, "the body has to be "+typeJSON+
			", or "+typeBytes+" for a command that reads standard input")
		return req, nil, false
	}
	if err != nil {
		s.refuse(rw, http.StatusBadRequest, KindUsage, err.Error())
		return req, nil, false
	}
	return req, stdin, true
}

// body reads a JSON body, which is small and comes soon.
func (s *server) body(rw http.ResponseWriter, r *http.Request) ([]byte, bool) {
	rc := http.NewResponseController(rw)
	err := rc.SetReadDeadline(time.Now().Add(bodyWait))
	var body []byte
	if err == nil {
		body, err = io.ReadAll(http.MaxBytesReader(rw, r.Body, maxBody))
	}
	if err == nil {
		err = rc.SetReadDeadline(time.Time{})
	}
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		newInput(rw, r, func() {}).end()
		s.refuse(rw, http.StatusRequestEntityTooLarge, KindTooLarge, "a JSON body has at most "+strconv.Itoa(maxBody)+" bytes")
	case err != nil:
		s.refuse(rw, http.StatusBadRequest, KindUsage, "the body cannot be read: "+err.Error())
	}
	return body, err == nil
}

// document answers with the document that the command prints.
func (s *server) document(ctx context.Context, rw http.ResponseWriter, call Call, in *input) {
	var doc bytes.Buffer
	call.Stdout = &doc
	out := s.cfg.Run(ctx, call)
	in.end()
	if out.Failure != nil {
		s.fail(rw, out.Failure)
		return
	}
	rw.Header().Set(headerExitCode, strconv.Itoa(out.ExitCode))
	send(rw, http.StatusOK, doc.Bytes())
}

// bytes answers with what the command prints, as it comes.
func (s *server) bytes(ctx context.Context, rw http.ResponseWriter, call Call, in *input) {
	out := &output{rw: rw, in: in}
	call.Stdout = out
	end := s.cfg.Run(ctx, call)
	in.end()
	switch {
	case end.Failure == nil && out.failed == nil:
		out.begin()
	case end.Failure != nil && !out.begun:
		s.fail(rw, end.Failure)
	default: // a part must not look like the whole
		panic(http.ErrAbortHandler)
	}
}

// output is an answer of bytes, which begins with the first.
type output struct {
	rw     http.ResponseWriter
	in     *input
	begun  bool
	failed error
}

func (o *output) begin() {
	if !o.begun {
		o.begun = true
		o.in.answering()
		o.rw.Header().Set("Content-Type", typeBytes)
		o.rw.WriteHeader(http.StatusOK)
	}
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	o.begin()
	err := http.NewResponseController(o.rw).SetWriteDeadline(time.Now().Add(writeWait))
	n := 0
	if err == nil {
		n, err = o.rw.Write(p)
	}
	if err != nil {
		o.failed = err
	}
	return n, err
}
