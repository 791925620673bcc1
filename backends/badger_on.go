//go:build avfs_badger || !(avfs_sqlite || avfs_bbolt || avfs_badger)

package backends

import (
	"github.com/agentvfs/avfs/backends/badger"
	"github.com/agentvfs/avfs/engine/kv"
)

// badgerDrivers returns the Badger back end.
func badgerDrivers() []kv.Driver { return []kv.Driver{badger.Driver{}} }
