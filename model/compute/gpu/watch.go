package gpu

import (
	"context"
	"sync"
	"time"
)

// Watcher asks a GPU again and again how it is, apart from the run that uses it.
type Watcher struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu   sync.Mutex
	last *GPU // not yet taken
}

// Watch asks the first GPU that this process may use every so often, until Stop.
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

// Take returns what was learned since the last call as series of a point; nil where nothing was.
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

// Series are a GPU's measurements under their names: gpu/utilization in percent, gpu/memory in GiB, gpu/temperature in °C,
// gpu/power in W. What it does not tell is left out.
func (g GPU) Series() map[string]float64 {
	values := map[string]float64{}
	for name, v := range map[string]float64{"gpu/utilization": g.Utilization, "gpu/memory": float64(g.Used) / (1 << 30), "gpu/temperature": g.Temperature, "gpu/power": g.Power} {
		if v >= 0 {
			values[name] = v
		}
	}
	return values
}

// Stop ends the asking and waits for it.
func (w *Watcher) Stop() {
	w.cancel()
	<-w.ended
}

// Total is the memory in bytes of the first GPU that this process may use, −1 where it cannot be known.
func Total() int64 {
	seen, err := Here(context.Background())
	if err != nil || len(seen) == 0 {
		return -1
	}
	return seen[0].Memory
}
