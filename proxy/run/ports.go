package run

// Port is a TCP port that a process listens at.
type Port struct {
	Port    int    `json:"port"`
	Address string `json:"address"` // 0.0.0.0 and :: are every address
	PID     int    `json:"pid"`     // of one of the processes that have the socket
}
