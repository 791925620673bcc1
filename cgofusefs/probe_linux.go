package cgofusefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
)

// probeDevice checks what the library needs of the system, because the library
// itself only writes to standard error.
func probeDevice() error {
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
	if _, err := exec.LookPath(helperProgram); err != nil {
		return fmt.Errorf("%w: mounting without root's rights needs it; install the package %s", err, fusePackage)
	}
	return nil
}
