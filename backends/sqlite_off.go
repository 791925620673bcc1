//go:build !avfs_sqlite && (avfs_bbolt || avfs_badger)

package backends

import "github.com/agentvfs/avfs/engine/kv"

// sqliteDrivers returns nothing: the tags of this build leave SQLite out.
func sqliteDrivers() []kv.Driver { return nil }
