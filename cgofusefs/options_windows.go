package cgofusefs

import "github.com/agentvfs/avfs/engine"

// mountOptions are the library's command-line words for a mount of v. Files
// appear as the user's own, because a vault's user numbers mean nothing here.
func mountOptions(v *engine.Vault, opts *Options) ([]string, error) {
	volume := opts.VolumeName
	if volume == "" {
		volume = v.Name()
	}
	words := []string{
		"-o", "uid=-1", "-o", "gid=-1",
		"-o", "FileSystemName=avfs", "-o", "volname=" + volume,
	}
	if opts.ReadOnly {
		words = append(words, "-o", "ro")
	}
	if opts.Debug {
		words = append(words, "-d")
	}
	return append(words, opts.ExtraOptions...), nil
}
