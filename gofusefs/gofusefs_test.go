//go:build linux

package gofusefs

import (
	"testing"

	"github.com/agentvfs/avfs/internal/view/viewtest"
)

var binding = &viewtest.Binding{Mount: Mount, Available: Available, UnknownOption: []string{"no_such_option=1"}}

func TestMain(m *testing.M) { viewtest.Main(m, binding) }

func TestConformance(t *testing.T) { viewtest.Conformance(t, binding, nil) }

func TestLife(t *testing.T) { viewtest.Life(t, binding) }
