//go:build cgo

package cgofusefs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// mountOptions are the library's command-line words for a mount of v.
func mountOptions(v *engine.Vault, opts *Options) ([]string, error) {
	name := opts.FSName
	if name == "" {
		name = "avfs:" + v.Name()
	}
	words := []string{
		"-o", "default_permissions", // the kernel enforces modes
		"-o", "subtype=avfs", // with "fuse." before it, mountpoint.FSType
		"-o", "fsname=" + escapeOption(name),
	}
	others := os.Geteuid() == 0
	if opts.AllowOther != nil {
		others = *opts.AllowOther
		if err := mayAllowOther(others); err != nil {
			return nil, err
		}
	}
	if others {
		words = append(words, "-o", "allow_other")
	}
	if opts.ReadOnly {
		words = append(words, "-o", "ro")
	}
	if opts.Debug {
		words = append(words, "-d")
	}
	words = append(words, libraryOptions(opts.AllowNonEmpty)...)
	return append(words, opts.ExtraOptions...), nil
}

// fuseConf is where the administrator lets ordinary users share their mounts.
const fuseConf = "/etc/fuse.conf"

// mayAllowOther finds out early what fusermount would only write to standard error.
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

// escapeOption protects a value from libfuse's option parser.
func escapeOption(s string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(s)
}
