package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/internal/mountpoint"
	"github.com/agentvfs/avfs/internal/storefile"
	"github.com/agentvfs/avfs/workspace"
)

type doctorCmd struct{}

// How a check ends.
const (
	healthOK   = "ok"
	healthWarn = "warning" // avfs works, though not as well as it could
	healthBad  = "failure" // something essential does not work
)

// checked is one thing that was looked at.
type checked struct {
	Name    string `json:"name"`
	Status  string `json:"status"` // ok, warning or failure
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"` // what to do about it
}

// doctorDoc is what 'doctor' prints.
type doctorDoc struct {
	OK      bool      `json:"ok"` // nothing essential is missing
	Version string    `json:"version"`
	OS      string    `json:"os"`
	Arch    string    `json:"arch"`
	Checks  []checked `json:"checks"`
}

func (doctorCmd) run(a *app) error {
	doc := doctorDoc{OK: true, Version: version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	doc.Checks = append(doc.Checks, checkBackends())
	mounts := checkMounts() // before the sockets: it frees killed processes that cannot end
	doc.Checks = append(doc.Checks, a.checkHome()...)
	doc.Checks = append(doc.Checks, a.checkDrivers())
	doc.Checks = append(doc.Checks, checkSystem()...)
	doc.Checks = append(doc.Checks, mounts)
	for _, c := range doc.Checks {
		doc.OK = doc.OK && c.Status != healthBad
	}
	err := a.print(doc, func(w io.Writer) { describeHealth(w, doc) })
	if err == nil && !doc.OK {
		err = &ended{exitFailure}
	}
	return err
}

func describeHealth(w io.Writer, doc doctorDoc) {
	fmt.Fprintf(w, "avfs %s, %s/%s\n", doc.Version, doc.OS, doc.Arch)
	rows := make([][]string, 0, len(doc.Checks))
	for _, c := range doc.Checks {
		rows = append(rows, []string{c.Status, c.Name, c.Message})
		if c.Fix != "" {
			rows = append(rows, []string{"", "", "-> " + c.Fix})
		}
	}
	table(w, rows)
}

// healthy is the result of a check that found nothing wrong.
func healthy(name, format string, args ...any) checked {
	return checked{Name: name, Status: healthOK, Message: fmt.Sprintf(format, args...)}
}

func unhealthy(name, status, fix, format string, args ...any) checked {
	return checked{Name: name, Status: status, Message: fmt.Sprintf(format, args...), Fix: fix}
}

func checkBackends() checked {
	names := backends.Names()
	if len(names) == 0 {
		return unhealthy("back ends", healthBad, "build avfs without back end tags", "none is in this build")
	}
	return healthy("back ends", "%s", strings.Join(names, ", "))
}

// Where the disk of the workspace is nearly full.
const (
	scarceBytes = 1 << 30
	fullBytes   = 32 << 20
)

// checkHome looks at the workspace: its directory, its disk and its sockets.
func (a *app) checkHome() []checked {
	w, err := a.workspace()
	if err != nil {
		return []checked{unhealthy("workspace", healthBad, "make the directory writable, or choose another with AVFS_HOME", "%v", err)}
	}
	dir := filepath.Dir(w.PolicyFile())
	list := []checked{checkWritable(dir)}
	switch free, err := storefile.FreeSpace(dir); {
	case err != nil:
		list = append(list, unhealthy("disk", healthWarn, "", "%v", err))
	case free < fullBytes:
		list = append(list, unhealthy("disk", healthBad, "make room, or drop history with: avfs prune --keep-last 0, then: avfs gc", "%s free on the disk of %s", size(free), dir))
	case free < scarceBytes:
		list = append(list, unhealthy("disk", healthWarn, "avfs stats tells what fills a store", "%s free on the disk of %s", size(free), dir))
	default:
		list = append(list, healthy("disk", "%s free on the disk of %s", size(free), dir))
	}
	return append(list, a.checkSockets(w))
}

func checkWritable(dir string) checked {
	const fix = "make the directory writable, or choose another with AVFS_HOME"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unhealthy("workspace", healthBad, fix, "%v", err)
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return unhealthy("workspace", healthBad, fix, "%v", err)
	}
	_ = f.Close() // empty
	if err := os.Remove(f.Name()); err != nil {
		return unhealthy("workspace", healthBad, fix, "%v", err)
	}
	return healthy("workspace", "%s is writable", dir)
}

func (a *app) checkSockets(w *workspace.Workspace) checked {
	stale, err := w.StaleSockets(a.ctx)
	switch {
	case err != nil:
		return unhealthy("sockets", healthWarn, "", "%v", err)
	case len(stale) > 0:
		return unhealthy("sockets", healthWarn, "nothing needs to be done: the next owner of the store replaces them", "left by owners that were killed: %s", strings.Join(stale, ", "))
	}
	return healthy("sockets", "none was left behind")
}

func (a *app) checkDrivers() checked {
	chosen, err := findDriver(a.getenv(driverVar))
	if err != nil {
		return unhealthy("driver", healthBad, "unset "+driverVar, "%v", err)
	}
	var works []string
	for _, d := range drivers() {
		if d.available() == nil {
			works = append(works, d.name)
		}
	}
	reason := chosen.available()
	switch {
	case reason == nil:
		return healthy("driver", "vaults are mounted with %s; there are %s", chosen.name, strings.Join(works, " and "))
	case len(works) > 0:
		return unhealthy("driver", healthBad, "choose another with "+driverVar+"="+works[0], "%v", reason)
	}
	return unhealthy("driver", healthBad, "see the failures below; without mounts all but exec and mount works", "%v", reason)
}

func checkMounts() checked {
	dead, err := mountpoint.Dead()
	switch {
	case err != nil:
		return unhealthy("mounts", healthWarn, "", "%v", err)
	case len(dead) > 0:
		return unhealthy("mounts", healthWarn, "end each of them with: avfs unmount PLACE", "left by processes that were killed: %s", strings.Join(dead, ", "))
	}
	return healthy("mounts", "none was left behind")
}
