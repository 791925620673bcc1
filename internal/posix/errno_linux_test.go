package posix

import (
	"syscall"
	"testing"
)

func TestEveryCodeHasANumber(t *testing.T) {
	for _, c := range Codes() {
		if _, ok := numbers[c]; !ok {
			t.Errorf("%s has no number", c)
		}
	}
	if got := Code("").Errno(); got != 0 {
		t.Errorf("no error is %v", got)
	}
	if got := Code("EUNKNOWN").Errno(); got != syscall.EIO {
		t.Errorf("an unknown code is %v, want EIO", got)
	}
}
