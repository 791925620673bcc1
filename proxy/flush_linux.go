package proxy

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushMount makes the kernel hand over what programs left in mapped pages, so
// that the report sees it.
func flushMount(mountpoint string) error {
	d, err := os.Open(mountpoint)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}
