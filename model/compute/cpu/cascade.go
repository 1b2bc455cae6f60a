//go:build cgo

package cpu

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gomlx/gomlx/backends"

	"slotscope/model/compute/cpu/kernel"
)

// division is how a step, which needs no scratch, can be computed in parts: each of them along the first axis of every result whose dimension is not 1.
type division struct {
	op      kernel.Divisible
	parts   int
	kernel  int    // bytes of a convolution's kernel
	flops   int64  // additions and multiplications of a convolution
	divided []bool // by operand: a part reads only its part of the operand; otherwise it reads all of it
}

// divide returns how a program of a group can be computed in parts, or nil. in has its operands.
func (g *group) divide(spec *kernel.ProgramSpec, in []*node, op *kernel.Program) *division {
	a := slices.IndexFunc(g.dims, func(d int) bool { return d != 1 })
	if a < 0 || len(spec.Reductions) > 0 && g.lo <= a {
		return nil
	}
	d := &division{op: op, parts: g.dims[a]}
	for i, x := range spec.Inputs {
		d.divided = append(d.divided, x.Strides == nil || x.Strides[a]*d.parts == in[i].shape.Size())
	}
	return d
}

// bytes returns the size of a part of the results and of the divided operands.
func (s *step) bytes() int {
	bytes := 0
	for _, n := range s.out {
		bytes += n.bytes()
	}
	for i, n := range s.in {
		if s.division.divided[i] {
			bytes += n.bytes()
		}
	}
	return bytes / s.division.parts
}

// Limits of cascades.
const (
	cascadeCache  = 256 << 10 // bytes of the results and operands that a thread computes at a time: half of a small L2 cache
	cascadeKernel = 256 << 10 // bytes of a convolution's kernel, which is read again for each unit of parts
	cascadeLarge  = 1 << 20   // the same if each thread has the same number of parts, fewer than cascadeUnits
	cascadeRatio  = 6         // between the largest and the smallest number of parts of the links that fit in the cache
	cascadeUnits  = 4         // smallest number of units for each thread, unless all have the same number of parts
	cascadeAhead  = 24        // steps between two links
	cascadeSmall  = 4 << 10   // bytes of a part up to which a step fits in the cache anyway
)

// cascadeLeast is the size of a cascade's first results and operands, in bytes, from which a cascade pays. Tests lower it.
var cascadeLeast = 256 << 10

// cascade is a sequence of steps, its links, all of which a thread computes for a few parts before it continues with the next ones. It replaces
// them as a single step, whose results and operands are those of the links, one link after the other.
type cascade struct {
	links       []*step
	parts, unit int // the number of parts, and of those that a thread computes at a time
	kernel      *kernel.Cascade
	arguments   sync.Pool // of *cascadeArguments
}

type cascadeArguments struct{ out, in [][][]byte }

// run computes the cascade. times is nil, or receives the nanoseconds for which threads computed each link.
func (c *cascade) run(pool *kernel.Pool, out, in [][]byte, times []atomic.Int64) {
	a, ok := c.arguments.Get().(*cascadeArguments)
	if !ok {
		a = &cascadeArguments{make([][][]byte, len(c.links)), make([][][]byte, len(c.links))}
	}
	for i, l := range c.links {
		a.out[i], out = out[:len(l.out)], out[len(l.out):]
		a.in[i], in = in[:len(l.in)], in[len(l.in):]
	}
	c.kernel.Run(pool, a.out, a.in, times)
	clear(a.out)
	clear(a.in)
	c.arguments.Put(a)
}

// step returns the cascade as a step.
func (c *cascade) step() *step {
	s := &step{cascade: c}
	var ops []kernel.Divisible
	for _, l := range c.links {
		s.nodes, s.out, s.in = append(s.nodes, l.nodes...), append(s.out, l.out...), append(s.in, l.in...)
		ops = append(ops, l.division.op)
	}
	c.kernel = kernel.NewCascade(ops, c.parts, c.unit)
	s.run = func(pool *kernel.Pool, out, in [][]byte) { c.run(pool, out, in, nil) }
	return s
}

