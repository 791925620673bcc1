package bbolt

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// trimAbove is how many bytes of files this process may have mapped and touched,
// before those of a store are let go of.
const trimAbove = 64 << 20

// trim takes the pages of the map out of this process, when it has touched many, so
// that reading a store does not make the process look as large as the store. They
// stay in the cache of the system. The caller holds a transaction, so the map stays.
func (h *handle) trim(sizeBytes int64) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return // nothing depends on it
	}
	fields := bytes.Fields(statm) // in pages: all, resident, of these with files behind them
	if len(fields) < 3 {
		return
	}
	pages, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil || pages*int64(os.Getpagesize()) < trimAbove {
		return
	}
	// A failure leaves the pages where they are.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, h.db.Info().Data, uintptr(sizeBytes), unix.MADV_DONTNEED)
}
