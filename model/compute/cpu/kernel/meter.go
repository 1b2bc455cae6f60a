package kernel

/*
#cgo noescape thread_time
#cgo nocallback thread_time
#include "product.h"
*/
import "C"

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Meter sums up the activity of a pool's threads while it is attached. Times are in nanoseconds of wall time, whose clock is read in a
// twentieth of the time of a thread's processor time.
type Meter struct {
	Helped atomic.Int64 // time of workers from when they joined a call to the end of their last range
	Waited atomic.Int64 // time in which callers waited for workers to finish
	Packed atomic.Int64 // time spent packing operands of products, on all threads
	FLOPs  atomic.Int64 // additions and multiplications of products
}

// Measure attaches a meter to the pool, or detaches it if m is nil. Only one meter counts at a time; a measured pool is slightly slower.
func (p *Pool) Measure(m *Meter) { p.meter.Store(m) }

// threadTime returns the processor time of the calling thread in nanoseconds. To take differences, a goroutine must be locked to its thread.
func threadTime() int64 { return int64(C.thread_time()) }

// measured runs f on a locked thread and returns its processor time, without that of reading the clock.
func measured(f func()) int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	f()
	return since(began)
}

// since returns the thread's processor time after an earlier reading, without that of reading the clock.
func since(began int64) int64 { return max(threadTime()-began-clockTime(), 0) }

// clockTime returns the processor time from one reading of threadTime to the next: it is a system call.
var clockTime = sync.OnceValue(func() int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := int64(math.MaxInt64)
	for range 100 {
		began := threadTime()
		least = min(least, threadTime()-began)
	}
	return least
})
