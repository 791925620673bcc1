package view

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Shared reports whether other users may use the mount. Where the system forbids
// it, that is an error: the helper would only tell standard error.
func (o *Options) Shared() (bool, error) {
	if o.AllowOther == nil {
		return os.Geteuid() == 0, nil
	}
	return *o.AllowOther, mayAllowOther(*o.AllowOther)
}

// fuseConf is where the administrator lets ordinary users share their mounts.
const fuseConf = "/etc/fuse.conf"

func mayAllowOther(wanted bool) error {
	if !wanted || os.Geteuid() == 0 {
		return nil
	}
	f, err := os.Open(fuseConf)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if strings.TrimSpace(lines.Text()) == "user_allow_other" {
				return nil
			}
		}
	}
	return fmt.Errorf("other users may only use this mount if %s says user_allow_other", fuseConf)
}
