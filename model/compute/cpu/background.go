//go:build cgo

package cpu

import (
	"math"
	"slices"

	"github.com/gomlx/gomlx/backends"

	"slotscope/model/compute/cpu/kernel"
)

// backgroundMost is how many bytes steps in the background may keep in use that would be free otherwise.
const backgroundMost = 64 << 20

// backgroundLeast is the number of operations from which a product is computed in the background. Tests lower it.
var backgroundLeast = 1 << 21

// background chooses steps that threads compute when the steps after them leave them idle: those whose results no such step reads soon, such
// as the gradients of weights, which only the optimizer reads.
func (p *plan) background(threads int) {
	if threads == 1 {
		return
	}
	last := map[*node]int{}
	for i, s := range p.steps {
		for _, n := range s.in {
			last[n] = i
		}
	}
	var flying []int
	kept, sum := map[int]int{}, 0
	for i, s := range p.steps {
		flying = slices.DeleteFunc(flying, func(j int) bool {
			if p.steps[j].until <= i {
				sum -= kept[j]
				return true
			}
			return false
		})
		until := p.reader(i)
		if until-i < 2 || s.cascade != nil {
			continue
		}
		for _, n := range s.in {
			if n.op != backends.OpTypeParameter && n.op != backends.OpTypeConstant && last[n] < until {
				kept[i] += n.bytes()
			}
		}
		for sum += kept[i]; sum > backgroundMost && len(flying) > 0; flying = flying[1:] {
			p.steps[flying[0]].until = i
			sum -= kept[flying[0]]
		}
		s.until = until
		flying = append(flying, i)
	}
}

// reader returns the first step that reads a result of step i, or the number of steps if there is none.
func (p *plan) reader(i int) int {
	for j := i + 1; j < len(p.steps); j++ {
		if slices.ContainsFunc(p.steps[j].in, func(n *node) bool { return slices.Contains(p.steps[i].out, n) }) {
			return j
		}
	}
	return len(p.steps)
}

// operations returns the approximate number of multiplications and additions if the step is one product: exact for matrices.
func (s *step) operations() int {
	op := s.nodes[0].op
	if s.cascade != nil || len(s.in) != 2 || op != backends.OpTypeConvGeneral && op != backends.OpTypeDotGeneral {
		return 0
	}
	product := 4.0
	for _, n := range []*node{s.in[0], s.in[1], s.out[0]} {
		product *= float64(n.shape.Size())
	}
	return int(math.Sqrt(product))
}

// flight is an execution's jobs in the background.
type flight struct {
	jobs    []*kernel.Job // by step; nil if it is not in the background
	started []int         // steps that have not ended
}

// start begins step i if it is computed in the background.
func (f *flight) start(pool *kernel.Pool, i int) bool {
	if f.jobs[i] == nil {
		return false
	}
	f.started = append(f.started, i)
	pool.Start(f.jobs[i])
	return true
}

// join waits for the steps that have to end before step i. at receives the step that is waited for.
func (f *flight) join(steps []*step, i int, at *int) {
	for k := 0; k < len(f.started); {
		j := f.started[k]
		if steps[j].until > i {
			k++
			continue
		}
		f.started = slices.Delete(f.started, k, k+1)
		*at = j
		f.jobs[j].Join()
	}
}

// abandon waits for all steps, after another one failed.
func (f *flight) abandon() {
	for _, j := range f.started {
		func() {
			defer func() { _ = recover() }()
			f.jobs[j].Join()
		}()
	}
	f.started = nil
}
