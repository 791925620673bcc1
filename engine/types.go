package engine

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentvfs/avfs/engine/internal/tree"
)

// Ino is an inode number: unique in a store, stable for the life of the file, in
// every fork and checkpoint, and never used again. The upper 24 bits name the
// vault that made the file, the lower 40 count.
type Ino uint64

// RootIno is the inode number of every vault's top directory.
const RootIno Ino = 1

// Sizes in bytes and other fixed limits.
const (
	ChunkSize    = 128 << 10 // content of one chunk, except the last of a file
	MaxName      = 255
	MaxTarget    = 4095
	MaxXattr     = 64 << 10
	MaxXattrName = 255
	MaxLinks     = 65000
	MaxFileSize  = 1<<47 - 1
)

// File types and permission bits, with the values of Linux's st_mode.
const (
	TypeMask    uint32 = 0o170000
	TypeSocket  uint32 = 0o140000
	TypeSymlink uint32 = 0o120000
	TypeRegular uint32 = 0o100000
	TypeBlock   uint32 = 0o060000
	TypeDir     uint32 = 0o040000
	TypeChar    uint32 = 0o020000
	TypeFIFO    uint32 = 0o010000
	ModeSetUID  uint32 = 0o4000
	ModeSetGID  uint32 = 0o2000
	ModeSticky  uint32 = 0o1000
)

// Attr is what stat tells of an inode. Times are nanoseconds since 1970, UTC.
type Attr struct {
	Ino    Ino
	Mode   uint32 // type and permission bits
	UID    uint32
	GID    uint32
	Nlink  uint32
	Rdev   uint32
	Size   int64
	Blocks int64 // allocated space in units of 512 bytes; holes do not count
	// Content is what a quota counts: the bytes of a file's content without its
	// holes.
	Content int64
	Atime   int64
	Mtime   int64
	Ctime   int64
	Btime   int64
}

// IsDir reports whether the inode is a directory.
func (a Attr) IsDir() bool { return a.Mode&TypeMask == TypeDir }

// IsRegular reports whether the inode is a regular file.
func (a Attr) IsRegular() bool { return a.Mode&TypeMask == TypeRegular }

// IsSymlink reports whether the inode is a symbolic link.
func (a Attr) IsSymlink() bool { return a.Mode&TypeMask == TypeSymlink }

// SetAttr lists the attributes to change; nil leaves one as it is. Any change
// moves the ctime.
type SetAttr struct {
	Mode  *uint32 // permission bits; type bits are ignored
	UID   *uint32
	GID   *uint32
	Size  *int64
	Atime *int64
	Mtime *int64
}

// Owner is the user and group that a new inode belongs to.
type Owner struct{ UID, GID uint32 }

// DirEntry is one name in a directory. Names are bytes, not necessarily UTF-8.
type DirEntry struct {
	Name string
	Ino  Ino
	Type uint32 // TypeMask bits of the mode
}

// StatFS is what statfs tells of a vault.
type StatFS struct {
	BlockSize  int64 // bytes
	Blocks     int64
	BlocksFree int64
	Files      int64
	FilesFree  int64
	NameMax    int64 // bytes
}

// RenameFlags are those of Linux's renameat2.
type RenameFlags uint32

// The rename flags that the engine knows.
const (
	RenameNoReplace RenameFlags = 1
	RenameExchange  RenameFlags = 2
)

// XattrFlags are those of setxattr.
type XattrFlags uint32

// The flags of SetXattr.
const (
	XattrCreate  XattrFlags = 1
	XattrReplace XattrFlags = 2
)

// OpenMode says what a handle may do.
type OpenMode uint32

// The modes that Open combines.
const (
	OpenRead     OpenMode = 1
	OpenWrite    OpenMode = 2
	OpenAppend   OpenMode = 4 // every write goes to the end of the file
	OpenTruncate OpenMode = 8
)

// Root names one whole, immutable state of a file system by the top node of its
// tree and the digest over everything below it.
type Root struct{ ref tree.Ref }

// IsZero reports whether r names no state at all.
func (r Root) IsZero() bool { return r.ref.IsZero() }

// Same reports whether a and b are equal states.
func (r Root) Same(b Root) bool { return r.ref.Digest == b.ref.Digest }

// String is the digest in hexadecimal.
func (r Root) String() string {
	if r.IsZero() {
		return ""
	}
	return hex.EncodeToString(r.ref.Digest[:])
}

// MarshalJSON writes the root as "digest:node".
func (r Root) MarshalJSON() ([]byte, error) {
	if r.IsZero() {
		return []byte(`""`), nil
	}
	return json.Marshal(fmt.Sprintf("%s:%x", r.String(), r.ref.ID))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Root) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s == "" {
		*r = Root{}
		return nil
	}
	digest, id, ok := strings.Cut(s, ":")
	raw, err := hex.DecodeString(digest)
	if !ok || err != nil || len(raw) != len(r.ref.Digest) {
		return fmt.Errorf("%q is not a root", s)
	}
	copy(r.ref.Digest[:], raw)
	if _, err := fmt.Sscanf(id, "%x", &r.ref.ID); err != nil {
		return fmt.Errorf("%q is not a root: %w", s, err)
	}
	return nil
}

// VaultInfo describes a vault. Sizes are in bytes.
type VaultInfo struct {
	ID          uint64    `json:"id"`
	Name        string    `json:"name"`
	Parent      string    `json:"parent,omitempty"`
	ParentGone  bool      `json:"parent_deleted,omitempty"` // whatever has its name now is another vault
	Ancestors   []string  `json:"ancestors,omitempty"`      // those that it is a fork of, the parent first, deleted ones too
	CreatedAt   time.Time `json:"created_at"`
	Root        Root      `json:"root"`
	Files       int64     `json:"files"` // inodes of every type but the top directory
	Bytes       int64     `json:"bytes"` // allocated file content; holes do not count
	Checkpoints int       `json:"checkpoints"`
}

// Path is a path in JSON: bytes, which JSON text cannot always carry. One that is not
// UTF-8 is written as {"b64": ...}.
type Path string

type exactPath struct {
	Bytes []byte `json:"b64"`
}

// MarshalJSON writes a string, or an object with the bytes in base64.
func (p Path) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(p)) {
		return json.Marshal(string(p))
	}
	return json.Marshal(exactPath{[]byte(p)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Path) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var e exactPath
		err := json.Unmarshal(b, &e)
		*p = Path(e.Bytes)
		return err
	}
	return json.Unmarshal(b, (*string)(p))
}
