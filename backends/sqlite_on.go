//go:build avfs_sqlite || !(avfs_sqlite || avfs_bbolt || avfs_badger)

package backends

import (
	"github.com/agentvfs/avfs/backends/sqlite"
	"github.com/agentvfs/avfs/engine/kv"
)

// sqliteDrivers returns the SQLite back end.
func sqliteDrivers() []kv.Driver { return []kv.Driver{sqlite.Driver{}} }
