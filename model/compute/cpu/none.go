//go:build !cgo

package cpu

import (
	"runtime"

	"github.com/gomlx/gomlx/backends"
)

// New returns ErrNotBuilt.
func New(string) (backends.Backend, error) { return nil, ErrNotBuilt }

// Simulate returns nothing.
func Simulate(int) backends.Backend { return nil }

// BF16 says nothing where no engine computes.
func BF16() string { return "" }

// BF16x3 says nothing where no engine computes.
func BF16x3() (why string, used bool) { return "", false }

// Cores is how many cores the process may use.
func Cores() int { return runtime.GOMAXPROCS(0) }

// SpareProcessors does nothing where no engine computes.
func SpareProcessors() {}

// Measure measures nothing.
func Measure(backends.Backend) (stop func() Report, ok bool) { return nil, false }
