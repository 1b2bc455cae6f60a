//go:build cgo && race

package kernel

// raceDetector reports whether the race detector is on, under which sync.Pool drops items on purpose.
const raceDetector = true
