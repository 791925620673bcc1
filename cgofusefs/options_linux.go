//go:build cgo

package cgofusefs

import (
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// mountOptions are the library's command-line words for a mount of v.
func mountOptions(v *engine.Vault, opts *Options) ([]string, error) {
	words := []string{
		"-o", "default_permissions", // the kernel enforces modes
		"-o", "subtype=avfs", // with "fuse." before it, mountpoint.FSType
		"-o", "fsname=" + escapeOption(opts.Source(v)),
	}
	others, err := opts.Shared()
	if err != nil {
		return nil, err
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

// escapeOption protects a value from libfuse's option parser.
func escapeOption(s string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(s)
}
