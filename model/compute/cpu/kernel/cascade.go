//go:build cgo

package kernel

import (
	"sync"
	"sync/atomic"
	"time"
)

// Divisible is an operation with independent parts: part i of its results depends only on part i of those operands that are divided, too,
// and on the whole of the others.
type Divisible interface {
	// begin readies a run, with all threads.
	begin(pool *Pool, out, in [][]byte) parts
}

// parts is a run of a Divisible.
type parts interface {
	part(lo, hi, of int) // computes the parts [lo, hi) of that many on the calling thread
	end()
}

// Cascade is a sequence of operations, all of which a thread computes for a few parts before it continues with others. Each operation
// then reads from a cache what the one before it wrote. Several goroutines may run it concurrently.
type Cascade struct {
	links []Divisible
	parts int
	unit  int // number of parts that a thread computes at a time
	tasks sync.Pool
}

// cascadeChunks is the number of ranges per thread. A cascade takes long, and its ranges share nothing that smaller ones would load more often.
const cascadeChunks = 8

// NewCascade returns a cascade of operations that are divided into that many parts, of which threads take unit at a time.
func NewCascade(links []Divisible, parts, unit int) *Cascade {
	c := &Cascade{links: links, parts: parts, unit: unit}
	c.tasks.New = func() any { return &cascadeTask{cascade: c} }
	return c
}

// Run computes the operations. out and in have the memory of each. times is nil, or receives the nanoseconds for which threads
// computed each operation.
func (c *Cascade) Run(pool *Pool, out, in [][][]byte, times []atomic.Int64) {
	t := c.tasks.Get().(*cascadeTask)
	defer t.end()
	t.times = times
	for i, l := range c.links {
		t.running = append(t.running, l.begin(pool, out[i], in[i]))
	}
	units := (c.parts + c.unit - 1) / c.unit
	pool.runChunks(units, pool.chunks(units, 1, cascadeChunks), t)
}

// cascadeTask is a run of a cascade.
type cascadeTask struct {
	cascade *Cascade
	running []parts
	times   []atomic.Int64
}

func (t *cascadeTask) end() {
	for i, p := range t.running {
		p.end()
		t.running[i] = nil
	}
	t.running, t.times = t.running[:0], nil
	t.cascade.tasks.Put(t)
}

func (t *cascadeTask) do(lo, hi int) {
	c := t.cascade
	for u := lo; u < hi; u++ {
		from, to := u*c.unit, min((u+1)*c.unit, c.parts)
		for i, p := range t.running {
			if t.times == nil {
				p.part(from, to, c.parts)
				continue
			}
			began := time.Now()
			p.part(from, to, c.parts)
			t.times[i].Add(int64(time.Since(began)))
		}
	}
}

// begin readies the program to be computed in parts of its first axis whose dimension is not 1.
func (p *Program) begin(pool *Pool, out, in [][]byte) parts {
	p.check(in, out)
	w := programTasks.Get().(*programTask)
	w.program, w.pool = p, pool
	w.point(in, out)
	return w
}

func (w *programTask) part(lo, hi, of int) {
	p := w.program
	rows := p.outer / of
	size := int(p.c.size) / of
	w.call(lo*rows, lo*size, hi*size)
}

// Whole returns the number of floats of the kernel, and of additions and multiplications, if the convolution can be computed image by image in about the same time.
func (c *Conv) Whole() (kernel, flops int, ok bool) {
	switch {
	case c.minimal != nil && !c.minimal.few:
		flops = c.minimal.flops
	case c.minimal == nil && c.direct != nil:
		flops = c.direct.flops
	default:
		return 0, 0, false
	}
	s := &c.spec
	return s.Kernel[0] * s.Kernel[1] * s.InChannels * s.OutChannels, flops, true
}

// begin readies the convolution to be computed in parts of its batch.
func (c *Conv) begin(pool *Pool, out, in [][]byte) parts {
	x, kernel, y := Floats(in[0]), Floats(in[1]), Floats(out[0])
	c.check(x, kernel, y)
	if c.minimal != nil {
		return c.minimal.begin(pool, x, kernel, y)
	}
	return c.direct.begin(pool, x, kernel, y)
}

func (t *windowsTask) part(lo, hi, of int) {
	t.images(lo*t.batch/of, hi*t.batch/of)
}
