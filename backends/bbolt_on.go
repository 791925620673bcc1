//go:build avfs_bbolt || !(avfs_sqlite || avfs_bbolt || avfs_badger)

package backends

import (
	"github.com/agentvfs/avfs/backends/bbolt"
	"github.com/agentvfs/avfs/engine/kv"
)

// bboltDrivers returns the bbolt back end.
func bboltDrivers() []kv.Driver { return []kv.Driver{bbolt.Driver{}} }
