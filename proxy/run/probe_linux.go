package run

// CanGroup reports whether a command can get a cgroup of its own, and if not, why.
// Without one its processes are found by other means.
func CanGroup() error {
	g, err := newCgroup()
	if err != nil {
		return err
	}
	return g.remove()
}
