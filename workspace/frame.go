package workspace

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Protocol is the version of the socket's protocol. An owner answers requests of
// its own version only.
const Protocol = 4

// An answer is a series of frames: a type byte, the length as four bytes, big
// end first, and as many bytes of content.
const (
	frameData     = 'd' // output stream
	frameProgress = 'p' // a Progress
	framePart     = 'c' // the beginning of a result or Fault that is longer than a frame
	frameResult   = 'r' // the result; the last frame
	frameFault    = 'e' // a Fault; the last frame
)

// maxFrame is how much one frame holds, in bytes.
const maxFrame = 16 << 20

func writeFrame(w io.Writer, kind byte, content []byte) error {
	var head [5]byte
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(len(content)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func readFrame(r io.Reader) (kind byte, content []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("frame of %d bytes", n)
	}
	content = make([]byte, n)
	_, err = io.ReadFull(r, content)
	return head[0], content, err
}
