package kernel

/*
#cgo noescape thread_time
#cgo nocallback thread_time
#include "product.h"
*/
import "C"

import (
	"runtime"
	"sync/atomic"
)

// Meter adds up what the threads of a pool do while it is attached. Times are in nanoseconds.
type Meter struct {
	Helped atomic.Int64 // processor time of the workers in work that they helped with
	Waited atomic.Int64 // processor time of any thread that waits for others to end
	Packed atomic.Int64 // time in packing operands of products, of all threads
	FLOPs  atomic.Int64 // additions and multiplications of products
}

// Measure attaches a meter to the pool, or none. One at a time counts; a pool that is measured computes a little slower.
func (p *Pool) Measure(m *Meter) { p.meter.Store(m) }

// ThreadTime is the processor time of the calling thread in nanoseconds; a goroutine that takes differences is locked to it.
func ThreadTime() int64 { return int64(C.thread_time()) }

// measured runs f on a locked thread and returns its processor time.
func measured(f func()) int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := ThreadTime()
	f()
	return ThreadTime() - began
}
