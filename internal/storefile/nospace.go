package storefile

import "errors"

// isAny reports whether err is one of targets.
func isAny[E error](err error, targets ...E) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
