package train

import (
	"context"
	"fmt"
	"time"

	"slotscope/model/data"
)

// batch is what one gradient step learns from.
type batch struct {
	step   int
	images []byte // B × H × W × C
	err    error
}

// prefetch reads the batches of steps from first on, one ahead of the step that works, until ctx ends.
func (s *session) prefetch(ctx context.Context, first int) <-chan batch {
	next := make(chan batch)
	go func() {
		defer close(next)
		for step := first; step <= s.cfg.Steps; step++ {
			b := batch{step: step}
			if b.images, b.err = read(s.set, s.sampler.Batch(step)); b.err != nil {
				b.err = fmt.Errorf("reading the images of step %d: %w", step, b.err)
			}
			select {
			case next <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	return next
}

// read fetches images by index.
func read(set data.Set, index []int) ([]byte, error) {
	info := set.Info()
	images := make([]byte, len(index)*info.H*info.W*info.C)
	return images, set.Images(images, index)
}

// rate measures steps per second over the last rateOver.
type rate struct{ marks []mark }

type mark struct {
	at   time.Time
	step int
}

func (r *rate) restart(now time.Time, step int) { r.marks = []mark{{now, step}} }

// add notes that step was reached and returns the steps per second since the oldest note that counts.
func (r *rate) add(now time.Time, step int) float64 {
	r.marks = append(r.marks, mark{now, step})
	for len(r.marks) > 2 && now.Sub(r.marks[1].at) >= rateOver {
		r.marks = r.marks[1:]
	}
	oldest := r.marks[0]
	if seconds := now.Sub(oldest.at).Seconds(); seconds > 0 {
		return float64(step-oldest.step) / seconds
	}
	return 0
}
