//go:build cgo

// Package cpu is Slotscope's own engine: a GoMLX backend that computes on the host's processors.
//
// A graph is built node by node with GoMLX's shape inference (builder.go, ops_*.go). Compile drops nodes that no output needs,
// folds constants, groups chains of element-wise operations into programs, joins steps that can be computed image by image and plans memory
// (plan.go, fuse.go, cascade.go, memory.go).
// Execute runs the plan step by step, each step on all workers (executable.go). Package kernel has float32 arithmetic,
// package move has data movement; everything else is portable Go for every data type (element.go, convert.go, dot.go, conv.go).
//
// The same graph with the same inputs and the same number of workers gives bit-identical results.
package cpu

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/notimplemented"
	"github.com/pkg/errors"

	"slotscope/model/compute/cpu/kernel"
)

// Name is the name of this backend in GoMLX.
const Name = "cpu"

func init() { backends.Register(Name, New) }

// Backend implements backends.Backend on the host's processors; it is safe for concurrent use.
type Backend struct {
	notimplemented.Backend

	workers   *kernel.Pool
	split     bool // products of float32 may be computed as three products of bfloat16
	finalized atomic.Bool
	profile   atomic.Pointer[Profile] // nil if nothing is measured
	free      sync.Map                // size in bytes -> *sync.Pool of *[]byte, the memory of finalized buffers
}

var _ backends.Backend = (*Backend)(nil)

// New opens the engine. config is empty or the number of workers, optionally followed by a comma and SplitProducts. Engines with the
// same number of workers share one pool.
func New(config string) (backends.Backend, error) {
	number, products, _ := strings.Cut(config, ",")
	n, err := threads(number)
	if err == nil && products != "" && products != SplitProducts {
		err = errors.Errorf("config of the cpu engine: %q after the comma; only %q is allowed", products, SplitProducts)
	}
	if err != nil {
		return nil, err
	}
	return &Backend{workers: kernel.Shared(n), split: products != ""}, nil
}

// Simulate opens an engine with simulated threads, to be measured with Measure: it reports the wall time that would have passed
// if each thread had its own core. Only one goroutine at a time may use it.
func Simulate(threads int) backends.Backend { return &Backend{workers: kernel.Simulated(threads)} }

// Name returns "cpu".
func (b *Backend) Name() string { return Name }

// String returns "cpu".
func (b *Backend) String() string { return Name }

// Description returns the name of the engine with its number of workers.
func (b *Backend) Description() string {
	return fmt.Sprintf("Slotscope's CPU engine, %d workers", b.Threads())
}

// Threads returns the number of workers.
func (b *Backend) Threads() int { return b.workers.Threads() }

// NumDevices returns 1: the host.
func (b *Backend) NumDevices() int { return 1 }

// DeviceDescription describes device 0, the host.
func (b *Backend) DeviceDescription(n backends.DeviceNum) string {
	if n != 0 {
		return fmt.Sprintf("no such device: %d", n)
	}
	return "host, " + b.Description()
}

// Builder starts the graph of a computation.
func (b *Backend) Builder(name string) backends.Builder {
	g := &Builder{backend: b, name: name}
	g.Builder.ErrFn = func(op backends.OpType) error {
		return errors.Wrapf(notimplemented.NotImplementedError, "the cpu engine has no operation %s", op)
	}
	return g
}

// Finalize makes the engine unusable and releases its memory. The workers stay, since other engines may share them.
func (b *Backend) Finalize() {
	b.finalized.Store(true)
	b.free.Clear()
}

// IsFinalized reports whether Finalize was called.
func (b *Backend) IsFinalized() bool { return b.finalized.Load() }

// checkLive returns an error that names the action if the engine was finalized.
func (b *Backend) checkLive(action string) error {
	if b.finalized.Load() {
		return errors.Errorf("cpu engine: %s after Finalize", action)
	}
	return nil
}
