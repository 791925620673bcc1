// Package tree is an immutable copy-on-write B+tree over numbered nodes.
package tree
