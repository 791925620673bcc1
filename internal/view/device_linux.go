package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
)

// ProbeDevice checks what a mount needs of the system. Anyone but root also needs
// the setuid program helper, which the package named pkg installs.
func ProbeDevice(helper, pkg string) error {
	dev, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	switch {
	case err == nil:
		if err := dev.Close(); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: load the kernel module (modprobe fuse), or give the container the device (--device /dev/fuse)", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: this user may not use the device, which is usually open to everyone (chmod 666 /dev/fuse); a container needs --device /dev/fuse --cap-add SYS_ADMIN", err)
	default:
		return err
	}
	if os.Geteuid() == 0 {
		return nil
	}
	if _, err := exec.LookPath(helper); err != nil {
		return fmt.Errorf("%w: mounting without root's rights needs it; install the package %s", err, pkg)
	}
	return nil
}
