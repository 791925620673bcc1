package transfer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentvfs/avfs/engine"
)

// Report says what a transfer did. Counts are of entries of the result.
type Report struct {
	Files     int64 `json:"files"`      // names of regular files, hard links included
	Dirs      int64 `json:"dirs"`       // directories, the top one included
	Symlinks  int64 `json:"symlinks"`   // symbolic links
	Others    int64 `json:"others"`     // FIFOs and device nodes
	HardLinks int64 `json:"hard_links"` // names that share an inode with one counted before
	Bytes     int64 `json:"bytes"`      // sizes of the regular files, hard links counted once

	// Unchanged counts files that an update left as they are; their bytes do not
	// count.
	Unchanged int64 `json:"unchanged,omitempty"`

	// Skipped lists what was left out, in path order; at most MaxSkips of them.
	Skipped      []Skip `json:"skipped,omitempty"`
	SkippedTotal int64  `json:"skipped_total"`
	// DroppedXattrs counts, by name, the extended attributes that were not
	// kept: those outside "user.", and all where the target has none.
	DroppedXattrs map[string]int64 `json:"dropped_xattrs,omitempty"`
}

// MaxSkips is how many skipped entries a report lists.
const MaxSkips = 1000

// Skip is an entry, or one aspect of it, that was left out.
type Skip struct {
	Path    string      `json:"path"`               // relative to the source; "." is the source itself
	PathB64 string      `json:"path_b64,omitempty"` // the exact path where it is not UTF-8
	Kind    engine.Kind `json:"error"`
	Message string      `json:"message"`
	// Note marks what is no failure: a socket.
	Note bool `json:"note,omitempty"`
}

func newSkip(rel string, kind engine.Kind, message string, note bool) Skip {
	s := Skip{Path: rel, Kind: kind, Message: message, Note: note}
	if rel == "" {
		s.Path = "."
	}
	if !utf8.ValidString(rel) {
		s.PathB64 = base64.StdEncoding.EncodeToString([]byte(rel))
		s.Path = strings.ToValidUTF8(rel, "\uFFFD")
	}
	return s
}

// PartialError says that a transfer went to its end and had to leave entries out.
// It unwraps to the first failure, an *engine.Error.
type PartialError struct {
	Op     string // "import" or "export"
	Failed int64  // entries that failed; notes do not count
	First  *engine.Error
}

// Error is a sentence for people.
func (e *PartialError) Error() string {
	if e.Failed == 1 {
		return fmt.Sprintf("%s: 1 entry was left out: %v", e.Op, e.First)
	}
	return fmt.Sprintf("%s: %d entries were left out; the first: %v", e.Op, e.Failed, e.First)
}

// Unwrap gives the first failure.
func (e *PartialError) Unwrap() error { return e.First }

// sortSkips puts the list into path order.
func sortSkips(s []Skip) {
	slices.SortStableFunc(s, func(a, b Skip) int { return strings.Compare(a.Path, b.Path) })
}

// failure gives a cause the form of an engine error. One that is already of that
// form keeps its kind and cause and gets the path of the entry.
func failure(op, rel string, err error) *engine.Error {
	if rel == "" {
		rel = "."
	}
	var e *engine.Error
	if errors.As(err, &e) {
		return &engine.Error{Kind: e.Kind, Op: op, Path: rel, Err: e.Err, Details: e.Details}
	}
	return &engine.Error{Kind: kindOf(err), Op: op, Path: rel, Err: bareCause(err)}
}
