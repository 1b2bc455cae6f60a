//go:build cgo

package kernel

/*
#cgo noescape roof_products
#cgo nocallback roof_products
#cgo noescape roof_copy
#cgo nocallback roof_copy
#include "roof.h"
*/
import "C"

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	roofRounds = 1 << 20
	roofFloats = 1 << 25 // of all threads together, read and written: 256 MiB, more than L3 caches hold
	roofTries  = 5

	sharedFloats = 1 << 15 // 128 KiB, read and written by each of two threads: less than L2 caches hold
	sharedTries  = 25
)

// MeasureRoof measures the maximum of one thread while that many threads do the same, per second of its processor time: additions and
// multiplications in registers, and bytes read and written for arrays larger than the caches. It is the best of several tries, which take
// about a second; other programs running meanwhile lower it.
func MeasureRoof(threads int) (flops, bytes float64) {
	threads = max(threads, 1)
	arrays := make([][]float32, threads)
	for i := range arrays {
		arrays[i] = make([]float32, 2*max(roofFloats/threads, 1<<20))
		for j := range arrays[i] {
			arrays[i][j] = 1 // pages that were never written are all one page, which stays in a cache
		}
	}
	for range roofTries {
		flops = max(flops, together(threads, func(int) int64 {
			n, _ := roofProducts(roofRounds)
			return n
		}))
		bytes = max(bytes, together(threads, func(i int) int64 {
			half := len(arrays[i]) / 2
			roofCopy(arrays[i][:half], arrays[i][half:])
			return 4 * int64(len(arrays[i]))
		}))
	}
	return flops, bytes
}

// MeasureShared measures how many nanoseconds a thread takes to write 64 bytes that it and another thread have read. Whether their cores share a cache
// changes it several times over. It is the median of several tries, or 0 if there is only one core.
func MeasureShared() float64 {
	if cores < 2 {
		return 0
	}
	shared := make([]float32, sharedFloats)
	var turn atomic.Int64 // how often the other thread was asked to read and has read
	var other sync.WaitGroup
	other.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		own := make([]float32, sharedFloats)
		for i := range int64(sharedTries) {
			for turn.Load() != 2*i+1 {
			}
			roofCopy(shared, own)
			turn.Store(2*i + 2)
		}
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, times := make([]float32, sharedFloats), make([]time.Duration, sharedTries)
	for i := range times {
		turn.Store(int64(2*i + 1))
		for turn.Load() != int64(2*i+2) {
		}
		roofCopy(shared, own)
		began := time.Now()
		roofCopy(own, shared)
		times[i] = time.Since(began)
	}
	other.Wait()
	slices.Sort(times)
	return float64(times[sharedTries/2].Nanoseconds()) / (4 * sharedFloats / 64)
}

// together runs f on threads that start at the same time, and returns the mean of their results per second of processor time.
func together(threads int, f func(i int) int64) float64 {
	var ready, done sync.WaitGroup
	rates := make([]float64, threads)
	for i := range threads {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait()
			began := threadTime()
			n := f(i)
			rates[i] = float64(n) / max(time.Duration(threadTime()-began).Seconds(), 1e-9)
		})
	}
	done.Wait()
	sum := 0.0
	for _, rate := range rates {
		sum += rate
	}
	return sum / float64(threads)
}

// roofProducts returns the number of operations that it did, and their result.
func roofProducts(rounds int) (n int64, sum float32) {
	var s C.float
	n = int64(C.roof_products(C.int64_t(rounds), &s))
	return n, float32(s)
}

// roofCopy writes half of each element of x, whose length is a multiple of a vector, to y.
func roofCopy(x, y []float32) { C.roof_copy(floats(x), floats(y), C.int64_t(len(x))) }
