package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/agentvfs/avfs/proxy/run"
)

// checkSystem looks at what avfs uses of Linux.
func checkSystem() []checked {
	return []checked{checkDevice(), checkHelper(), checkCgroups(), checkNamespaces()}
}

func checkDevice() checked {
	const name, device = "fuse device", "/dev/fuse"
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unhealthy(name, healthBad, "load the module with: modprobe fuse; in a container pass --device /dev/fuse --cap-add SYS_ADMIN", "%s is missing", device)
	case errors.Is(err, fs.ErrPermission):
		return unhealthy(name, healthBad, "let your user read and write "+device+"; in a container pass --device /dev/fuse", "%v", err)
	case err != nil:
		return unhealthy(name, healthBad, "load the module with: modprobe fuse", "%v", err)
	}
	_ = f.Close() // nothing was written
	return healthy(name, "%s can be opened", device)
}

func checkHelper() checked {
	const name, program = "fusermount3", "fusermount3"
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return healthy(name, "%s", path)
	case os.Geteuid() == 0:
		return healthy(name, "not installed, and root does not need it")
	}
	return unhealthy(name, healthBad, "install it: apt install fuse3, dnf install fuse3 or apk add fuse3", "not found, and needed to mount without root")
}

func checkCgroups() checked {
	if err := run.CanGroup(); err != nil {
		return unhealthy("cgroups", healthWarn, "run avfs in a cgroup that your user may write to, such as a systemd user session", "commands get no cgroup of their own, so their processes are found by other means: %v", err)
	}
	return healthy("cgroups", "commands get a cgroup of their own")
}

// namespaceSwitches are the files that can forbid user namespaces, with the values that
// do and do not.
var namespaceSwitches = [...]struct{ path, off, on string }{
	{"/proc/sys/user/max_user_namespaces", "0", "10000"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "0"},
}

func checkNamespaces() checked {
	const name = "user namespaces"
	if _, err := os.Stat("/proc/self/ns/user"); err != nil {
		return unhealthy(name, healthWarn, "avfs needs none itself; commands that make sandboxes do", "the kernel has none")
	}
	for _, s := range namespaceSwitches {
		text, err := os.ReadFile(s.path)
		if err != nil {
			continue // this kernel has no such switch
		}
		if value := strings.TrimSpace(string(text)); value == s.off {
			return unhealthy(name, healthWarn, "avfs needs none itself; to let commands make sandboxes set "+s.path+" to "+s.on, "%s is %s", s.path, value)
		}
	}
	return healthy(name, "allowed")
}
