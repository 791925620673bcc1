//go:build !avfs_badger && (avfs_sqlite || avfs_bbolt)

package backends

import "github.com/agentvfs/avfs/engine/kv"

// badgerDrivers returns nothing: the tags of this build leave Badger out.
func badgerDrivers() []kv.Driver { return nil }
