//go:build !linux

package workspace

import (
	"errors"
	"os"
)

// exchange swaps two files or directories. There is a moment without b; a crash
// in it leaves b under the name b.old.
func exchange(a, b string) error {
	old := b + ".old"
	if err := os.Rename(b, old); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return errors.Join(err, os.Rename(old, b))
	}
	return os.Rename(old, a)
}
