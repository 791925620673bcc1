package mountpoint

// Dead lists the mounts of vaults whose server is gone. It waits for one that does not
// answer, at most five seconds each.
func Dead() ([]string, error) {
	entries, err := table()
	if err != nil {
		return nil, err
	}
	dead := []string{}
	for _, e := range entries {
		if e.fsType == FSType && isDead(e) {
			dead = append(dead, e.point)
		}
	}
	return dead, nil
}
