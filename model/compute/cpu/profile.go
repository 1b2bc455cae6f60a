//go:build cgo

package cpu

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"slotscope/model/compute/cpu/kernel"
)

// Profile measures the time of an engine's executions, step by step. Executions are measured one at a time.
type Profile struct {
	backend *Backend
	meter   kernel.Meter

	mu         sync.Mutex
	executions int
	wall       time.Duration
	steps      map[*step]*StepTime
}

// Measure measures every execution of an engine from now on until stop is called, which also measures the machine's limits. ok is false
// if the engine is not a Backend of this package.
func Measure(engine backends.Backend) (stop func() Report, ok bool) {
	b, ok := engine.(*Backend)
	if !ok {
		return nil, false
	}
	p := b.StartProfile()
	return func() Report {
		p.Stop()
		r := p.Report()
		r.Roof.FLOPs, r.Roof.Bytes = kernel.MeasureRoof(min(r.Threads, kernel.Cores()))
		if r.Threads > 1 {
			r.Roof.Shared = kernel.MeasureShared()
		}
		return r
	}, true
}

// StartProfile measures every execution from now on, until Stop. The engine is slightly slower meanwhile. Another
// engine with the same number of threads, which shares the workers, should not compute at the same time.
func (b *Backend) StartProfile() *Profile {
	p := &Profile{backend: b, steps: map[*step]*StepTime{}}
	b.workers.Measure(&p.meter)
	b.profile.Store(p)
	return p
}

// Stop ends the measurement.
func (p *Profile) Stop() {
	p.backend.profile.CompareAndSwap(p, nil)
	p.backend.workers.Measure(nil)
}

// run computes the steps of an execution and keeps the index of the current step in at. Real threads compute each step by itself; simulated ones compute
// some in the background, and the execution then takes less time than the sum of its steps.
func (p *Profile) run(e *Executable, f *frame, at *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	workers := e.backend.workers
	began, simulated := workers.Imagined()
	if simulated {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		began, _ = workers.Imagined()
	}
	for i, s := range e.steps {
		workers.Repeat(e, i)
		workers.Resume() // after what only a profile does
		f.flight.join(e.steps, i, at)
		*at = i
		if alone := p.step(s, e, i, f); !simulated {
			p.wall += alone
		}
	}
	f.flight.join(e.steps, len(e.steps), at)
	workers.Repeat(nil, 0)
	if simulated {
		ended, _ := workers.Imagined()
		p.wall += time.Duration(ended.Minus(began).Clock)
	}
	p.executions++
}

// step computes a step, on simulated threads in the background if it should be, and returns the time that it takes by itself.
func (p *Profile) step(s *step, e *Executable, i int, f *frame) time.Duration {
	workers, out, in := e.backend.workers, f.out[i], f.in[i]
	imagined, simulated := workers.Imagined()
	before, began := p.read(), time.Now()
	var times []atomic.Int64
	workers.Resume()
	switch {
	case simulated && f.flight.start(workers, i):
	case s.cascade != nil:
		times = make([]atomic.Int64, len(s.cascade.links))
		s.cascade.run(workers, out, in, times)
	default:
		s.run(workers, out, in)
	}
	now, _ := workers.Imagined()
	took, after := int64(time.Since(began)), p.read()
	wall, busy := took, took+after.busy-before.busy
	if simulated {
		calls := now.Minus(imagined)
		busy, wall = calls.Serial+calls.Ranges, calls.Serial+calls.Span
	}
	if s.cascade == nil {
		p.add(s, StepTime{Wall: time.Duration(wall), Busy: time.Duration(busy), Packing: time.Duration(after.packed - before.packed), FLOPs: after.flops - before.flops})
		return time.Duration(wall)
	}
	shares, all := make([]float64, len(s.cascade.links)), 0.0
	for i, l := range s.cascade.links {
		if shares[i] = l.cost(); times != nil {
			shares[i] = float64(times[i].Load())
		}
		all += shares[i]
	}
	for i, l := range s.cascade.links {
		share := shares[i] / max(all, 1)
		p.add(l, StepTime{Wall: time.Duration(share * float64(wall)), Busy: time.Duration(share * float64(busy)), FLOPs: l.division.flops})
	}
	return time.Duration(wall)
}

