//go:build cgo

package kernel

/*
#include "direct.h"
*/
import "C"

import (
	"errors"
	"fmt"
)

// TensorStrides has the distances between neighboring elements in memory, in elements. For a kernel, Batch is the stride of its output
// channels and Channel that of its input channels.
type TensorStrides struct {
	Batch, Channel int
	Spatial        []int
}

// ConvSpec is a convolution (a correlation, as in XLA) over one to three spatial dimensions, axes in any order:
//
//	out[b, p, o] = Σ_{t, i} in[b, (p·Stride + t·KernelDilation − PadLow) / InDilation, i] · kernel[t, i, o]
//
// Only exact divisions count, and positions outside the input are zero. The forward pass and the gradients for the input and
// for the kernel are all such convolutions.
type ConvSpec struct {
	Batch, InChannels int // of the input
	OutChannels       int // of the output
	Groups            int // feature groups: number of groups of input and output channels that do not mix; 0 means 1
	BatchGroups       int // number of groups of the input's batch, each producing its share of the output channels; 0 means 1

	In, Kernel                 []int  // spatial extents
	Stride                     []int  // nil: ones
	PadLow, PadHigh            []int  // nil: zeros; negative values crop
	InDilation, KernelDilation []int  // nil: ones
	Reverse                    []bool // reads the kernel backwards in that dimension; nil: none
	Operands                   Operands
	Stored                     Stored // of input and kernel
	Rounds                     bool   // the output is rounded to bfloat16 and stored so, see Conv.Rounds

	InStrides, KernelStrides, OutStrides TensorStrides
}

// Conv is a planned convolution. Several goroutines may run it concurrently.
type Conv struct {
	spec     ConvSpec // complete: no nils, one extent per dimension
	out      []int
	pieces   []convPiece
	direct   *windows     // replaces pieces if that is faster
	minimal  *minimal     // replaces pieces if that is faster
	gradient *gradient    // replaces pieces if that is faster
	kernel   *correlation // replaces pieces if that is faster
	reach    [3]int       // number of elements that input, kernel and output must have
}

// convPiece is one product of a convolution: a group of channels, and the outputs that use the same taps of the kernel.
type convPiece struct {
	q                   product
	input, kernel, outp int // offsets of the group
}

// Out returns the output's spatial extents.
func (c *Conv) Out() []int { return c.out }

// OutShape returns a convolution's spatial output extents, or an error if there are none.
func (s ConvSpec) OutShape() ([]int, error) {
	if err := s.complete(); err != nil {
		return nil, err
	}
	return s.outShape()
}

// PlanConv validates and plans a convolution.
func PlanConv(spec ConvSpec) (*Conv, error) {
	if err := spec.complete(); err != nil {
		return nil, err
	}
	out, err := spec.outShape()
	if err != nil {
		return nil, err
	}
	c := &Conv{spec: spec, out: out}
	if err := c.measure(); err != nil {
		return nil, err
	}
	for g := range spec.Groups * spec.BatchGroups {
		if err := c.planGroup(g); err != nil {
			return nil, err
		}
	}
	if c.direct, err = c.planWindows(nil, halfNone, 1); err != nil {
		return nil, err
	}
	if err := c.planPairs(); err != nil {
		return nil, err
	}
	c.kernel = c.planCorrelation(halfNone, 1)
	if c.minimal, err = c.planMinimal(halfNone, 1); err != nil {
		return nil, err
	}
	c.gradient = c.planGradient(halfNone, 1)
	if err := c.halve(); err != nil {
		return nil, err
	}
	return c, c.round()
}

// round makes the convolution store its outputs as bfloat16 if the spec says so.
func (c *Conv) round() error {
	switch {
	case !c.spec.Rounds:
		return nil
	case !c.Rounds():
		return errors.New("convolution: its output cannot be stored as bfloat16")
	case c.minimal != nil:
		c.minimal.q.rounds = 1
	default:
		c.direct.q.rounds = 1
	}
	return nil
}

