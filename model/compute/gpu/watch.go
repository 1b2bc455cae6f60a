package gpu

import (
	"context"
	"sync"
	"time"
)

// Watcher queries a GPU periodically in its own goroutine.
type Watcher struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu   sync.Mutex
	last *GPU // latest state; nil once taken
}

// Watch queries the first GPU that this process may use at an interval, until Stop.
func Watch(every time.Duration) *Watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watcher{cancel: cancel, ended: make(chan struct{})}
	go w.loop(ctx, every)
	return w
}

func (w *Watcher) loop(ctx context.Context, every time.Duration) {
	defer close(w.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		if seen, err := Here(ctx); err == nil && len(seen) > 0 {
			w.mu.Lock()
			w.last = &seen[0]
			w.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// Take returns the latest state since the last call as series of a point, or nil if there is none.
func (w *Watcher) Take() map[string]float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		return nil
	}
	g := w.last
	w.last = nil
	return g.Series()
}

// Series returns a GPU's measurements by name: gpu/utilization in percent, gpu/memory in GiB, gpu/temperature in °C, gpu/power in W. Unknown
// values are omitted.
func (g GPU) Series() map[string]float64 {
	values := map[string]float64{}
	for name, v := range map[string]float64{"gpu/utilization": g.Utilization, "gpu/memory": float64(g.Used) / (1 << 30), "gpu/temperature": g.Temperature, "gpu/power": g.Power} {
		if v >= 0 {
			values[name] = v
		}
	}
	return values
}

// Stop stops the goroutine and waits for it.
func (w *Watcher) Stop() {
	w.cancel()
	<-w.ended
}

// Total returns the memory in bytes of the first GPU that this process may use, or −1 if unknown.
func Total() int64 {
	seen, err := Here(context.Background())
	if err != nil || len(seen) == 0 {
		return -1
	}
	return seen[0].Memory
}
