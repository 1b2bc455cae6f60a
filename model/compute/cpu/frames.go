//go:build cgo

package cpu

import (
	"runtime"
	"sync"
)

// frames keeps an executable's idle frames. A frame that stays idle through two garbage collections is dropped, as in a
// sync.Pool. A sync.Pool, however, hides from one processor the items that another has put, so that each would get its own arena.
type frames struct {
	mu      sync.Mutex
	idle    []*frame // put back since the last collection
	old     []*frame // idle for a collection already
	watched bool
}

// get returns an idle frame, or nil if there is none.
func (s *frames) get() *frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range []*[]*frame{&s.idle, &s.old} {
		if last := len(*list) - 1; last >= 0 {
			f := (*list)[last]
			(*list)[last] = nil
			*list = (*list)[:last]
			return f
		}
	}
	return nil
}

func (s *frames) put(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, f)
	if !s.watched {
		s.watched = true
		s.watch()
	}
}

// watch makes the next garbage collection call age.
func (s *frames) watch() {
	type bell struct{ _ *byte } // has a pointer, so that Go does not combine it with other tiny objects
	runtime.AddCleanup(new(bell), (*frames).age, s)
}

func (s *frames) age() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old, s.idle = s.idle, nil
	if s.watched = len(s.old) > 0; s.watched {
		s.watch()
	}
}
