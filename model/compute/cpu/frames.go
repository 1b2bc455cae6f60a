//go:build cgo

package cpu

import (
	"runtime"
	"sync"
)

// frames keeps an executable's idle frames. What two collections of garbage in a row find idle is left to the second, as in a
// sync.Pool; but that hides from one processor what another has put back, and so makes an arena for each.
type frames struct {
	mu      sync.Mutex
	idle    []*frame // put back since the last collection
	old     []*frame // idle for a collection already
	watched bool
}

// get is an idle frame, or nil.
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

// watch has the next collection age the frames.
func (s *frames) watch() {
	type bell struct{ _ *byte } // with a pointer, so that Go gives it a place of its own
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
