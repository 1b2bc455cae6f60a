package net

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"

	"slotscope/model/paper/layer"
)

// Gradients here are our own: those of GoMLX 0.26 for the input of a convolution with an even kernel are one pixel off, and it has
// none for a dilated input. Kernels are never turned round or transposed in memory: the axes of a convolution say how it reads them.

// conv is a convolution with padding 1 of x, [B, H, W, I], by kernel, HWIO: 4×4 with stride 2, or 3×3 with stride 1.
//
//	y[n] = Σ_k x[stride·n + k - 1] w[k]         in each direction
func conv(x, kernel *Node, stride int) *Node {
	y := Convolve(x, kernel).Strides(stride).PaddingPerDim(paddingOf(1)).Done()
	return layer.WithGradient(y, []*Node{x, kernel},
		func(v *Node) *Node { return spread(v, kernel, stride, outputsFirst) },
		func(v *Node) *Node { return correlate(x, v, stride, 2, 3) })
}

// halving is conv with stride 2, keeping with stride 1.
func halving(x, kernel *Node) *Node { return conv(x, kernel, 2) }
func keeping(x, kernel *Node) *Node { return conv(x, kernel, 1) }

// ConvTranspose is the transposed convolution with a 4×4 kernel, stride 2 and padding 1, from [B, H, W, I] to [B, 2H, 2W, O]; kernel
// is HWIO:
//
//	y[n] = Σ_p x[p] w[n + 1 - 2p]               in each direction
func ConvTranspose(x, kernel *Node) *Node {
	y := spread(x, kernel, 2, inputsFirst)
	return layer.WithGradient(y, []*Node{x, kernel},
		func(v *Node) *Node { return gather(v, kernel) },
		func(v *Node) *Node { return correlate(v, x, 2, 3, 2) })
}

// channels are the axes of a kernel whose channels meet those of the input, and give those of the output.
type channels struct{ in, out int }

var inputsFirst, outputsFirst = channels{2, 3}, channels{3, 2}

// spread puts a kernel down at every pixel of x, stride pixels apart:
//
//	y[n] = Σ_p x[p] w[n + 1 - stride·p]         H → stride·H
//
// which is the transpose of conv, and its gradient for the input. It is written as a convolution by the reversed kernel over x with
// stride - 1 zeros between its pixels; engines do not multiply by these.
func spread(x, kernel *Node, stride int, c channels) *Node {
	k := kernel.Shape().Dim(0)
	return Convolve(x, Reverse(kernel, 0, 1)).AxesConfig(axesOf(c)).InputDilationPerAxis(stride, stride).
		PaddingPerDim(paddingOf(k - 2)).Done()
}

// gather is the transpose of ConvTranspose: ∂x[p] = Σ_k v[2p + k - 1] w[k].
func gather(v, kernel *Node) *Node {
	return Convolve(v, kernel).AxesConfig(axesOf(outputsFirst)).Strides(2).PaddingPerDim(paddingOf(1)).Done()
}

// correlate is the gradient for a kernel: ∂w[k] = Σ_n x[stride·n + k - 1] v[n], over all images. The channels of x and of v become
// the result's axes of these numbers.
func correlate(x, v *Node, stride, ofX, ofV int) *Node {
	axes := ConvolveAxesConfig{
		InputBatch: 3, InputChannels: 0, InputSpatial: []int{1, 2},
		KernelInputChannels: 0, KernelOutputChannels: 3, KernelSpatial: []int{1, 2},
		OutputBatch: ofX, OutputChannels: ofV, OutputSpatial: []int{0, 1},
	}
	return Convolve(x, v).AxesConfig(axes).Dilations(stride).PaddingPerDim(paddingOf(1)).Done()
}

// axesOf is a convolution of [B, H, W, C] by a kernel with channels where c says.
func axesOf(c channels) ConvolveAxesConfig {
	return ConvolveAxesConfig{
		InputBatch: 0, InputSpatial: []int{1, 2}, InputChannels: 3,
		KernelSpatial: []int{0, 1}, KernelInputChannels: c.in, KernelOutputChannels: c.out,
		OutputBatch: 0, OutputSpatial: []int{1, 2}, OutputChannels: 3,
	}
}

func paddingOf(n int) [][2]int { return [][2]int{{n, n}, {n, n}} }
