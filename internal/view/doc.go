// Package view is what every mount binding has in common: the life of a view from
// the mount to its end, and the gate through which operations reach the vault. A
// binding adds the FUSE library's half, and says what it is as a Driver.
package view
