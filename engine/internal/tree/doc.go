// Package tree is an immutable copy-on-write B+tree over numbered nodes. It is a
// pure data structure: a Source reads nodes, a Sink takes new ones, and a node
// never changes once it has an id.
package tree
