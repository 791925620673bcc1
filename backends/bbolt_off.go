//go:build !avfs_bbolt && (avfs_sqlite || avfs_badger)

package backends

import "github.com/agentvfs/avfs/engine/kv"

// bboltDrivers returns nothing: the tags of this build leave bbolt out.
func bboltDrivers() []kv.Driver { return nil }
