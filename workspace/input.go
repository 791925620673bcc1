package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/agentvfs/avfs/engine"
)

// inputInMemory is how much of an input is held in memory while it comes, in bytes.
const inputInMemory = 4 << 20

// gather reads an input to its end, so that an edit need not wait for it while others
// wait for the edit, and that an input that breaks off changes nothing. More than fits
// in memory goes to a file beside the store that has no name any more. Of what the vault
// has no room for it reads no more than half of the room: whoever reads on, which is the
// edit, is refused then. size is how much it is, 0 where that is not known. done gives back
// what it holds.
func (o *Owner) gather(ctx context.Context, v *engine.Vault, r io.Reader) (all io.Reader, size int64, done func() error, err error) {
	none := func() error { return nil }
	var head bytes.Buffer
	if n, err := io.CopyN(&head, r, inputInMemory); err != nil || n < inputInMemory {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return &head, n, none, err
	}
	room, err := v.StatFS(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(o.path), ".avfs-input-*")
	if err != nil {
		return nil, 0, nil, err
	}
	gone := os.Remove(f.Name()) == nil // not where open files keep their names
	done = func() error {
		err := f.Close()
		if !gone {
			err = errors.Join(err, os.Remove(f.Name()))
		}
		return err
	}
	size, err = io.CopyN(f, r, room.BlocksFree*room.BlockSize/2)
	if errors.Is(err, io.EOF) {
		r, err = eof{}, nil
		size += inputInMemory
	} else {
		size = 0
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, 0, nil, errors.Join(err, done())
	}
	return io.MultiReader(&head, f, r), size, done, nil
}
