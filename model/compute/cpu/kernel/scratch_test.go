//go:build cgo

package kernel

import (
	"testing"
	"unsafe"
)

// TestScratchLendsWhatWasReturnedLast also checks that a piece too small is replaced.
func TestScratchLendsWhatWasReturnedLast(t *testing.T) {
	at := func(s *scratch) *float32 { return unsafe.SliceData(s.data) }
	s := &scratches{}
	small, large := s.get(10), s.get(3*scratchStep)
	first, second := at(small), at(large)
	s.put(small)
	s.put(large)
	for _, c := range []struct {
		n    int
		want *float32
	}{{5, second}, {2 * scratchStep, second}} {
		f := s.get(c.n)
		if at(f) != c.want || len(f.data) != c.n {
			t.Errorf("%d floats: got %d at %p, want those at %p, which were returned last", c.n, len(f.data), at(f), c.want)
		}
		s.put(f)
	}
	held := s.get(1)
	if f := s.get(scratchStep); at(f) != first {
		t.Errorf("got memory at %p although the piece at %p is free and large enough", at(f), first)
	} else {
		s.put(f)
	}
	if f := s.get(scratchStep + 1); at(f) == first || len(f.data) != scratchStep+1 || len(s.free) != 0 {
		t.Errorf("got %d floats at %p and %d free pieces, want new memory instead of the piece at %p, which is too small", len(f.data), at(f), len(s.free), first)
	}
	s.put(held)
}
