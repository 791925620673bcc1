package view

import "github.com/agentvfs/avfs/engine"

// Options tunes a mount. The zero value and nil are the defaults.
type Options struct {
	// ReadOnly refuses every change with EROFS.
	ReadOnly bool
	// AllowOther lets processes of other users use the mount; modes are
	// enforced for all. Nil allows it when this process is root's. Anyone else
	// needs user_allow_other in /etc/fuse.conf.
	AllowOther *bool
	// AllowNonEmpty mounts over a directory that has something in it, which is
	// hidden until the unmount.
	AllowNonEmpty bool
	// FSName is the source that the table of mounts shows; empty is "avfs:"
	// and the vault's name.
	FSName string
	// VolumeName is what macOS and Windows show; empty is the vault's name.
	VolumeName string
	// Debug lets the library write every request to standard error.
	Debug bool
	// ExtraOptions are passed to the library as they are: to libfuse each as
	// one command-line word, to the kernel each as one mount option.
	ExtraOptions []string
}

// Source is what the table of mounts shows as the source of v.
func (o *Options) Source(v *engine.Vault) string {
	if o.FSName != "" {
		return o.FSName
	}
	return "avfs:" + v.Name()
}
