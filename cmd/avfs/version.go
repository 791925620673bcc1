package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/agentvfs/avfs/backends"
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
	driverDoc             // the one that is used unless another is asked for
	Drivers   []driverDoc `json:"drivers"`
}

type driverDoc struct {
	Driver    string `json:"driver"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"` // why not
}

// describe tells whether a driver works here.
func (d driver) describe() driverDoc {
	doc := driverDoc{Driver: d.name, Available: true}
	if err := d.available(); err != nil {
		doc.Available, doc.Reason = false, err.Error()
	}
	return doc
}

func (versionCmd) run(a *app) error {
	chosen, err := findDriver(a.getenv(driverVar))
	if err != nil {
		return err
	}
	fuse := fuseDoc{driverDoc: chosen.describe()}
	for _, d := range drivers() {
		fuse.Drivers = append(fuse.Drivers, d.describe())
	}
	doc := versionDoc{
		Version: version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Backends: backends.Names(),
		Fuse: fuse, Protocol: workspace.Protocol, Format: engine.FormatVersion, Envelope: proxy.Schema,
	}
	return a.print(doc, func(w io.Writer) {
		fmt.Fprintf(w, "avfs %s (%s, %s/%s)\n", doc.Version, doc.Go, doc.OS, doc.Arch)
		fmt.Fprintf(w, "back ends: %s; store format %d\n", strings.Join(doc.Backends, ", "), doc.Format)
		for _, d := range doc.Fuse.Drivers {
			switch {
			case !d.Available:
				fmt.Fprintf(w, "mounts with %s: no, %s\n", d.Driver, d.Reason)
			case d.Driver == doc.Fuse.Driver:
				fmt.Fprintf(w, "mounts with %s: yes, unless told otherwise\n", d.Driver)
			default:
				fmt.Fprintf(w, "mounts with %s: yes\n", d.Driver)
			}
		}
	})
}
