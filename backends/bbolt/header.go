package bbolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/agentvfs/avfs/engine/kv"
)

const (
	// markerPrefix and the format version name the marker bucket. A change that
	// an older build could not read raises the version.
	markerPrefix  = "\x00avfs format "
	formatVersion = 1
	marker        = markerPrefix + "1"

	// What the file format of bbolt fixes, in bytes. Numbers are in the order of
	// the machine, which is little-endian wherever this builds.
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	pageHeaderSize = 16 // id, flags, count, overflow
	metaSize       = 64
	elementSize    = 16 // of a branch and of a leaf page
	branchFlag     = 0x01
	leafFlag       = 0x02

	maxPageSize = 1 << 16
	maxDepth    = 8 // of the tree of buckets, which has a few dozen leaves at most
)

// meta is what one of the two pages that describe a file says.
type meta struct {
	pageSize int64
	root     int64 // page of the list of buckets
	pages    int64 // number of pages that the file has had
	txid     uint64
}

// checkFile reports whether the file at path is a store that this build can open:
// nil, or an error that wraps kv.ErrNotStore, kv.ErrVersion or kv.ErrCorrupt. It
// looks at the file alone, so it may run while another process writes it.
func checkFile(path string) error {
	// Opening a pipe would wait for its other end, so look first.
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file: %w", path, kv.ErrNotStore)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for range 3 {
		var m meta
		if m, err = readMeta(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err = checkMarker(f, m); err == nil || !moved(f, m) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// moved reports whether a writer has committed since m was read, so that the page of
// the root may hold something else by now.
func moved(f *os.File, m meta) bool {
	now, err := readMeta(f)
	return err == nil && now.txid != m.txid
}

// readMeta returns the newer of the two descriptions that is valid.
func readMeta(f *os.File) (meta, error) {
	first, err := readMetaAt(f, 0)
	if err != nil && !errors.Is(err, kv.ErrCorrupt) {
		return meta{}, err
	}
	at := int64(pageSize)
	if err == nil {
		at = first.pageSize
	}
	second, err2 := readMetaAt(f, at)
	switch {
	case err == nil && (err2 != nil || first.txid > second.txid):
		second = first
	case err2 != nil:
		return meta{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return meta{}, err
	}
	if info.Size() < second.pages*second.pageSize {
		// Reading the missing part through the map would be a bus error.
		return meta{}, fmt.Errorf("the file is cut short at %d of %d bytes: %w",
			info.Size(), second.pages*second.pageSize, kv.ErrCorrupt)
	}
	return second, nil
}

// readMetaAt reads the description at offset at.
func readMetaAt(f *os.File, at int64) (meta, error) {
	var page [pageHeaderSize + metaSize]byte
	if err := readFull(f, page[:], at); err != nil {
		return meta{}, err
	}
	b, n := page[pageHeaderSize:], binary.NativeEndian
	if n.Uint32(b) != boltMagic || n.Uint32(b[4:]) != boltVersion {
		return meta{}, kv.ErrNotStore
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8]) // a hash never fails
	m := meta{
		pageSize: int64(n.Uint32(b[8:])),
		root:     int64(n.Uint64(b[16:])),
		pages:    int64(n.Uint64(b[40:])),
		txid:     n.Uint64(b[48:]),
	}
	if sum.Sum64() != n.Uint64(b[56:]) || m.pageSize < 1024 || m.pageSize > maxPageSize || m.root < 0 || m.pages < 0 || m.pages > 1<<40 {
		return meta{}, fmt.Errorf("the page at %d does not match its checksum: %w", at, kv.ErrCorrupt)
	}
	return m, nil
}

// checkMarker looks for the marker bucket, which is the first of all buckets.
func checkMarker(f *os.File, m meta) error {
	page := make([]byte, m.pageSize)
	n := binary.NativeEndian
	for id, depth := m.root, 0; depth < maxDepth; depth++ {
		if id <= 1 || id >= m.pages {
			return kv.ErrNotStore
		}
		if err := readFull(f, page, id*m.pageSize); err != nil {
			return err
		}
		flags, count := n.Uint16(page[8:]), n.Uint16(page[10:])
		if count == 0 {
			return kv.ErrNotStore
		}
		first := page[pageHeaderSize:]
		switch flags {
		case branchFlag:
			id = int64(n.Uint64(first[8:]))
		case leafFlag:
			return checkName(first, n.Uint32(first[4:]), n.Uint32(first[8:]))
		default:
			return kv.ErrNotStore
		}
	}
	return kv.ErrNotStore
}

// checkName checks the name of size bytes at pos.
func checkName(b []byte, pos, size uint32) error {
	if uint64(pos)+uint64(size) > uint64(len(b)) {
		return kv.ErrNotStore
	}
	version, ours := strings.CutPrefix(string(b[pos:pos+size]), markerPrefix)
	have, err := strconv.ParseUint(version, 10, 32)
	if !ours || err != nil {
		return kv.ErrNotStore
	}
	if have > formatVersion {
		return fmt.Errorf("%w: format %d, this build knows up to %d", kv.ErrVersion, have, formatVersion)
	}
	return nil
}

// readFull fills b from offset at; what is too short is no store.
func readFull(f *os.File, b []byte, at int64) error {
	_, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("too short: %w", kv.ErrNotStore)
	}
	if err != nil {
		return &fs.PathError{Op: "read", Path: f.Name(), Err: err}
	}
	return nil
}
