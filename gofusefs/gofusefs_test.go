//go:build linux

package gofusefs

import (
	"fmt"
	"os"
	"testing"

	"github.com/agentvfs/avfs/internal/view/viewtest"
)

var binding = &viewtest.Binding{Mount: Mount, Available: Available, UnknownOption: []string{"no_such_option=1"}}

func TestMain(m *testing.M) {
	if p := os.Getenv(envStall); p != "" {
		if err := serveStalled(p); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	viewtest.Main(m, binding)
}

func TestConformance(t *testing.T) { viewtest.Conformance(t, binding, nil) }

func TestLife(t *testing.T) { viewtest.Life(t, binding) }
