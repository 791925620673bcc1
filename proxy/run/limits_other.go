//go:build !linux

package run

// capGroup notes that this system has no limits.
func (k *kin) capGroup(l Limits) {
	if l != (Limits{}) {
		k.limit("resource limits are not applied on this system")
	}
}

func (k *kin) breaches() []string { return nil }

func (t *task) memoryFailed() bool { return false }