// add records one call of a step, or of a link of a cascade, among which the cascade's times are divided in proportion to their own, or to their estimated ones if the
// cascade is in the background.
func (p *Profile) add(s *step, once StepTime) {
	t := p.steps[s]
	if t == nil {
		t = &StepTime{What: s.title(), Kind: s.kind()}
		p.steps[s] = t
	}
	once.Calls = 1
	for _, list := range [2][]*node{s.out, s.in} {
		for _, n := range list {
			once.Bytes += int64(n.bytes())
		}
	}
	t.add(&once)
}

// reading is the state of the meter at one time.
type reading struct{ busy, packed, flops int64 }

func (p *Profile) read() reading {
	return reading{p.meter.Helped.Load() - p.meter.Waited.Load(), p.meter.Packed.Load(), p.meter.FLOPs.Load()}
}

// kind returns the category of the step in reports.
func (s *step) kind() string {
	n := s.nodes[0]
	switch {
	case n.op == backends.OpTypeConvGeneral:
		return "convolution"
	case n.op == backends.OpTypeDotGeneral:
		return "matrix product"
	case slices.ContainsFunc(s.nodes, func(n *node) bool { _, ok := reductionKinds[n.op]; return ok }):
		return "element-wise, with reductions"
	case isElement(n):
		return "element-wise"
	}
	return "movement and others"
}

// title describes a step in one line: inputs, outputs and operations.
func (s *step) title() string {
	names := map[string]int{}
	for _, n := range s.nodes {
		names[n.op.String()]++
	}
	var ops []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] > 1 {
			name = fmt.Sprintf("%d %s", names[name], name)
		}
		ops = append(ops, name)
	}
	return fmt.Sprintf("%s → %s: %s", shapesOf(s.in), shapesOf(s.out), strings.Join(ops, ", "))
}

func shapesOf(nodes []*node) string {
	times := map[string]int{}
	var names []string
	for _, n := range nodes {
		name := shapeName(n.shape)
		if times[name]++; times[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if times[name] > 1 {
			names[i] = fmt.Sprintf("%d·%s", times[name], name)
		}
	}
	return strings.Join(names, " ")
}

func shapeName(s shapes.Shape) string {
	return strings.ReplaceAll(fmt.Sprint(s.Dimensions), " ", "×")
}

// Report returns the sums of the measurements so far.
func (p *Profile) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := Report{Threads: p.backend.Threads(), Executions: p.executions, Wall: p.wall}
	kinds := map[string]*StepTime{}
	for _, t := range p.steps {
		r.Steps = append(r.Steps, *t)
		k := kinds[t.Kind]
		if k == nil {
			k = &StepTime{What: t.Kind, Kind: t.Kind}
			kinds[t.Kind] = k
		}
		k.add(t)
	}
	for _, k := range kinds {
		r.Kinds = append(r.Kinds, *k)
	}
	for _, list := range [2][]StepTime{r.Steps, r.Kinds} {
		slices.SortFunc(list, func(a, b StepTime) int {
			return cmp.Or(cmp.Compare(b.Busy, a.Busy), cmp.Compare(a.What, b.What))
		})
	}
	return r
}

func (t *StepTime) add(u *StepTime) {
	t.Calls, t.Wall, t.Busy, t.Packing = t.Calls+u.Calls, t.Wall+u.Wall, t.Busy+u.Busy, t.Packing+u.Packing
	t.FLOPs, t.Bytes = t.FLOPs+u.FLOPs, t.Bytes+u.Bytes
}
