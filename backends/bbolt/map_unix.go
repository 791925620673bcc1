//go:build unix

package bbolt

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// reserveMap returns how much address space to map for a file, so that it need not
// be mapped again while readers are open. It costs no memory. Where the process is
// limited (ulimit -v, 32 bits) it is less, 0 for as little as possible.
func reserveMap() int {
	most := 38 // 256 GiB
	if strconv.IntSize == 32 {
		most = 29
	}
	for shift := most; shift >= 28; shift-- {
		size := 1 << shift
		b, err := unix.Mmap(-1, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			continue
		}
		if unix.Munmap(b) == nil {
			return size
		}
	}
	return 0
}
