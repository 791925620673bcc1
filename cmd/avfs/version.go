package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/cgofusefs"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// release is what the build says this is: go build -ldflags "-X main.release=v1.2.3".
var release string

// version is the release, or else that of the module as the toolchain stamped it.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

type versionCmd struct{}

// versionDoc is what 'version' prints.
type versionDoc struct {
	Version  string   `json:"version"`
	Go       string   `json:"go"`
	OS       string   `json:"os"`
	Arch     string   `json:"arch"`
	Backends []string `json:"backends"`
	Fuse     fuseDoc  `json:"fuse"`
	Protocol int      `json:"protocol"` // between a command and the owner of a store
	Format   int      `json:"format"`   // of stores
	Envelope string   `json:"envelope"`
}

type fuseDoc struct {
	Driver    string `json:"driver"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"` // why not
}

func (versionCmd) run(a *app) error {
	doc := versionDoc{
		Version: version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Backends: backends.Names(),
		Fuse: fuseDoc{Driver: "cgofuse", Available: true}, Protocol: workspace.Protocol, Format: engine.FormatVersion, Envelope: proxy.Schema,
	}
	if err := cgofusefs.Available(); err != nil {
		doc.Fuse.Available, doc.Fuse.Reason = false, err.Error()
	}
	return a.print(doc, func(w io.Writer) {
		fmt.Fprintf(w, "avfs %s (%s, %s/%s)\n", doc.Version, doc.Go, doc.OS, doc.Arch)
		fmt.Fprintf(w, "back ends: %s; store format %d\n", strings.Join(doc.Backends, ", "), doc.Format)
		if doc.Fuse.Available {
			fmt.Fprintf(w, "mounts: %s\n", doc.Fuse.Driver)
		} else {
			fmt.Fprintf(w, "mounts: %s\n", doc.Fuse.Reason)
		}
	})
}
