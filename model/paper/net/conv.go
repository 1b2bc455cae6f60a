package net

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"

	"slotscope/model/paper/layer"
)

// Gradients here are custom: those of GoMLX 0.26 for the input of a convolution with an even kernel are off by one pixel, and it has
// none for a dilated input. Kernels are never transposed in memory: the axes configuration of a convolution selects how it reads them.

// conv convolves x, [B, H, W, I], with kernel, HWIO, and padding 1: 4×4 with stride 2, or 3×3 with stride 1.
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

// ConvTranspose computes the transposed convolution with a 4×4 kernel, stride 2 and padding 1, from [B, H, W, I] to [B, 2H, 2W, O];
// kernel is HWIO:
//
//	y[n] = Σ_p x[p] w[n + 1 - 2p]               in each direction
func ConvTranspose(x, kernel *Node) *Node {
	y := spread(x, kernel, 2, inputsFirst)
	return layer.WithGradient(y, []*Node{x, kernel},
		func(v *Node) *Node { return gather(v, kernel) },
		func(v *Node) *Node { return correlate(v, x, 2, 3, 2) })
}

// channels holds the axes of a kernel that are its input and output channels.
type channels struct{ in, out int }

var inputsFirst, outputsFirst = channels{2, 3}, channels{3, 2}

// spread places a kernel, weighted by x, at every pixel of x, stride pixels apart:
//
//	y[n] = Σ_p x[p] w[n + 1 - stride·p]         H → stride·H
//
// This is the transpose of conv, and its gradient with respect to the input. It is written as a convolution with the reversed kernel over
// x with stride - 1 zeros between its pixels; engines skip these zeros.
func spread(x, kernel *Node, stride int, c channels) *Node {
	k := kernel.Shape().Dim(0)
	return Convolve(x, Reverse(kernel, 0, 1)).AxesConfig(axesOf(c)).InputDilationPerAxis(stride, stride).
		PaddingPerDim(paddingOf(k - 2)).Done()
}

// gather computes the transpose of ConvTranspose: ∂x[p] = Σ_k v[2p + k - 1] w[k].
func gather(v, kernel *Node) *Node {
	return Convolve(v, kernel).AxesConfig(axesOf(outputsFirst)).Strides(2).PaddingPerDim(paddingOf(1)).Done()
}

// correlate computes the gradient with respect to a kernel: ∂w[k] = Σ_n x[stride·n + k - 1] v[n], over all images. The channels of x and
// v become the result's axes ofX and ofV.
func correlate(x, v *Node, stride, ofX, ofV int) *Node {
	axes := ConvolveAxesConfig{
		InputBatch: 3, InputChannels: 0, InputSpatial: []int{1, 2},
		KernelInputChannels: 0, KernelOutputChannels: 3, KernelSpatial: []int{1, 2},
		OutputBatch: ofX, OutputChannels: ofV, OutputSpatial: []int{0, 1},
	}
	return Convolve(x, v).AxesConfig(axes).Dilations(stride).PaddingPerDim(paddingOf(1)).Done()
}

// axesOf returns the axes of a convolution of [B, H, W, C] with a kernel whose channel axes are c.
func axesOf(c channels) ConvolveAxesConfig {
	return ConvolveAxesConfig{
		InputBatch: 0, InputSpatial: []int{1, 2}, InputChannels: 3,
		KernelSpatial: []int{0, 1}, KernelInputChannels: c.in, KernelOutputChannels: c.out,
		OutputBatch: 0, OutputSpatial: []int{1, 2}, OutputChannels: 3,
	}
}

func paddingOf(n int) [][2]int { return [][2]int{{n, n}, {n, n}} }