// minimalGain and quadGain are the assumed speeds of minimal filtering with tiles of 2 × 2 and of 4 × 4, relative to other float32 kernels.
const minimalGain, quadGain = 1.5, 1.8

// floatSpeed returns the assumed speed in float32, relative to that without minimal filtering.
func (c *Conv) floatSpeed() float64 {
	switch {
	case c.minimal != nil && c.minimal.q.tile == 4, c.gradient != nil && c.gradient.q.tile == 4:
		return quadGain
	case c.minimal != nil, c.gradient != nil:
		return minimalGain
	}
	return 1
}

// halve multiplies as bfloat16 if the operands allow it and it is faster.
func (c *Conv) halve() error {
	products := make([]*product, len(c.pieces))
	for i := range c.pieces {
		products[i] = &c.pieces[i].q
	}
	set, parts := c.spec.Operands.set()
	if set != halfNone {
		minimal, err := c.planMinimal(set, parts)
		if err != nil {
			return err
		}
		gradient := c.planGradient(set, parts)
		direct, err := c.planWindows(nil, set, parts)
		var kernel *correlation
		if direct == nil {
			kernel = c.planCorrelation(set, parts)
		}
		if err != nil || direct != nil || kernel != nil || minimal != nil || gradient != nil {
			c.direct, c.kernel, c.minimal, c.gradient = direct, kernel, minimal, gradient
			return err
		}
	}
	if halfSpeedup(set, parts, c.direct != nil || c.kernel != nil || c.fewRead(), products...) <= c.floatSpeed() {
		return nil
	}
	c.direct, c.kernel, c.minimal, c.gradient = nil, nil, nil, nil
	for _, q := range products {
		q.halve(set, parts)
	}
	return nil
}

// complete fills in defaults and validates the spec.
func (s *ConvSpec) complete() error {
	dims := len(s.In)
	if dims < 1 || dims > 3 {
		return fmt.Errorf("convolution over %d spatial dimensions: 1 to 3 are supported", dims)
	}
	s.Groups, s.BatchGroups = max(s.Groups, 1), max(s.BatchGroups, 1)
	ones := []int{1, 1, 1}[:dims]
	s.Stride, s.InDilation, s.KernelDilation = orElse(s.Stride, ones), orElse(s.InDilation, ones), orElse(s.KernelDilation, ones)
	s.PadLow, s.PadHigh = orElse(s.PadLow, make([]int, dims)), orElse(s.PadHigh, make([]int, dims))
	if s.Reverse == nil {
		s.Reverse = make([]bool, dims)
	}
	for _, l := range []struct {
		name string
		n    int
	}{{"kernel extents", len(s.Kernel)}, {"strides", len(s.Stride)}, {"low paddings", len(s.PadLow)}, {"high paddings", len(s.PadHigh)},
		{"input dilations", len(s.InDilation)}, {"kernel dilations", len(s.KernelDilation)}, {"reversals", len(s.Reverse)}} {
		if l.n != dims {
			return fmt.Errorf("convolution over %d spatial dimensions has %d %s", dims, l.n, l.name)
		}
	}
	return s.validate()
}

func orElse(v, otherwise []int) []int {
	if v == nil {
		return otherwise
	}
	return v
}

func (s *ConvSpec) validate() error {
	if s.Batch < 0 || s.InChannels < 0 || s.OutChannels < 0 {
		return fmt.Errorf("convolution with batch %d, %d input and %d output channels: a size is negative", s.Batch, s.InChannels, s.OutChannels)
	}
	if s.Groups*s.BatchGroups > 1 && s.Stored != (Stored{}) {
		return fmt.Errorf("convolution with %d feature groups and %d batch groups: operands must be stored as float32", s.Groups, s.BatchGroups)
	}
	if s.Groups > 1 && s.BatchGroups > 1 {
		return fmt.Errorf("convolution with %d feature groups and %d batch groups: only one kind of group is possible", s.Groups, s.BatchGroups)
	}
	if s.InChannels%s.Groups != 0 || s.OutChannels%(s.Groups*s.BatchGroups) != 0 || s.Batch%s.BatchGroups != 0 {
		return fmt.Errorf("convolution with batch %d, %d input and %d output channels does not divide into %d feature and %d batch groups",
			s.Batch, s.InChannels, s.OutChannels, s.Groups, s.BatchGroups)
	}
	for d := range s.In {
		if s.In[d] < 0 || s.Kernel[d] < 0 {
			return fmt.Errorf("convolution: spatial dimension %d has extent %d in the input and %d in the kernel", d, s.In[d], s.Kernel[d])
		}
		if s.Stride[d] < 1 || s.InDilation[d] < 1 || s.KernelDilation[d] < 1 {
			return fmt.Errorf("convolution: spatial dimension %d has stride %d, input dilation %d, kernel dilation %d; all must be at least 1",
				d, s.Stride[d], s.InDilation[d], s.KernelDilation[d])
		}
	}
	return nil
}

