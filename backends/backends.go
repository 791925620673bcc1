// Package backends lists the back ends of this build.
//
// Each has a file of its own with a build constraint: without a tag all are built
// in, with positive tags such as avfs_sqlite only the named ones. To add one, copy
// sqlite_on.go and sqlite_off.go, extend the constraints of all files, and add its
// name to All and known.
package backends

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine/kv"
)

// known names every back end, built in or not, in the order of preference.
var known = [...]string{"sqlite", "bbolt", "badger"}

// All returns the back ends of this build in the order of preference.
func All() []kv.Driver {
	return slices.Concat(sqliteDrivers(), bboltDrivers(), badgerDrivers())
}

// Names returns the names of the back ends of this build.
func Names() []string {
	var names []string
	for _, d := range All() {
		names = append(names, d.Name())
	}
	return names
}

// ByName returns the back end called name, or an *UnknownError.
func ByName(name string) (kv.Driver, error) {
	for _, d := range All() {
		if d.Name() == name {
			return d, nil
		}
	}
	e := &UnknownError{Name: name, Have: Names()}
	if slices.Contains(known[:], name) {
		e.Tag = "avfs_" + name
	}
	return nil, e
}

// Detect returns the back end that recognises the store at path, fs.ErrNotExist
// where there is nothing, or kv.ErrNotStore.
func Detect(path string) (kv.Driver, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	for _, d := range All() {
		if d.Recognise(path) {
			return d, nil
		}
	}
	return nil, fmt.Errorf("%s: %w of a kind in this build (%s)", path, kv.ErrNotStore, strings.Join(Names(), ", "))
}

// UnknownError says that this build has no back end called Name.
type UnknownError struct {
	Name string
	Tag  string   // the build tag that would bring it in; empty: there is no such back end
	Have []string // the back ends of this build
}

// Error says what to do about it.
func (e *UnknownError) Error() string {
	have := strings.Join(e.Have, ", ")
	if e.Tag == "" {
		return fmt.Sprintf("unknown back end %q (this build has: %s)", e.Name, have)
	}
	return fmt.Sprintf("back end %q is not in this build (it has: %s); build with -tags %s", e.Name, have, e.Tag)
}
