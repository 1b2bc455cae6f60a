package jobs

import "sync"

// watchers are notified that a run has changed, but not of what: they read it themselves.
type watchers struct {
	mu   sync.Mutex
	byID map[string]map[chan struct{}]bool
}

// Watch returns a channel that receives a value whenever the run changes; id "" watches all runs. It holds at most one pending notification
// and never blocks the sender. cancel ends the notifications; the channel is not closed.
func (s *Supervisor) Watch(id string) (changes <-chan struct{}, cancel func()) {
	return s.watchers.add(id)
}

func (w *watchers) add(id string) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = map[string]map[chan struct{}]bool{}
	}
	if w.byID[id] == nil {
		w.byID[id] = map[chan struct{}]bool{}
	}
	c := make(chan struct{}, 1)
	w.byID[id][c] = true
	return c, func() { w.remove(id, c) }
}

func (w *watchers) remove(id string, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byID[id], c)
	if len(w.byID[id]) == 0 {
		delete(w.byID, id)
	}
}

func (w *watchers) notify(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range []string{id, ""} {
		for c := range w.byID[key] {
			select {
			case c <- struct{}{}:
			default: // a notification is already pending
			}
		}
	}
}
