//go:build cgo

package cpu

import (
	"runtime"
	"sync"
	"testing"
	"weak"
)

// TestFramesAreOne checks that a frame that any goroutine puts back is reused.
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
			t.Fatal("a second frame was made although one was idle")
		}
	}
}

// TestFramesAge checks that a frame used between two collections stays, and an unused one is dropped.
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
		t.Error("an unused frame was not dropped")
	}
}

// TestIdleFramesAreCollected checks that garbage collections age the frames.
func TestIdleFramesAreCollected(t *testing.T) {
	var s frames
	s.put(&frame{arena: make([]byte, 1<<20)})
	gone := weak.Make(s.idle[0])
	for gone.Value() != nil { // if this never ends, the test fails by timeout
		runtime.GC()
	}
	if s.get() != nil {
		t.Error("a collected frame is still listed as idle")
	}
}

// TestFramesAtOnce checks that concurrent goroutines never hold the same frame.
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
				f.arena[0]++ // a race if two goroutines hold the frame
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
