//go:build cgo

package cpu

import (
	"slices"
	"unsafe"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/cpu/move"
)

// conv is a ConvGeneral with all values that its loops need.
type conv struct {
	convArgs
	batch, channels, features int // of the output's batch, the kernel's input channels, the output's channels
	in, kernel, out           convSide
	inputBatch, inputChannels int
}

// convSide has the dimensions and strides (in elements) of an array of a convolution. Its first and second axis are batch and
// channels of the input and output, and input and output channels of the kernel.
type convSide struct {
	first, second int   // strides
	dims, strides []int // spatial
}

func newConvSide(n *node, first, second int, spatial []int) convSide {
	strides := rowMajor(n.shape.Dimensions)
	return convSide{strides[first], strides[second], pick(n.shape.Dimensions, spatial), pick(strides, spatial)}
}

func newConv(n *node) *conv {
	a := n.args.(convArgs)
	x := a.axes
	return &conv{
		convArgs: a, batch: n.shape.Dimensions[x.OutputBatch], features: n.shape.Dimensions[x.OutputChannels],
		channels:   n.in[1].shape.Dimensions[x.KernelInputChannels],
		inputBatch: n.in[0].shape.Dimensions[x.InputBatch], inputChannels: n.in[0].shape.Dimensions[x.InputChannels],
		in:     newConvSide(n.in[0], x.InputBatch, x.InputChannels, x.InputSpatial),
		kernel: newConvSide(n.in[1], x.KernelInputChannels, x.KernelOutputChannels, x.KernelSpatial),
		out:    newConvSide(n, x.OutputBatch, x.OutputChannels, x.OutputSpatial),
	}
}

func makeConv(n *node) task {
	c := newConv(n)
	if n.shape.DType == dtypes.Float32 {
		if t, ok := c.task(n, kernel.Stored{}, false); ok {
			return t
		}
	}
	loop := c.loop(n.shape.DType)
	return task{run: func(pool *kernel.Pool, out, in [][]byte) { loop(pool, out[0], in[0], in[1]) }}
}

// task returns a float32 convolution by the kernels, or false if they do not support it.
func (c *conv) task(n *node, stored kernel.Stored, rounds bool) (task, bool) {
	spec, kern := c.spec(n, stored)
	spec.Rounds = rounds
	plan, err := kernel.PlanConv(spec)
	if err != nil {
		return task{}, false
	}
	return task{
		division: c.divide(n, plan),
		reads:    []*node{n.in[0], kern},
		narrows:  narrows(n, plan.Narrows()),
		rounds:   n.halves && plan.Rounds(),
		narrow:   func(stored kernel.Stored, rounds bool) task { t, _ := c.task(n, stored, rounds); return t },
		run: func(pool *kernel.Pool, out, in [][]byte) {
			plan.Run(pool, move.Of[float32](in[0]), move.Of[float32](in[1]), move.Of[float32](out[0]))
		},
	}, true
}

// spec describes the convolution to the kernels, which read kern instead of its second operand.
func (c *conv) spec(n *node, stored kernel.Stored) (spec kernel.ConvSpec, kern *node) {
	kern, reverse := reversed(n.in[1], c.axes.KernelSpatial)
	low, high := make([]int, len(c.paddings)), make([]int, len(c.paddings))
	for i, p := range c.paddings {
		low[i], high[i] = p[0], p[1]
	}
	return kernel.ConvSpec{
		Batch: c.inputBatch, InChannels: c.inputChannels, OutChannels: c.features, Groups: c.channelGroups, BatchGroups: c.batchGroups,
		In: c.in.dims, Kernel: c.kernel.dims, Stride: c.strides, PadLow: low, PadHigh: high,
		InDilation: c.inputDilations, KernelDilation: c.kernelDilations, Reverse: reverse, Operands: operands(n), Stored: stored,
		InStrides:     kernel.TensorStrides{Batch: c.in.first, Channel: c.in.second, Spatial: c.in.strides},
		KernelStrides: kernel.TensorStrides{Batch: c.kernel.second, Channel: c.kernel.first, Spatial: c.kernel.strides},
		OutStrides:    kernel.TensorStrides{Batch: c.out.first, Channel: c.out.second, Spatial: c.out.strides},
	}, kern
}

// divide returns how the convolution can be computed image by image, or nil.
func (c *conv) divide(n *node, plan *kernel.Conv) *division {
	size, flops, ok := plan.Whole()
	if !ok || c.batch < 2 || c.in.first*c.inputBatch != n.in[0].shape.Size() || c.out.first*c.batch != n.shape.Size() {
		return nil
	}
	return &division{op: plan, parts: c.batch, kernel: 4 * size, flops: int64(flops), divided: []bool{true, false}}
}

// reversed returns the operand of a reversal of a kernel's spatial axes, which the gradient for a convolution's input has, and the
// reversed axes. It returns k itself if there is no such reversal.
func reversed(k *node, spatial []int) (from *node, reverse []bool) {
	reverse = make([]bool, len(spatial))
	if k.op != backends.OpTypeReverse {
		return k, reverse
	}
	for _, a := range k.args.(reverseArgs) {
		i := slices.Index(spatial, a)
		if i < 0 {
			return k, make([]bool, len(spatial))
		}
		reverse[i] = true
	}
	return k.in[0], reverse
}