// parts returns the steps of a cascade, or the step itself.
func (s *step) parts() []*step {
	if s.cascade != nil {
		return s.cascade.links
	}
	return []*step{s}
}

// cascade replaces sequences of steps by cascades.
func (p *plan) cascade(threads int) {
	var steps []*step
	for rest := p.steps; len(rest) > 0; {
		first, behind := rest[0], rest[1:]
		b := newCascadeBuilder(first, threads)
		if b != nil {
			b.extend(behind)
		}
		if b == nil || len(b.cascade.links) == 1 {
			steps, rest = append(steps, first), behind
			continue
		}
		steps = append(append(steps, b.before...), b.cascade.step())
		rest = append(b.after, behind[b.taken:]...)
	}
	p.steps = steps
}

// cascadeBuilder forms a cascade from its first step and the steps that follow it.
type cascadeBuilder struct {
	cascade       *cascade
	threads       int
	before, after []*step        // steps between links, which are computed before and after the cascade instead
	taken         int            // number of steps that are links, except the first, or in before or after
	written, late map[*node]bool // results of the links, and of the steps that have to be computed after the cascade
}

// newCascadeBuilder returns nil if the step cannot be the first link.
func newCascadeBuilder(s *step, threads int) *cascadeBuilder {
	if s.division == nil || s.bytes()*s.division.parts < cascadeLeast {
		return nil
	}
	b := &cascadeBuilder{cascade: &cascade{parts: s.division.parts}, threads: threads, written: map[*node]bool{}, late: map[*node]bool{}}
	if !b.admits(s) {
		return nil
	}
	b.link(s)
	return b
}

func (b *cascadeBuilder) link(s *step) {
	b.cascade.links = append(b.cascade.links, s)
	for _, n := range s.out {
		b.written[n] = true
	}
}

// extend appends those of the steps that need the cascade and can be links, as long as not too many steps lie between two of them.
func (b *cascadeBuilder) extend(steps []*step) {
	var before, after []*step // since the last link
	for i, s := range steps {
		needs := slices.ContainsFunc(s.in, func(n *node) bool { return b.written[n] })
		waits := slices.ContainsFunc(s.in, func(n *node) bool { return b.late[n] })
		switch {
		case needs && !waits && b.admits(s):
			b.link(s)
			b.before, b.after, b.taken = append(b.before, before...), append(b.after, after...), i+1
			before, after = nil, nil
			continue
		case needs || waits:
			after = append(after, s)
			for _, n := range s.out {
				b.late[n] = true
			}
		default:
			before = append(before, s)
		}
		if len(before)+len(after) > cascadeAhead {
			return
		}
	}
}

// admits reports whether a step can be the next link, and adapts the unit to it.
func (b *cascadeBuilder) admits(s *step) bool {
	d := s.division
	if d == nil || d.parts != b.cascade.parts {
		return false
	}
	unit, kernel := b.limits()
	if unit == 0 || d.kernel > kernel {
		return false
	}
	for i, n := range s.in {
		if b.written[n] && !d.divided[i] {
			return false
		}
	}
	least, most := d.parts, 1
	for _, l := range append([]*step{s}, b.cascade.links...) {
		if bytes := l.bytes(); bytes > cascadeSmall || l.nodes[0].op == backends.OpTypeConvGeneral {
			fit := min(max(cascadeCache/bytes, 1), d.parts)
			least, most = min(least, fit), max(most, fit)
		}
	}
	if most > cascadeRatio*least {
		return false
	}
	b.cascade.unit = min(unit, least)
	return true
}

// limits returns the largest number of parts of a unit with which threads finish at about the same time, or 0 if there is none, and the largest kernel.
func (b *cascadeBuilder) limits() (unit, kernel int) {
	parts := b.cascade.parts
	if unit = parts / (b.threads * cascadeUnits); unit == 0 && parts%b.threads == 0 {
		return 1, cascadeLarge
	}
	return unit, cascadeKernel
}
