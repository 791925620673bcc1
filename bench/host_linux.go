package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Evicted says what this system does for a cold read, to follow "the store".
const Evicted = "not in the system's cache"

// Evict makes the kernel forget what it has cached of the files at or below path.
// It needs no privilege and leaves everything else cached, unlike drop_caches. It
// fails where pages stay, because the figure would not be a cold one.
func Evict(path string) error {
	return filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); err != nil {
			return err
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			return fmt.Errorf("evict %s: %w", p, err)
		}
		kept, pages, err := resident(f)
		if err == nil && kept*20 > pages {
			err = fmt.Errorf("evict %s: %d of %d pages stayed in the cache", p, kept, pages)
		}
		return err
	})
}

// resident counts the pages of f that the kernel has in memory.
func resident(f *os.File) (kept, pages int, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, 0, err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Munmap(data)
	pages = (len(data) + os.Getpagesize() - 1) / os.Getpagesize()
	in := make([]byte, pages)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&in[0])))
	if errno != 0 {
		return 0, 0, errno
	}
	for _, b := range in {
		kept += int(b & 1)
	}
	return kept, pages, nil
}

// resetPeak sets the peak of the memory to what is in use now.
func resetPeak() error {
	debug.FreeOSMemory()
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// peakMemory is the most resident memory of this process since resetPeak, in
// bytes, pages of mapped files included.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		if rest, ok := bytes.CutPrefix(lines.Bytes(), []byte("VmHWM:")); ok {
			kib, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmHWM in /proc/self/status")
}

func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
