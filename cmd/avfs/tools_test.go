package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/backends"
)

// TestTools runs the programs that people work with in mounted vaults, each as its
// script in testdata/tools says, on every back end and with every driver.
func TestTools(t *testing.T) {
	onEveryMount(t, "testdata/tools")
}

// TestBuilds runs package managers and build systems in a mounted vault, with all
// their caches in it. They take long and ask a mount for the same things on every
// back end, so the default alone runs them.
func TestBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, NOT PROVEN: npm, pip, cargo and go in a mount take too long for -short")
	}
	keepRustup(t)
	runScripts(t, "testdata/builds", backends.Names()[0], chosenDriver(t))
}

// onEveryMount runs the scripts in dir once per back end, and once with each other
// driver; with -short once.
func onEveryMount(t *testing.T, dir string) {
	chosen := chosenDriver(t)
	for i, backend := range backends.Names() {
		if i > 0 && testing.Short() {
			break
		}
		t.Run(backend, func(t *testing.T) { runScripts(t, dir, backend, chosen) })
	}
	for _, d := range drivers() {
		if d.name != chosen.name && !testing.Short() {
			t.Run(d.name, func(t *testing.T) {
				if err := d.available(); err != nil {
					t.Skipf("SKIPPED, NOT PROVEN: the scripts with %s: %v", d.name, err)
				}
				runScripts(t, dir, backends.Names()[0], d)
			})
		}
	}
}

// chosenDriver is the driver that the environment chooses, or the default.
func chosenDriver(t *testing.T) driver {
	t.Helper()
	d, err := findDriver(os.Getenv(driverVar))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// keepRustup lets a cargo that rustup manages find its toolchain although a script
// has a home of its own.
func keepRustup(t *testing.T) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil || os.Getenv(rustupVar) != "" {
		return
	}
	if dir := filepath.Join(home, ".rustup"); isDir(dir) {
		t.Setenv(rustupVar, dir)
	}
}

// rustupVar names the variable with rustup's directory.
const rustupVar = "RUSTUP_HOME"

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
