package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// events answers with what the command tells, each line as an event.
func (s *server) events(ctx context.Context, rw http.ResponseWriter, call Call, in *input) {
	st := &stream{rw: rw, in: in, rc: http.NewResponseController(rw)}
	call.Stdout = st
	stop := make(chan struct{})
	var beat sync.WaitGroup
	beat.Go(func() { st.live(s.life, stop) })
	out := s.cfg.Run(ctx, call)
	close(stop)
	beat.Wait()
	in.end()
	if out.Failure == nil {
		return
	}
	if !st.begun {
		s.fail(rw, out.Failure)
		return
	}
	_ = st.send("error", out.Failure.Document) // a client that is gone needs no answer
}

// stream is an answer of server-sent events.
type stream struct {
	rw http.ResponseWriter
	in *input
	rc *http.ResponseController

	mu    sync.Mutex // guards what follows, and is held while something is sent
	begun bool
	rest  []byte // the beginning of a line
}

// live sends a comment from time to time, so that both ends see whether the other is
// there, until stop is closed.
func (st *stream) live(every time.Duration, stop <-chan struct{}) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			st.mu.Lock()
			_ = st.put([]byte(": alive\n\n")) // the next event tells that the client is gone
			st.mu.Unlock()
		}
	}
}

// Write implements io.Writer: each line of JSON is an event of the type in its field
// "event".
func (st *stream) Write(p []byte) (int, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.rest = append(st.rest, p...)
	for {
		line, rest, ok := bytes.Cut(st.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		var doc struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal(line, &doc); err != nil {
			return 0, err
		}
		if err := st.put(event(doc.Event, line)); err != nil {
			return 0, err
		}
		st.rest = rest
	}
}

func (st *stream) send(kind string, doc []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.put(event(kind, doc))
}

// event is the form of an event. JSON on one line has no line break in it.
func event(kind string, doc []byte) []byte {
	var b bytes.Buffer
	b.WriteString("event: " + kind + "\ndata: ")
	b.Write(bytes.TrimSpace(doc))
	b.WriteString("\n\n")
	return b.Bytes()
}

// put sends something at once. The caller holds mu.
func (st *stream) put(p []byte) error {
	if !st.begun {
		st.begun = true
		st.in.answering()
		st.rw.Header().Set("Content-Type", typeEvents)
		st.rw.Header().Set("X-Accel-Buffering", "no")
		st.rw.WriteHeader(http.StatusOK)
	}
	if err := st.rc.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return err
	}
	if _, err := st.rw.Write(p); err != nil {
		return err
	}
	return st.rc.Flush()
}
