// Package deptest holds the import rules of the repository, as a test: which package
// may know which. The rules keep the file system free of any one database, the policy
// free of side effects, and the suites usable by third parties.
package deptest
