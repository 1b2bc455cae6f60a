package kernel

/*
#include "direct.h"
*/
import "C"

// pairing is a convolution in which each output stands for two adjacent ones: their channels together fill a vector, while those of a
// single output fill at most half. Its kernel contains the original kernel twice, the second time shifted right by one stride.
type pairing struct{ of, wide ConvSpec }

// planPairs computes outputs in pairs if that is possible and takes fewer vectors.
func (c *Conv) planPairs() error {
	p, ok := c.pair()
	if !ok {
		return nil
	}
	wide := Conv{spec: p.wide}
	var err error
	if wide.out, err = p.wide.outShape(); err != nil {
		return err
	}
	w, err := wide.planWindows(&p, halfNone, 1)
	if err != nil || w == nil || 10*w.flops > 19*c.direct.flops { // a pair uses more taps than one output
		return err
	}
	w.flops = c.direct.flops
	c.direct = w
	return nil
}

// pair returns the convolution of pairs, if windows are read directly and the outputs of a pair are adjacent floats.
func (c *Conv) pair() (p pairing, ok bool) {
	s, n := c.spec, c.spec.OutChannels
	if c.direct == nil || c.direct.q.eights == 1 || c.direct.q.spread > 0 || s.Stored[1] || n <= C.FEW_COLS || 2*n > vectorFloats() || c.out[1]%2 != 0 || s.KernelDilation[1] != 1 ||
		s.OutStrides.Channel != 1 || s.OutStrides.Spatial[1] != n {
		return p, false
	}
	w := s
	w.OutChannels, w.Stride, w.Kernel = 2*n, []int{s.Stride[0], 2 * s.Stride[1]}, []int{s.Kernel[0], s.Kernel[1] + s.Stride[1]}
	w.Reverse = []bool{false, false}
	w.OutStrides.Spatial = []int{s.OutStrides.Spatial[0], 2 * n}
	tap := s.InChannels * w.OutChannels
	w.KernelStrides = TensorStrides{Batch: 1, Channel: w.OutChannels, Spatial: []int{w.Kernel[1] * tap, tap}}
	return pairing{s, w}, true
}

// lanes returns the bits of the columns that use a tap: the left output uses those of the convolution, the right one those shifted right by one stride.
func (p *pairing) lanes(tap int) (bits C.int64_t) {
	n := p.of.OutChannels
	if tap < p.of.Kernel[1] {
		bits = 1<<n - 1
	}
	if tap >= p.of.Stride[1] {
		bits |= (1<<n - 1) << n
	}
	return bits
}

// floats returns the size of the kernel of pairs, in floats.
func (p *pairing) floats() int { return p.wide.Kernel[0] * p.wide.KernelStrides.Spatial[0] }

// widen writes the kernel of pairs.
func (p *pairing) widen(to, kernel []float32) {
	s, n, ks := &p.of, p.of.OutChannels, p.of.KernelStrides
	tap := func(d, t int) int {
		if s.Reverse[d] {
			t = s.Kernel[d] - 1 - t
		}
		return t * ks.Spatial[d]
	}
	clear(to)
	for y := range s.Kernel[0] {
		for x := range 2 * s.Kernel[1] {
			x, half := x/2, x%2
			at := y*p.wide.KernelStrides.Spatial[0] + (x+half*s.Stride[1])*p.wide.KernelStrides.Spatial[1] + half*n
			from := kernel[tap(0, y)+tap(1, x):]
			for i := range s.InChannels {
				for o := range n {
					to[at+2*n*i+o] = from[i*ks.Channel+o*ks.Batch]
				}
			}
		}
	}
}
