package proxy_test

import (
	"io"
	"os"
	"testing"

	"github.com/agentvfs/avfs/gofusefs"
)

// TestAgentLoop runs the example, which needs a mount, and so cannot run wherever
// examples do.
func TestAgentLoop(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: the example of the agent loop: %v", err)
	}
	if err := gofusefs.Available(); err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: the example of the agent loop: %v", err)
	}
	t.Setenv("AVFS_VAULT", "")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stdout := os.Stdout
	os.Stdout = in
	Example_agentLoop() // prints less than a pipe holds
	os.Stdout = stdout
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	const want = `echo hello > greeting: completed, 1 changed
echo half > half-done; false: completed, 1 changed
rm -rf /: denied, 0 changed
   recursive delete of a root, a home or a parent
added greeting
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