// outShape returns the spatial output extents of a complete spec. A dimension in which the kernel does not fit has extent 0.
func (s *ConvSpec) outShape() ([]int, error) {
	out := make([]int, len(s.In))
	for d := range out {
		in := dilated(s.In[d], s.InDilation[d]) + s.PadLow[d] + s.PadHigh[d]
		window := dilated(s.Kernel[d], s.KernelDilation[d])
		if in < 0 {
			return nil, fmt.Errorf("convolution: padding %d, %d leaves nothing of extent %d in spatial dimension %d", s.PadLow[d], s.PadHigh[d], s.In[d], d)
		}
		if in >= window {
			out[d] = (in-window)/s.Stride[d] + 1
		}
	}
	return out, nil
}

// dilated returns an extent with dilation−1 holes between its elements.
func dilated(n, dilation int) int {
	if n == 0 {
		return 0
	}
	return (n-1)*dilation + 1
}

// measure computes how many floats each tensor must have.
func (c *Conv) measure() error {
	s := &c.spec
	for i, t := range []struct {
		name            string
		batch, channels int
		spatial         []int
		strides         TensorStrides
	}{
		{"input", s.Batch, s.InChannels, s.In, s.InStrides},
		{"kernel", s.OutChannels, s.InChannels / s.Groups, s.Kernel, s.KernelStrides},
		{"output", s.Batch / s.BatchGroups, s.OutChannels, c.out, s.OutStrides},
	} {
		if len(t.strides.Spatial) != len(s.In) {
			return fmt.Errorf("convolution over %d spatial dimensions: the %s has strides for %d", len(s.In), t.name, len(t.strides.Spatial))
		}
		extents := append([]int{t.batch, t.channels}, t.spatial...)
		strides := append([]int{t.strides.Batch, t.strides.Channel}, t.strides.Spatial...)
		c.reach[i] = 1
		for d, n := range extents {
			if strides[d] < 0 {
				return fmt.Errorf("convolution: the %s has a negative stride", t.name)
			}
			c.reach[i] += (n - 1) * strides[d]
			if n == 0 {
				c.reach[i] = 0
				break
			}
		}
	}
	return nil
}

// planGroup adds the products of one group.
func (c *Conv) planGroup(group int) error {
	s := &c.spec
	groups := s.Groups * s.BatchGroups
	piece := convPiece{
		kernel: group * (s.OutChannels / groups) * s.KernelStrides.Batch,
		outp:   group * (s.OutChannels / groups) * s.OutStrides.Channel,
	}
	if s.Groups > 1 {
		piece.input = group * (s.InChannels / groups) * s.InStrides.Channel
	} else {
		piece.input = group * (s.Batch / groups) * s.InStrides.Batch
	}
	phases := 1
	for d := range s.In {
		phases *= s.phases(d)
	}
	for phase := range phases {
		if err := c.planPhase(piece, phase); err != nil {
			return err
		}
	}
	return nil
}

// phases returns the number of classes of outputs in dimension d: outputs of a class use the same taps between the holes of a
// dilated input.
func (s *ConvSpec) phases(d int) int { return s.InDilation[d] / gcd(s.Stride[d], s.InDilation[d]) }

