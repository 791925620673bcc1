package badger

import "os"

// canReadOnly says that Badger cannot open a store without writing to it.
const canReadOnly = false

// diskUse returns the disk space of the file at path.
func diskUse(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
