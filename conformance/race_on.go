//go:build race

package conformance

// raceDetector says whether the race detector is in this build. It takes several
// times the memory.
const raceDetector = true