// planPhase adds the product of one class of outputs if it has any.
func (c *Conv) planPhase(piece convPiece, phase int) error {
	s, w := &c.spec, c.windows(phase)
	if sizes(w.m) == 0 || sizes(w.n) == 0 {
		return nil
	}
	few := s.fewRead(sizes(w.m))
	if !few && c.slides() {
		if shifted := c.shifts(); shifted.cost() < w.cost() {
			w = shifted
		}
	}
	byStride(w.m, func(x axis) int { return x.a })
	byStride(w.n, func(x axis) int { return x.b })
	byStride(w.k, func(x axis) int { return x.a })
	swap := swapPays(sizes(w.m), sizes(w.n)) || w.n[len(w.n)-1].c != 1 && w.m[len(w.m)-1].c == 1 || few
	if err := piece.q.set(w.m, w.n, w.k, w.a, w.b, w.at, swap); err != nil {
		return fmt.Errorf("convolution: %w", err)
	}
	joinTaps(&piece.q.c.a)
	joinTaps(&piece.q.c.b)
	piece.q.narrow(s.Stored)
	c.pieces = append(c.pieces, piece)
	return nil
}

// fewRead reports whether so few outputs of a class read the kernel, whose input channels are adjacent, that a product should read it in
// place rather than pack it.
func (s *ConvSpec) fewRead(outputs int) bool {
	return !s.Stored[1] && s.KernelStrides.Channel == 1 && s.KernelStrides.Batch != 1 && s.InChannels/s.Groups%blockK == 0 &&
		outputs < s.OutChannels && outputs <= C.FEW_PANELS*int(C.tile_cols())
}

// reading is a way to express a convolution as a product.
type reading struct {
	m, n, k []axis
	a, b    operandBase
	at      int // offset of the first output
}

// cost returns the approximate time of the product, in multiplications: packing an element takes as long as about 24 of them.
func (r reading) cost() int {
	m, n, k := sizes(r.m), sizes(r.n), sizes(r.k)
	return m*n*k + 24*(m+n)*k
}

// windows reads the input in patches: rows are outputs, the contraction runs over the kernel.
func (c *Conv) windows(phase int) reading {
	s := &c.spec
	r := reading{
		m: []axis{{size: s.Batch / s.BatchGroups, a: s.InStrides.Batch, c: s.OutStrides.Batch, dim: -1}},
		n: []axis{{size: s.OutChannels / (s.Groups * s.BatchGroups), b: s.KernelStrides.Batch, c: s.OutStrides.Channel, dim: -1}},
		k: []axis{{size: s.InChannels / s.Groups, a: s.InStrides.Channel, b: s.KernelStrides.Channel, dim: -1}},
		a: unbounded(0), b: unbounded(0),
	}
	for d := range s.In {
		f := s.tapsOf(d, phase%s.phases(d), c.out[d])
		phase /= s.phases(d)
		r.m = append(r.m, axis{f.outputs, f.move * s.InStrides.Spatial[d], 0, f.every * s.OutStrides.Spatial[d], d, f.move})
		r.k = append(r.k, axis{f.taps, f.tapMove * s.InStrides.Spatial[d], f.tapEvery * s.KernelStrides.Spatial[d], 0, d, f.tapMove})
		r.a.offset += f.start * s.InStrides.Spatial[d]
		r.a.pos[d] = f.start
		if f.outside(s.In[d]) {
			r.a.size[d] = s.In[d]
		}
		r.b.offset += f.firstTap * s.KernelStrides.Spatial[d]
		r.at += f.first * s.OutStrides.Spatial[d]
	}
	return r
}

// slides reports whether every step is one pixel, so that the convolution can also be computed by shifting the kernel.
func (c *Conv) slides() bool {
	for d := range c.spec.In {
		if c.spec.Stride[d] != 1 || c.spec.InDilation[d] != 1 || c.spec.KernelDilation[d] != 1 {
			return false
		}
	}
	return true
}

