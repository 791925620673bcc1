package mountpoint

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Holders lists the processes that keep the mount on point busy: by a working or
// root directory, a running program, an open file or a mapped file. Processes
// that this user may not look into are missing.
func Holders(point string) []Holder {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil // it only makes a message richer
	}
	device := mapsDevice(point)
	var holders []Holder
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || !holds(pid, point, device) {
			continue
		}
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			continue // it has ended meanwhile
		}
		holders = append(holders, Holder{PID: pid, Name: strings.TrimSpace(string(name))})
	}
	return holders
}

// mapsDevice is the device of the mount as /proc/PID/maps writes it.
func mapsDevice(point string) string {
	device, err := Device(point)
	if err != nil {
		return ""
	}
	var major, minor uint32
	if _, err := fmt.Sscanf(device, "%d:%d", &major, &minor); err != nil {
		return ""
	}
	return fmt.Sprintf("%02x:%02x", major, minor)
}

func holds(pid int, point, device string) bool {
	proc := fmt.Sprintf("/proc/%d/", pid)
	for _, link := range []string{"cwd", "root", "exe"} {
		if linksInto(proc+link, point) {
			return true
		}
	}
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		return false // gone, or not ours to see: then its maps are hidden as well
	}
	for _, fd := range fds {
		if linksInto(proc+"fd/"+fd.Name(), point) {
			return true
		}
	}
	return device != "" && maps(proc+"maps", device)
}

// linksInto compares text and never follows the link, because following it would
// ask the very mount that may hang.
func linksInto(link, point string) bool {
	target, err := os.Readlink(link)
	return err == nil && (target == point || strings.HasPrefix(target, point+"/"))
}

// maps reports whether a mapping in the file named path is of that device.
func maps(path, device string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) >= 5 && fields[3] == device {
			return true
		}
	}
	return false
}
