//go:build cgo

package kernel

import (
	"slices"
	"sync"
	"unsafe"
)

// scratches lends memory for packing, and keeps it, so that a repeated step allocates nothing.
type scratches struct {
	sync.Mutex
	free []*scratch
}

// scratch is lent memory; data has the requested length and arbitrary content.
type scratch struct{ data []float32 }

// scratchStep is the granularity of lent memory, in floats: 64 KiB, so that Go aligns it to a page.
const scratchStep = 1 << 14

// newScratch returns at least n floats.
func newScratch(n int) []float32 {
	floats := roundUp(max(n, 1), scratchStep)
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(Memory(4*floats, 64)))), floats)
}

// get lends n floats: the free piece that was returned last and is large enough, since its lines are likely to be in a cache, or else new memory that
// replaces the largest free one.
func (s *scratches) get(n int) *scratch {
	s.Lock()
	defer s.Unlock()
	last, largest := -1, -1
	for i, f := range s.free {
		if cap(f.data) >= n {
			last = i
		}
		if largest < 0 || cap(f.data) > cap(s.free[largest].data) {
			largest = i
		}
	}
	if last < 0 && largest < 0 {
		return &scratch{newScratch(n)[:n]}
	}
	if last < 0 {
		last = largest
		s.free[last].data = newScratch(n)
	}
	f := s.free[last]
	s.free = slices.Delete(s.free, last, last+1)
	f.data = f.data[:n]
	return f
}

// put returns lent memory.
func (s *scratches) put(f *scratch) {
	s.Lock()
	s.free = append(s.free, f)
	s.Unlock()
}

func roundUp(n, to int) int { return divideUp(n, to) * to }

func divideUp(n, by int) int { return (n + by - 1) / by }

// keep holds structs of one kind for reuse.
type keep[T any] struct{ pool sync.Pool }

// get returns a struct whose fields are zero.
func (k *keep[T]) get() *T {
	if x, ok := k.pool.Get().(*T); ok {
		return x
	}
	return new(T)
}

// put returns a struct and clears its fields.
func (k *keep[T]) put(x *T) {
	var zero T
	*x = zero
	k.pool.Put(x)
}