// loop returns the portable convolution for a data type.
func (c *conv) loop(dtype dtypes.DType) func(pool *kernel.Pool, out, in, kern []byte) {
	switch dtype {
	case dtypes.Int8:
		return convolve[int8](c)
	case dtypes.Int16:
		return convolve[int16](c)
	case dtypes.Int32:
		return convolve[int32](c)
	case dtypes.Int64:
		return convolve[int64](c)
	case dtypes.Uint8:
		return convolve[uint8](c)
	case dtypes.Uint16:
		return convolve[uint16](c)
	case dtypes.Uint32:
		return convolve[uint32](c)
	case dtypes.Uint64:
		return convolve[uint64](c)
	case dtypes.Float64:
		return convolve[float64](c)
	case dtypes.Complex64:
		return convolve[complex64](c)
	case dtypes.Complex128:
		return convolve[complex128](c)
	case dtypes.Float32:
		return convolve[float32](c)
	}
	return c.half(dtype)
}

// half convolves 16-bit floats as float32.
func (c *conv) half(dtype dtypes.DType) func(pool *kernel.Pool, out, in, kern []byte) {
	widen, narrow := convertFn(dtype, dtypes.Float32), convertFn(dtypes.Float32, dtype)
	loop := c.loop(dtypes.Float32)
	return func(pool *kernel.Pool, out, in, kern []byte) {
		wideOut := newMemory(len(out) * 2)
		loop(pool, wideOut[:len(out)*2], wide(widen, in), wide(widen, kern))
		narrow(pointer(out), sources(wideOut), len(out)/2)
	}
}

// wide converts 16-bit floats to float32.
func wide(widen blockFn, in []byte) []byte {
	mem := newMemory(len(in) * 2)
	widen(pointer(mem), sources(in), len(in)/2)
	return mem[:len(in)*2]
}

func pointer(mem []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(mem)) }

func sources(mem []byte) [3]unsafe.Pointer { return [3]unsafe.Pointer{pointer(mem)} }

// convolve is the portable convolution: for each output position and each kernel tap that falls on an input element,
// a product over channels.
func convolve[T number | complexNumber](c *conv) func(pool *kernel.Pool, out, in, kern []byte) {
	positions := move.Size(c.out.dims)
	work := c.features * c.channels * move.Size(c.kernel.dims)
	return func(pool *kernel.Pool, out, in, kern []byte) {
		o, x, k := move.Of[T](out), move.Of[T](in), move.Of[T](kern)
		pool.Run(c.batch*positions, max(1, 1<<16/max(1, work)), func(lo, hi int) {
			taps := newTaps(c)
			for i := lo; i < hi; i++ {
				b := i / positions
				to := b*c.out.first + taps.at(c, i%positions)
				for f := range c.features {
					o[to+f*c.out.second] = convolveAt(c, taps, x, k, b, f)
				}
			}
		})
	}
}

// convolveAt computes one output element, of batch b and feature f, at the position of the taps.
func convolveAt[T number | complexNumber](c *conv, t *taps, x, k []T, b, f int) T {
	perGroup := c.features / c.channelGroups
	from := f / perGroup * c.channels * c.in.second
	if c.batchGroups > 1 {
		b += f / (c.features / c.batchGroups) * c.batch
	}
	from += b * c.in.first
	var sum T
	for i, at := range t.in {
		xi, ki := from+at, t.kernel[i]+f*c.kernel.second
		for range c.channels {
			sum += x[xi] * k[ki]
			xi += c.in.second
			ki += c.kernel.first
		}
	}
	return sum
}

// taps has the offsets of the input and kernel elements that are multiplied at an output position.
type taps struct{ in, kernel []int }

func newTaps(c *conv) *taps { return &taps{} }

// at sets the taps of a position and returns its offset in the output.
func (t *taps) at(c *conv, position int) int {
	t.in, t.kernel = append(t.in[:0], 0), append(t.kernel[:0], 0)
	to := 0
	for a := len(c.out.dims) - 1; a >= 0; a-- {
		p := position % c.out.dims[a]
		position /= c.out.dims[a]
		to += p * c.out.strides[a]
		t.extend(c, a, p)
	}
	return to
}

// extend combines the taps with those of one more axis.
func (t *taps) extend(c *conv, a, p int) {
	n := len(t.in)
	for k := range c.kernel.dims[a] {
		at := p*c.strides[a] + k*c.kernelDilations[a] - c.paddings[a][0]
		if at < 0 || at%c.inputDilations[a] != 0 || at/c.inputDilations[a] >= c.in.dims[a] {
			continue
		}
		for i := range n {
			t.in = append(t.in, t.in[i]+at/c.inputDilations[a]*c.in.strides[a])
			t.kernel = append(t.kernel, t.kernel[i]+k*c.kernel.strides[a])
		}
	}
	t.in, t.kernel = append(t.in[:0], t.in[n:]...), append(t.kernel[:0], t.kernel[n:]...)
}
