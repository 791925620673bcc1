package engine

import (
	"context"
	"os"
	"strings"

	"github.com/agentvfs/avfs/engine/kv"
)

// isDeviceName reports whether Windows would open a device by that name.
func isDeviceName(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	if len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) {
		return stem[3] >= '0' && stem[3] <= '9'
	}
	return false
}

// currentOwner is the user and group of this process, 0 where there are none.
func currentOwner() (uid, gid uint32) {
	return uint32(max(os.Getuid(), 0)), uint32(max(os.Getgid(), 0))
}

// VaultNames lists the vaults of a database in the order in which they were made,
// without opening it as a store.
func VaultNames(ctx context.Context, db kv.Store) ([]string, error) {
	var names []string
	err := db.View(ctx, func(tx kv.Reader) error {
		names = nil
		return tx.Scan(tableVaults, nil, nil, func(k, value []byte) error {
			var rec vaultRecord
			err := parseJSON(tableVaults, k, value, &rec)
			names = append(names, rec.Name)
			return err
		})
	})
	return names, wrap(err, "list", "vaults")
}
