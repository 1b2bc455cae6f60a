//go:build cgo

package cpu

import (
	"runtime"
	"sync"
	"testing"
	"weak"
)

// TestFramesAreOne: what goroutines on any processor put back, the next one takes.
func TestFramesAreOne(t *testing.T) {
	var s frames
	made := 0
	for range 200 {
		var wg sync.WaitGroup
		wg.Go(func() {
			f := s.get()
			if f == nil {
				f, made = new(frame), made+1
			}
			s.put(f)
		})
		wg.Wait()
		if made > 1 {
			t.Fatal("a second frame was made while one was idle")
		}
	}
}

// TestFramesAge: a frame that is used between two collections stays, one that is not goes.
func TestFramesAge(t *testing.T) {
	var s frames
	f := new(frame)
	s.put(f)
	for range 3 {
		s.age()
		if s.get() != f {
			t.Fatal("a frame in use was dropped")
		}
		s.put(f)
	}
	s.age()
	s.age()
	if s.get() != nil {
		t.Error("a frame that nobody used is still there")
	}
}

// TestIdleFramesAreCollected: collections of garbage age the frames.
func TestIdleFramesAreCollected(t *testing.T) {
	var s frames
	s.put(&frame{arena: make([]byte, 1<<20)})
	gone := weak.Make(s.idle[0])
	for gone.Value() != nil { // a test that never ends has failed
		runtime.GC()
	}
	if s.get() != nil {
		t.Error("an idle frame is there and collected")
	}
}

// TestFramesAtOnce: goroutines that compute at once never hold the same frame.
func TestFramesAtOnce(t *testing.T) {
	var s frames
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				f := s.get()
				if f == nil {
					f = &frame{arena: make([]byte, 64)}
				}
				f.arena[0]++ // the race detector sees two at one
				s.put(f)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			runtime.GC()
		}
	})
	wg.Wait()
}
