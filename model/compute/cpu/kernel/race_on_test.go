//go:build cgo && race

package kernel

// raceDetector says that the race detector is on, under which sync.Pool forgets things on purpose.
const raceDetector = true
