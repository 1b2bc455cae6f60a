package cpu

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"slotscope/model/compute/cpu/kernel"
)

// Profile collects where the time of an engine's executions goes, step by step. Executions are measured one at a time.
type Profile struct {
	backend *Backend
	meter   kernel.Meter

	mu         sync.Mutex
	executions int
	wall       time.Duration
	steps      map[*step]*StepTime
}

// StepTime is what one step of an execution took, in all its calls, or several steps of a kind.
type StepTime struct {
	What    string        `json:"what"`
	Kind    string        `json:"kind"`
	Calls   int           `json:"calls"`
	Wall    time.Duration `json:"wall_ns"`
	Busy    time.Duration `json:"busy_ns"`    // processor time of all threads, without waiting
	Packing time.Duration `json:"packing_ns"` // of Busy, about: what bringing operands of products into order took
	FLOPs   int64         `json:"flops"`      // of products
	Bytes   int64         `json:"bytes"`      // of operands and results, each once
}

// Report is a profile's sums.
type Report struct {
	Threads    int           `json:"threads"`
	Executions int           `json:"executions"`
	Wall       time.Duration `json:"wall_ns"` // of the executions
	Kinds      []StepTime    `json:"kinds"`   // the most expensive first
	Steps      []StepTime    `json:"steps"`   // the most expensive first
}

// StartProfile measures every execution from now on, until Stop. The engine computes a little slower meanwhile. Another
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

// run computes the steps of an execution; at follows the step that is computed.
func (p *Profile) run(e *Executable, f *frame, at *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	for i, s := range e.steps {
		*at = i
		p.step(s, e, f.out[i], f.in[i])
	}
	p.executions++
	p.wall += time.Since(began)
}

func (p *Profile) step(s *step, e *Executable, out, in [][]byte) {
	t := p.steps[s]
	if t == nil {
		t = &StepTime{What: s.title(), Kind: s.kind()}
		p.steps[s] = t
	}
	before, cpu, began := p.read(), kernel.ThreadTime(), time.Now()
	s.run(e.backend.workers, out, in)
	t.Wall += time.Since(began)
	after := p.read()
	t.Busy += time.Duration(kernel.ThreadTime() - cpu + after.busy - before.busy)
	t.Packing += time.Duration(after.packed - before.packed)
	t.FLOPs += after.flops - before.flops
	t.Calls++
	for _, list := range [2][]*node{s.out, s.in} {
		for _, n := range list {
			t.Bytes += int64(n.shape.Memory())
		}
	}
}

// reading is a state of the meter.
type reading struct{ busy, packed, flops int64 }

func (p *Profile) read() reading {
	return reading{p.meter.Helped.Load() - p.meter.Waited.Load(), p.meter.Packed.Load(), p.meter.FLOPs.Load()}
}

// kind sorts steps for reports.
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

// title names a step in a line: what goes in, what comes out, and the operations.
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

// Report sums up what was measured so far.
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

// Write prints the kinds and the most expensive steps, per execution; rates are per second of processor time of one thread.
func (r Report) Write(to io.Writer, steps int) error {
	runs := max(r.Executions, 1)
	var busy time.Duration
	for _, k := range r.Kinds {
		busy += k.Busy
	}
	fmt.Fprintf(to, "%d executions, each %.3f ms of wall time and %.3f ms of processor time on %d threads (%.0f%% of them busy)\n",
		r.Executions, milliseconds(r.Wall, runs), milliseconds(busy, runs), r.Threads, r.busy(busy, r.Wall))
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "cpu ms\tshare\tpacking ms\twall ms\tbusy\tGFLOP/s\tGB/s\tcalls\t")
	for _, list := range [2][]StepTime{r.Kinds, r.Steps[:min(steps, len(r.Steps))]} {
		for _, t := range list {
			fmt.Fprintf(table, "%.3f\t%.1f%%\t%.3f\t%.3f\t%.0f%%\t%.1f\t%.1f\t%d\t %s\n", milliseconds(t.Busy, runs),
				100*float64(t.Busy)/float64(max(busy, 1)), milliseconds(t.Packing, runs), milliseconds(t.Wall, runs), r.busy(t.Busy, t.Wall),
				float64(t.FLOPs)/float64(max(t.Busy, 1)), float64(t.Bytes)/float64(max(t.Busy, 1)), t.Calls/runs, t.What)
		}
		fmt.Fprintln(table, "\t\t\t\t\t\t\t\t")
	}
	return table.Flush()
}

// busy is the share of the threads' time in which they computed, in percent; the rest they were idle, or others had the processor.
func (r Report) busy(busy, wall time.Duration) float64 {
	return 100 * float64(busy) / max(float64(wall)*float64(r.Threads), 1)
}

func milliseconds(d time.Duration, runs int) float64 {
	return float64(d) / float64(time.Millisecond) / float64(runs)
}
