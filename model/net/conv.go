package net

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"

	"slotscope/model/layer"
)

// conv is a convolution with padding 1 of x, [B, H, W, I], by kernel, HWIO: 4×4 with stride 2, or 2×2 or 3×3 with stride 1.
//
//	y[n] = Σ_k x[stride·n + k - 1] w[k]         in each direction
//
// Its gradients are our own: those of GoMLX 0.26 for the input of a convolution with an even kernel are one pixel off.
func conv(x, kernel *Node, stride int) *Node {
	y := Convolve(x, kernel).Strides(stride).PaddingPerDim(paddingOf(1)).Done()
	return layer.WithGradient(y, []*Node{x, kernel},
		func(v *Node) *Node { return inputGradient(v, kernel, stride) },
		func(v *Node) *Node { return kernelGradient(x, v, stride) })
}

// inputGradient is the transposed convolution of the adjoint.
//
//	∂x[p] = Σ_n v[n] w[p + 1 - stride·n]
//
// With stride 1 that is a convolution by the reversed kernel, with stride 2 ConvTranspose.
func inputGradient(v, kernel *Node, stride int) *Node {
	if stride == 2 {
		return transposed(v, phasesOf(Transpose(kernel, 2, 3)))
	}
	reversed := Transpose(Reverse(kernel, 0, 1), 2, 3)
	return Convolve(v, reversed).PaddingPerDim(paddingOf(kernel.Shape().Dim(0) - 2)).Done()
}

// kernelGradient correlates input and adjoint: ∂w[k] = Σ_n x[stride·n + k - 1] v[n], over all images.
func kernelGradient(x, v *Node, stride int) *Node {
	axes := ConvolveAxesConfig{
		InputBatch: 3, InputChannels: 0, InputSpatial: []int{1, 2},
		KernelInputChannels: 0, KernelOutputChannels: 3, KernelSpatial: []int{1, 2},
		OutputBatch: 2, OutputChannels: 3, OutputSpatial: []int{0, 1},
	}
	return Convolve(x, v).AxesConfig(axes).Dilations(stride).PaddingPerDim(paddingOf(1)).Done()
}

// ConvTranspose is the transposed convolution with a 4×4 kernel w, stride 2 and padding 1, from [B, H, W, I] to [B, 2H, 2W, O]:
//
//	y[n] = Σ_p x[p] w[n + 1 - 2p]               in each direction
//
// It is computed without dilating x, which would multiply three zeros for every number. Output 2q + r - 1 takes only x[q-1] and
// x[q], with taps r+2 and r: a 2×2 convolution over x padded by one yields the four phases (r, s) as channels; depth-to-space
// interleaves them, and a crop of one drops the first and last row and column. kernel is [2, 2, I, 4·O]:
//
//	K[a, b, i, (r, s, o)] = w[i, o, r+2(1-a), s+2(1-b)]
func ConvTranspose(x, kernel *Node) *Node { return interleave(conv(x, kernel, 1)) }

// transposed is ConvTranspose for gradients, itself without one of our own.
func transposed(x, kernel *Node) *Node {
	return interleave(Convolve(x, kernel).PaddingPerDim(paddingOf(1)).Done())
}

// interleave turns phases [B, H+1, W+1, 4·O] into an image [B, 2H, 2W, O].
func interleave(phases *Node) *Node {
	batch, h, w := phases.Shape().Dim(0), phases.Shape().Dim(1), phases.Shape().Dim(2)
	y := Reshape(phases, batch, h, w, 2, 2, phases.Shape().Dim(3)/4)
	y = Reshape(TransposeAllAxes(y, 0, 1, 3, 2, 4, 5), batch, 2*h, 2*w, -1)
	return Slice(y, AxisRange(), AxisRange(1, 2*h-1), AxisRange(1, 2*w-1), AxisRange())
}

// phasesOf arranges a 4×4 kernel [4, 4, I, O] as ConvTranspose takes it, [2, 2, I, 4·O].
func phasesOf(kernel *Node) *Node {
	in, out := kernel.Shape().Dim(2), kernel.Shape().Dim(3)
	taps := Reverse(Reshape(kernel, 2, 2, 2, 2, in, out), 0, 2) // [a, r, b, s, i, o]
	return Reshape(TransposeAllAxes(taps, 0, 2, 4, 1, 3, 5), 2, 2, in, 4*out)
}

func paddingOf(n int) [][2]int { return [][2]int{{n, n}, {n, n}} }