// shifts reads the kernel in patches: the contraction runs over the input, and columns are outputs, each of which uses the
// kernel shifted by its position. It is faster if few outputs use a large kernel, as in the gradient for a kernel.
func (c *Conv) shifts() reading {
	s := &c.spec
	r := reading{
		m: []axis{{size: s.Batch / s.BatchGroups, a: s.InStrides.Batch, c: s.OutStrides.Batch, dim: -1}},
		n: []axis{{size: s.OutChannels / (s.Groups * s.BatchGroups), b: s.KernelStrides.Batch, c: s.OutStrides.Channel, dim: -1}},
		k: []axis{{size: s.InChannels / s.Groups, a: s.InStrides.Channel, b: s.KernelStrides.Channel, dim: -1}},
		a: unbounded(0), b: unbounded(0),
	}
	for d := range s.In {
		step, first := s.KernelStrides.Spatial[d], s.PadLow[d]
		if s.Reverse[d] {
			step, first = -step, first-(s.Kernel[d]-1)
		}
		r.n = append(r.n, axis{c.out[d], 0, -step, s.OutStrides.Spatial[d], d, -1})
		r.k = append(r.k, axis{s.In[d], s.InStrides.Spatial[d], step, 0, d, 1})
		r.b.offset += first * step
		r.b.pos[d] = s.PadLow[d]
		if s.PadLow[d]-(c.out[d]-1) < 0 || s.PadLow[d]+s.In[d]-1 >= s.Kernel[d] {
			r.b.size[d] = s.Kernel[d]
		}
	}
	return r
}

// phaseTaps has the outputs of one class in one dimension, and the taps that they use.
type phaseTaps struct {
	first, every, outputs    int // outputs first, first+every, …
	firstTap, tapEvery, taps int // taps firstTap, firstTap+tapEvery, …
	start                    int // input position of the first output's first tap
	move, tapMove            int // change of the input position from output to output, and from tap to tap
}

// firstClass returns the number of outputs of the first class, of all images. No class has more.
func (s *ConvSpec) firstClass() int {
	out, _ := s.outShape()
	n := s.Batch
	for d, extent := range out {
		n *= s.tapsOf(d, 0, extent).outputs
	}
	return n
}

// tapsOf solves (p·stride + t·kernelDilation − padding) ≡ 0 mod inDilation for the outputs p ≡ phase.
func (s *ConvSpec) tapsOf(d, phase, out int) phaseTaps {
	stride, holes, kd := s.Stride[d], s.InDilation[d], s.KernelDilation[d]
	f := phaseTaps{first: phase, every: s.phases(d), tapEvery: holes / gcd(kd, holes)}
	f.outputs = max(0, (out-phase+f.every-1)/f.every)
	f.move, f.tapMove = f.every*stride/holes, f.tapEvery*kd/holes
	tap := 0
	for tap < f.tapEvery && (phase*stride+tap*kd-s.PadLow[d])%holes != 0 {
		tap++
	}
	if tap < f.tapEvery && tap < s.Kernel[d] {
		f.taps = (s.Kernel[d]-tap-1)/f.tapEvery + 1
		f.start = (phase*stride + tap*kd - s.PadLow[d]) / holes
		f.firstTap = tap
	}
	if s.Reverse[d] {
		f.firstTap, f.tapEvery = s.Kernel[d]-1-f.firstTap, -f.tapEvery
	}
	return f
}

// outside reports whether some tap of some output lies outside an input of that extent.
func (f phaseTaps) outside(extent int) bool {
	return f.start < 0 || f.start+(f.outputs-1)*f.move+(f.taps-1)*f.tapMove >= extent
}

// tap returns where the kernel's extent has the i-th tap.
func (f phaseTaps) tap(i int) int { return f.firstTap + i*f.tapEvery }

// tapAt returns the offset in the kernel of taps i and j of a class of outputs in two dimensions.
func (s *ConvSpec) tapAt(y, x phaseTaps, i, j int) int {
	return y.tap(i)*s.KernelStrides.Spatial[0] + x.tap(j)*s.KernelStrides.Spatial[1]
}

