package mountpoint

import (
	"bufio"
	"os"
	"strings"
)

// entry is one line of the kernel's table of mounts, as proc(5) describes it.
type entry struct {
	device string // major:minor
	point  string
	fsType string
	source string
}

// table reads the mounts that this process sees, oldest first.
func table() ([]entry, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var entries []entry
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20) // overlay mounts have very long options
	for lines.Scan() {
		if e, ok := parseEntry(lines.Text()); ok {
			entries = append(entries, e)
		}
	}
	return entries, lines.Err()
}

// parseEntry reads one line; a line of unknown form is no mount of ours.
func parseEntry(line string) (entry, bool) {
	left, right, ok := strings.Cut(line, " - ")
	fields, rest := strings.Fields(left), strings.Fields(right)
	if !ok || len(fields) < 6 || len(rest) < 2 {
		return entry{}, false
	}
	return entry{device: fields[2], point: unescape(fields[4]), fsType: rest[0], source: unescape(rest[1])}, true
}

// unescape undoes the kernel's octal escapes of blanks and backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && isOctal(s[i+1:i+4]) {
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func isOctal(s string) bool {
	for _, c := range s {
		if c < '0' || c > '7' {
			return false
		}
	}
	return true
}

// mountedOn is the topmost mount on point.
func mountedOn(point string) (e entry, ok bool, err error) {
	entries, err := table()
	for _, candidate := range entries {
		if candidate.point == point {
			e, ok = candidate, true
		}
	}
	return e, ok, err
}

// mountsBelow lists the mount points inside point.
func mountsBelow(point string) []string {
	entries, err := table()
	if err != nil {
		return nil // it only makes a message richer
	}
	var below []string
	for _, e := range entries {
		if strings.HasPrefix(e.point, point+"/") {
			below = append(below, e.point)
		}
	}
	return below
}

// Device is the device number of the mount on point as "major:minor"; empty where
// nothing is mounted.
func Device(point string) (string, error) {
	e, _, err := mountedOn(point)
	return e.device, err
}
