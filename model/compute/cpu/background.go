//go:build cgo

package cpu

import (
	"math"
	"slices"

	"github.com/gomlx/gomlx/backends"

	"slotscope/model/compute/cpu/kernel"
)

// backgroundMost is how many bytes per thread steps in the background may keep in use that would be free otherwise. One step may keep more.
const backgroundMost = 8 << 20

// backgroundSoon is how many steps after a step in the background do not read its results, unless they are in the background, too. Tests raise it so that there is none.
var backgroundSoon = 1

// stepCost is what a step takes besides its work, in operations of one thread.
const stepCost = 1 << 18

// byteCost is the time to read or write a byte in operations.
const byteCost = 4

// background chooses steps that threads compute when others leave them idle: those that are not on the longest path from the inputs to the outputs, and whose results
// no other step reads soon. The gradients of weights, which only the optimizer reads, are such steps. They may read each other's results.
func (p *plan) background(threads int) {
	if threads == 1 {
		return
	}
	readers := p.readers()
	free := p.slack(readers, threads)
	for i, s := range slices.Backward(p.steps) {
		until := len(p.steps)
		for _, j := range readers[i] {
			if u := p.steps[j].until; u > 0 {
				j = u
			}
			until = min(until, j)
		}
		if free[i] && until-i > backgroundSoon {
			s.until = until
		}
	}
	p.limit(threads)
	for j, s := range p.steps {
		for _, i := range readers[j] {
			if i < s.until && p.steps[i].until > 0 {
				p.steps[i].after = append(p.steps[i].after, j)
			}
		}
	}
}

// readers returns for each step those that read its results.
func (p *plan) readers() [][]int {
	readers, writer := make([][]int, len(p.steps)), map[*node]int{}
	for i, s := range p.steps {
		for _, n := range s.in {
			if j, ok := writer[n]; ok && !slices.Contains(readers[j], i) {
				readers[j] = append(readers[j], i)
			}
		}
		for _, n := range s.out {
			writer[n] = i
		}
	}
	return readers
}

// slack reports for each step whether it could take twice as long without making the longest path longer.
func (p *plan) slack(readers [][]int, threads int) []bool {
	before, after, longest := make([]float64, len(p.steps)), make([]float64, len(p.steps)), 0.0
	time := func(i int) float64 { return float64(stepCost) + p.steps[i].cost()/float64(threads) }
	for i := range p.steps {
		for _, j := range readers[i] {
			before[j] = max(before[j], before[i]+time(i))
		}
	}
	for i := range slices.Backward(p.steps) {
		for _, j := range readers[i] {
			after[i] = max(after[i], after[j]+time(j))
		}
		longest = max(longest, before[i]+time(i)+after[i])
	}
	free := make([]bool, len(p.steps))
	for i := range p.steps {
		free[i] = before[i]+2*time(i)+after[i] <= longest
	}
	return free
}

// cost returns the approximate time of a step in operations of one thread. Those of a product are the multiplications and additions, exactly for matrices.
func (s *step) cost() (sum float64) {
	for _, s := range s.parts() {
		bytes, product := 0.0, 4.0
		for _, n := range slices.Concat(s.in, s.out) {
			bytes += float64(n.bytes())
			product *= float64(n.shape.Size())
		}
		op := s.nodes[0].op
		if len(s.in) != 2 || op != backends.OpTypeConvGeneral && op != backends.OpTypeDotGeneral {
			product = 0
		}
		sum += max(byteCost*bytes, math.Sqrt(product))
	}
	return sum
}

// limit makes steps in the background end earlier so that they do not keep too much memory in use.
func (p *plan) limit(threads int) {
	last := map[*node]int{}
	for i, s := range p.steps {
		for _, n := range s.in {
			last[n] = i
		}
	}
	kept, sum := make([]int, len(p.steps)), 0
	var flying []int
	for i, s := range p.steps {
		flying = slices.DeleteFunc(flying, func(j int) bool {
			if p.steps[j].until > i {
				return false
			}
			sum -= kept[j]
			return true
		})
		if s.until == 0 {
			continue
		}
		for _, n := range s.in {
			if n.op != backends.OpTypeParameter && n.op != backends.OpTypeConstant && last[n] < s.until {
				kept[i] += n.bytes()
			}
		}
		for sum += kept[i]; sum > threads*backgroundMost && len(flying) > 0; flying = flying[1:] {
			p.steps[flying[0]].until = i // as are those before it that it reads
			sum -= kept[flying[0]]
		}
		flying = append(flying, i)
	}
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
