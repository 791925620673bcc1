package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxMessage is how long a line of the standard input may be.
const maxMessage = 16 << 20

// messages is an input of JSON-RPC messages, one a line. It has only those that can be
// read: to the transport, another is the end of the session, with all that runs in it.
// They are answered with an error here.
type messages struct {
	in     *bufio.Reader
	close  func() error
	answer io.Writer
	ended  func()
	rest   []byte // of the line that is being read
}

// newMessages reads r. ended is called when it ends.
func newMessages(r io.Reader, answer io.Writer, ended func()) *messages {
	m := &messages{in: bufio.NewReaderSize(r, 64<<10), answer: answer, ended: ended, close: func() error { return nil }}
	if c, ok := r.(io.Closer); ok {
		m.close = c.Close
	}
	return m
}

// Read implements io.Reader. It never gives more than the rest of one line.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.line()
		if fault := faultOf(line); fault != nil {
			if _, werr := m.answer.Write(fault); werr != nil {
				err = errors.Join(err, werr)
			}
		} else if len(bytes.TrimSpace(line)) > 0 {
			m.rest = append(bytes.TrimSpace(line), '\n')
			break // what ended the line comes again
		}
		if err != nil {
			m.ended()
			return 0, err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// line reads a line. Of one that is too long it keeps more than maxMessage bytes.
func (m *messages) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := m.in.ReadSlice('\n')
		if len(line) <= maxMessage {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Close ends a Read of standard input, where the system can.
func (m *messages) Close() error { return m.close() }

// faultOf is the answer to a line that is no message; nil if it is one or is empty.
func faultOf(line []byte) []byte {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0:
		return nil
	case len(line) > maxMessage:
		return fault(line, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has at most %d bytes", maxMessage))
	case !json.Valid(line):
		return fault(nil, jsonrpc.CodeParseError, "this line is not JSON; each line is one message")
	}
	list := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &list); err != nil || len(list) == 0 {
			return fault(nil, jsonrpc.CodeInvalidRequest, "a batch has at least one message")
		}
	}
	for _, msg := range list {
		if _, err := jsonrpc.DecodeMessage(msg); err != nil {
			return fault(msg, jsonrpc.CodeInvalidRequest, "this is no JSON-RPC message: "+err.Error())
		}
	}
	return nil
}

// fault is an error as an answer to a message, which need not be whole.
func fault(msg []byte, code int, text string) []byte {
	doc := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   jsonrpc.Error   `json:"error"`
	}{"2.0", idOf(msg), jsonrpc.Error{Code: int64(code), Message: text}}
	b, err := json.Marshal(doc)
	if err != nil { // numbers and texts always have a form
		b = []byte("{}")
	}
	return append(b, '\n')
}

// idOf is the id of a message as far as that can be read; null if there is none.
func idOf(msg []byte) json.RawMessage {
	none := json.RawMessage("null")
	d := json.NewDecoder(bytes.NewReader(msg))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return none
	}
	for {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return none
		}
		if name == "id" && (value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
			return value
		}
	}
}

// shared is an output with several writers, each of whole lines. It stays open: who
// made it closes it.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// Close does nothing.
func (*shared) Close() error { return nil }
