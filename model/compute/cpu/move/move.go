// Package move moves data for the CPU engine. It has all operations that only move elements, for all types by their size, and
// the operations that gather, scatter and reduce.
//
// Work is planned once, when a graph is compiled, and run many times. A plan has shapes but no memory. Its N
// is the number of units of work, and Grain is the number of units per worker that are worth the overhead, for use with a pool:
//
//	plan := move.PlanTranspose(4, dims, permutation)
//	pool.Run(plan.N, plan.Grain, func(lo, hi int) { plan.Run(dst, src, lo, hi) })
//
// Ranges never write the same bytes, so they may run in any order and concurrently. Memory is flat, row-major bytes in the
// machine's byte order; [Bytes] and [Of] convert it. dst and src must not overlap. Arguments that GoMLX's shape inference
// would reject are programming mistakes here and cause a panic.
package move

import (
	"fmt"
	"unsafe"
)

// chunk is the approximate number of bytes that are worth the overhead of a worker: some microseconds of copying.
const chunk = 64 << 10

// Bytes returns the memory of values, shared and not copied.
func Bytes[T any](values []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(zero)))
}

// Of returns memory as values of type T, shared and not copied; a remainder that is too short for a value is omitted.
func Of[T any](memory []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/int(unsafe.Sizeof(zero)))
}

// Size returns the number of elements of a shape: 1 for a scalar, 0 if an axis is empty.
func Size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Strides returns the strides of a row-major shape, in elements.
func Strides(dims []int) []int {
	strides, stride := make([]int, len(dims)), 1
	for a := len(dims) - 1; a >= 0; a-- {
		strides[a] = stride
		stride *= dims[a]
	}
	return strides
}

// grain returns the number of units of the given size in bytes that are worth the overhead of a worker.
func grain(bytes int) int { return max(1, chunk/max(1, bytes)) }

// must panics unless ok is true: a false value is a programming mistake.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic("move: " + fmt.Sprintf(format, args...))
	}
}

// contains reports whether axis is one of axes.
func contains(axes []int, axis int) bool {
	for _, a := range axes {
		if a == axis {
			return true
		}
	}
	return false
}

// odometer steps through the indices of dims in row-major order and keeps their offsets in several arrays.
type odometer struct {
	dims    []int
	strides [][]int // one per array, each as long as dims
	index   []int
	at      []int // offset in each array
}

// newOdometer returns an odometer at the index with the row-major number flat.
func newOdometer(flat int, dims []int, strides ...[]int) odometer {
	o := odometer{dims: dims, strides: strides, index: make([]int, len(dims)), at: make([]int, len(strides))}
	o.set(flat)
	return o
}

// set moves to the index with the row-major number flat.
func (o *odometer) set(flat int) {
	clear(o.at)
	for a := len(o.dims) - 1; a >= 0; a-- {
		d := o.dims[a]
		if d == 0 {
			return
		}
		o.index[a] = flat % d
		flat /= d
		for k, s := range o.strides {
			o.at[k] += o.index[a] * s[a]
		}
	}
}

// next moves to the next index, and from the last one to the first.
func (o *odometer) next() {
	for a := len(o.dims) - 1; a >= 0; a-- {
		o.index[a]++
		if o.index[a] < o.dims[a] {
			for k, s := range o.strides {
				o.at[k] += s[a]
			}
			return
		}
		o.index[a] = 0
		for k, s := range o.strides {
			o.at[k] -= (o.dims[a] - 1) * s[a]
		}
	}
}
