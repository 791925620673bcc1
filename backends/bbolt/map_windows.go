package bbolt

// reserveMap returns 0: on Windows bbolt makes the file as large as its map.
func reserveMap() int { return 0 }
