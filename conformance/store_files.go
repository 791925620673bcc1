package conformance

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// files describes every file under dir by name and content, so that two
// descriptions are equal when no byte has changed.
func (s *storeSuite) files(t *testing.T, dir string) string {
	t.Helper()
	text := ""
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		text += fmt.Sprintf("%s: %d bytes %x; ", d.Name(), len(content), sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
