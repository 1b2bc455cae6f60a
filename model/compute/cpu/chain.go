//go:build cgo

package cpu

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gomlx/gomlx/backends"

	"slotscope/model/compute/cpu/kernel"
)

// division is how a step can be computed in parts, each of them along the first axis of every result.
type division struct {
	op      kernel.Divisible
	parts   int
	flops   int64  // additions and multiplications of a convolution
	divided []bool // by operand: whether a part reads only its part of the operand; otherwise it reads all of it
}

// bytes returns the size of a part of the results and the divided operands.
func (s *step) partBytes() int {
	bytes := 0
	for _, n := range s.out {
		bytes += int(n.shape.Memory())
	}
	for i, n := range s.in {
		if s.division.divided[i] {
			bytes += int(n.shape.Memory())
		}
	}
	return bytes / s.division.parts
}

// lead returns the first axis whose dimension is not 1.
func lead(dims []int) int {
	return max(0, slices.IndexFunc(dims, func(d int) bool { return d != 1 }))
}

// divide finds how a program of a group can be computed in parts.
func (g *group) divide(spec *kernel.ProgramSpec, in []*node, prog *kernel.Program) *division {
	a := lead(g.dims)
	if len(g.dims) == 0 || g.dims[a] < 2 || len(spec.Reductions) > 0 && g.lo <= a {
		return nil
	}
	d := &division{op: prog, parts: g.dims[a]}
	for i, x := range spec.Inputs {
		d.divided = append(d.divided, x.Strides == nil || x.Strides[a]*d.parts == in[i].shape.Size())
	}
	return d
}

// Limits of chains.
const (
	chainCache  = 256 << 10 // bytes of results and operands that threads compute at a time
	chainLeast  = 256 << 10 // bytes that the first operation of a chain reads and writes
	chainKernel = 256 << 10 // bytes of a kernel that is read again for every unit
	chainRatio  = 6         // largest ratio of the numbers of parts that fit in the cache
	chainDefer  = 24        // operations that a chain may overtake
	chainUnits  = 4         // least number of units per thread
)

// links finds chains and replaces their steps.
func (p *plan) chain(pool *kernel.Pool) {
	var steps []*step
	for rest := p.steps; len(rest) > 0; {
		c := newChain(rest[0], pool.Threads())
		if c != nil {
			c.extend(rest[1:])
		}
		if c == nil || len(c.links) == 1 {
			steps = append(steps, rest[0])
			rest = rest[1:]
			continue
		}
		steps = append(append(steps, c.before...), c.step())
		rest = append(slices.Clone(c.after), rest[1+c.taken:]...)
	}
	p.steps = steps
}

// chain is a chain that is being formed.
type chain struct {
	links         []*step
	parts, unit   int
	threads       int
	before, after []*step // steps that are computed before and after it instead of between its links
	written       map[*node]bool
	late          map[*node]bool // results of the steps after it
	taken         int            // number of steps after the first that are in links, before or after
}

// fits returns the number of parts of a step that fit in the cache, at most all.
func (s *step) fits() int {
	return min(max(1, chainCache/max(s.partBytes(), 1)), s.division.parts)
}

// newChain returns a chain of one step, or nil if the step cannot begin one.
func newChain(s *step, threads int) *chain {
	if s.division == nil || s.partBytes()*s.division.parts < chainLeast {
		return nil
	}
	c := &chain{links: []*step{s}, parts: s.division.parts, unit: s.fits(), threads: threads, written: map[*node]bool{}, late: map[*node]bool{}}
	if !c.enough(c.unit) {
		return nil
	}
	c.write(c.written, s)
	return c
}

// enough reports whether units of that many parts keep all threads busy.
func (c *chain) enough(unit int) bool { return c.parts >= unit*c.threads*chainUnits }

func (c *chain) write(to map[*node]bool, s *step) {
	for _, n := range s.out {
		to[n] = true
	}
}

// extend adds steps. Steps in between that do not need the chain are computed before it, others after it.
func (c *chain) extend(steps []*step) {
	var before, after []*step
	for i, s := range steps {
		needs := slices.ContainsFunc(s.in, func(n *node) bool { return c.written[n] })
		waits := slices.ContainsFunc(s.in, func(n *node) bool { return c.late[n] })
		switch {
		case needs && !waits && c.admits(s):
			c.links = append(c.links, s)
			c.write(c.written, s)
			c.before, c.after, c.taken = append(c.before, before...), append(c.after, after...), i+1
			before, after = nil, nil
		case needs || waits:
			after = append(after, s)
			c.write(c.late, s)
		default:
			before = append(before, s)
		}
		if len(before)+len(c.before)+len(after)+len(c.after) > 3*chainDefer || len(before)+len(after) > chainDefer {
			return
		}
	}
}

// admits reports whether a step can be the next link, and adapts the unit.
func (c *chain) admits(s *step) bool {
	d := s.division
	if d == nil || d.parts != c.parts {
		return false
	}
	for i, n := range s.in {
		if c.written[n] && !d.divided[i] {
			return false
		}
	}
	if s.partBytes() < 4<<10 && s.nodes[0].op != backends.OpTypeConvGeneral {
		return true
	}
	fits := s.fits()
	least, most := fits, fits
	for _, l := range c.links {
		if f := l.fits(); l.partBytes() >= 4<<10 {
			least, most = min(least, f), max(most, f)
		}
	}
	if most > chainRatio*least || !c.enough(least) {
		return false
	}
	c.unit = least
	return true
}

// step returns the chain as one step.
func (c *chain) step() *step {
	s := &step{links: c.links}
	var ops []kernel.Divisible
	for _, l := range c.links {
		s.nodes, s.in, s.out = append(s.nodes, l.nodes...), append(s.in, l.in...), append(s.out, l.out...)
		ops = append(ops, l.division.op)
	}
	k := kernel.NewChain(ops, c.parts, c.unit)
	run := &chainRun{links: c.links, kernel: k}
	s.run = func(pool *kernel.Pool, out, in [][]byte) { run.run(pool, out, in, nil) }
	s.measure = run.run
	return s
}

// chainRun computes a chain whose links' arguments follow each other.
type chainRun struct {
	links  []*step
	kernel *kernel.Chain
	args   sync.Pool // of *[2][][][]byte
}

func (c *chainRun) run(pool *kernel.Pool, out, in [][]byte, times []atomic.Int64) {
	a, ok := c.args.Get().(*[2][][][]byte)
	if !ok {
		a = new([2][][][]byte)
	}
	for _, l := range c.links {
		a[0], out = append(a[0], out[:len(l.out)]), out[len(l.out):]
		a[1], in = append(a[1], in[:len(l.in)]), in[len(l.in):]
	}
	c.kernel.Run(pool, a[0], a[1], times)
	for i := range a {
		clear(a[i])
		a[i] = a[i][:0]
	}
	c.args.Put(a)
}
