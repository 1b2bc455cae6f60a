//go:build !cgo

package cpu

import (
	"runtime"

	"github.com/gomlx/gomlx/backends"
)

// New returns ErrNotBuilt.
func New(string) (backends.Backend, error) { return nil, ErrNotBuilt }

// Simulate returns nil.
func Simulate(int) backends.Backend { return nil }

// BF16 returns an empty string: there is no engine.
func BF16() string { return "" }

// BF16x3 returns an empty string and false: there is no engine.
func BF16x3() (why string, used bool) { return "", false }

// Cores returns the number of cores that the process may use.
func Cores() int { return runtime.GOMAXPROCS(0) }

// SpareProcessors does nothing: there is no engine.
func SpareProcessors() {}

// Measure returns false: there is no engine.
func Measure(backends.Backend) (stop func() Report, ok bool) { return nil, false }
