package mountpoint

import (
	"os"
	"path/filepath"
	"strconv"
)

// readAheadBytes is as much as one request of a FUSE mount can ask for.
const readAheadBytes = 1 << 20

// ReadAhead lets the kernel read on in files of the mount with the device number that
// Device gave by 1 MiB instead of 128 KiB, so that there is something to read in
// parallel. Only root can, and not in every container; without it files that are not
// in memory take longer to read, and that is all.
func ReadAhead(device string) {
	_ = os.WriteFile(filepath.Join("/sys/class/bdi", device, "read_ahead_kb"), strconv.AppendInt(nil, readAheadBytes>>10, 10), 0)
}
