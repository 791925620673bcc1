//go:build !linux

package storetest

import "testing"

// Disk is a small file system in memory, which is made on Linux only.
type Disk struct{ Dir string }

// SmallDisk skips the test.
func SmallDisk(t *testing.T, _ int) *Disk {
	t.Helper()
	t.Skip("SKIP, THE FULL DISK IS NOT TESTED: a small disk is made on Linux only")
	return nil
}

// Path is that of a store on the disk.
func (d *Disk) Path() string { return "" }

// Free is how many bytes are free.
func (d *Disk) Free() int64 { return 0 }

// TakeAllBut fills the disk until leave bytes are free.
func (d *Disk) TakeAllBut(int64) (freeUp func()) { return func() {} }
