package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
)

// vitalsVar names the variable with the directory in which an owner that the tests
// started tells of itself.
const vitalsVar = "AVFS_TEST_VITALS"

// vitals is what only a process itself knows of how it is.
type vitals struct {
	Goroutines int
	HeapBytes  uint64 // in use after a collection
}

// tested is main in the tests: an owner answers each connection to a socket, named
// after its process, with its vitals.
func tested() {
	if dir := os.Getenv(vitalsVar); dir != "" {
		if _, ok := ownerArgs(os.Args[1:]); ok {
			if l, err := net.Listen("unix", vitalsSocket(dir, os.Getpid())); err == nil {
				go tellVitals(l)
			}
		}
	}
	os.Exit(checkedCode())
}

func vitalsSocket(dir string, pid int) string { return filepath.Join(dir, strconv.Itoa(pid)) }

func tellVitals(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		runtime.GC() // the first moves what sync.Pool holds aside, the second frees it
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		_ = json.NewEncoder(c).Encode(vitals{runtime.NumGoroutine(), m.HeapAlloc}) // who asked sees that it ended early
		_ = c.Close()
	}
}

// askVitals gets the vitals of an owner.
func askVitals(dir string, pid int) (v vitals, err error) {
	c, err := net.Dial("unix", vitalsSocket(dir, pid))
	if err != nil {
		return v, err
	}
	defer c.Close()
	return v, json.NewDecoder(c).Decode(&v)
}
