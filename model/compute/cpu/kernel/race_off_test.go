//go:build cgo && !race

package kernel

const raceDetector = false