// kernelRows reports whether the kernel has its output channels in rows of adjacent floats, a multiple of so many.
func (s *ConvSpec) kernelRows(floats int) bool {
	return !s.Stored[1] && s.KernelStrides.Batch == 1 && s.OutChannels%floats == 0
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Narrows reports which operands may be stored as bfloat16 without costing time: those that are staged or packed, not read in place.
func (c *Conv) Narrows() Stored {
	switch {
	case c.spec.Groups*c.spec.BatchGroups > 1:
		return Stored{}
	case c.minimal != nil:
		return Stored{c.minimal.q.half != halfNone, c.minimal.q.half != halfNone}
	case c.gradient != nil:
		return Stored{c.gradient.q.half != halfNone, c.gradient.q.half != halfNone}
	case c.direct != nil:
		return Stored{true, c.direct.pairs == nil && c.direct.q.far == 0}
	case c.kernel != nil:
		return Stored{true, C.correlates_in_place(&c.kernel.q) == 0}
	}
	return Stored{true, !c.fewRead()}
}

// Rounds reports whether the output may be rounded to bfloat16 and stored so without costing time: if tiles of bfloat16 compute it in registers.
func (c *Conv) Rounds() bool {
	switch {
	case c.spec.Operands != Halves || c.spec.OutStrides.Channel != 1 || c.gradient != nil:
		return false
	case c.minimal != nil:
		return c.minimal.q.half != halfNone
	case c.direct != nil:
		return c.direct.q.half != halfNone && c.direct.q.spread == 0 && c.direct.q.side == 0
	}
	return false
}

// fewRead reports whether a product with few columns, the outputs, reads the kernel in place.
func (c *Conv) fewRead() bool {
	if c.direct != nil || c.kernel != nil || len(c.pieces) == 0 {
		return false
	}
	q := &c.pieces[0].q.c
	return q.half == halfNone && c.spec.fewRead(int(q.n))
}

// Run computes the convolution. It panics if a tensor is smaller than its strides require.
func (c *Conv) Run(p *Pool, input, kernel, output []float32) {
	c.check(input, kernel, output)
	if c.minimal != nil {
		c.minimal.run(p, input, kernel, output)
		return
	}
	if c.gradient != nil {
		c.gradient.run(p, input, kernel, output)
		return
	}
	if c.direct != nil {
		c.direct.run(p, input, kernel, output)
		return
	}
	if c.kernel != nil && c.kernel.run(p, input, kernel, output) {
		return
	}
	if len(c.pieces) >= 2*p.threads && c.pieces[0].flops() < 8*serialFlops {
		w := convs.get()
		w.conv, w.pool, w.input, w.kernel, w.output = c, p, input, kernel, output
		p.run(len(c.pieces), 1, w)
		convs.put(w)
		return
	}
	for i := range c.pieces {
		q := &c.pieces[i]
		p.multiply(&q.q, from(input, q.input), from(kernel, q.kernel), output[q.outp:], false)
	}
}

func (c *Conv) check(input, kernel, output []float32) {
	for i, t := range [3][]float32{input, kernel, output} {
		n := len(t)
		if narrow := [3]bool{c.spec.Stored[0], c.spec.Stored[1], c.spec.Rounds}; narrow[i] {
			n *= 2
		}
		if n < c.reach[i] {
			panic(fmt.Sprintf("convolution: the %s holds %d elements, its strides reach %d", [...]string{"input", "kernel", "output"}[i], n, c.reach[i]))
		}
	}
}

func (q *convPiece) flops() int { return 2 * int(q.q.c.m) * int(q.q.c.n) * int(q.q.c.k) }

// convTask computes pieces, each on one thread.
type convTask struct {
	conv                  *Conv
	pool                  *Pool
	input, kernel, output []float32
}

var convs keep[convTask]

func (w *convTask) do(lo, hi int) {
	for i := lo; i < hi; i++ {
		q := &w.conv.pieces[i]
		w.pool.multiplySerially(&q.q, from(w.input, q.input), from(w.kernel, q.kernel), w.output[q.outp:], false)
	}
}
