//go:build cgo

package cgofusefs

import (
	"os"

	"github.com/agentvfs/avfs/engine"
)

// mountOptions are the library's command-line words for a mount of v.
func mountOptions(v *engine.Vault, opts *Options) ([]string, error) {
	volume := opts.VolumeName
	if volume == "" {
		volume = v.Name()
	}
	words := []string{
		"-o", "default_permissions", "-o", "use_ino",
		"-o", "fsname=" + opts.Source(v), "-o", "volname=" + volume,
		"-o", "attr_timeout=0,entry_timeout=0,negative_timeout=0",
	}
	others := os.Geteuid() == 0
	if opts.AllowOther != nil {
		others = *opts.AllowOther
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
	return append(words, opts.ExtraOptions...), nil
}
