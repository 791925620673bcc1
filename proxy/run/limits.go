package run

// Limits bound what a command with all its descendants may use. Zero is no limit.
type Limits struct {
	MemoryBytes int64
	FileBytes   int64 // of one file that is written
	Processes   int   // threads count as well
	CPUs        float64
}

// The names of limits in Result.LimitsHit.
const (
	LimitMemory    = "memory"
	LimitFileSize  = "file_size"
	LimitProcesses = "processes"
	LimitCPU       = "cpu"
)
