//go:build cgo

package cpu

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/pkg/errors"
)

// dotArgs lists axes of the left and the right operand, in pairs.
type dotArgs struct {
	leftSum, leftBatch, rightSum, rightBatch []int
}

// DotGeneral sums products over the contracted axes, separately for each index of the batch axes.
// The result has the batch axes, then the other axes of the left operand, then those of the right.
func (b *Builder) DotGeneral(left backends.Op, leftSum, leftBatch []int, right backends.Op, rightSum, rightBatch []int) (backends.Op, error) {
	in, err := b.operands("DotGeneral", left, right)
	if err != nil {
		return nil, err
	}
	l, r := in[0].shape, in[1].shape
	args := dotArgs{wrapAxes(leftSum, l), wrapAxes(leftBatch, l), wrapAxes(rightSum, r), wrapAxes(rightBatch, r)}
	shape, err := dotShape(l, r, args)
	if err != nil {
		return nil, err
	}
	return b.add(backends.OpTypeDotGeneral, shape, args, in...), nil
}

// wrapAxes copies axes; negative ones count from the last axis.
func wrapAxes(axes []int, shape shapes.Shape) []int {
	axes = slices.Clone(axes)
	for i, a := range axes {
		if a < 0 {
			axes[i] = a + shape.Rank()
		}
	}
	return axes
}

func dotShape(l, r shapes.Shape, args dotArgs) (shapes.Shape, error) {
	if l.DType != r.DType || l.DType == dtypes.Bool {
		return shapes.Invalid(), errors.Errorf("DotGeneral of %s and %s: both must have the same numeric type", l, r)
	}
	if err := checkAxes("DotGeneral", l, append(slices.Clone(args.leftBatch), args.leftSum...)); err != nil {
		return shapes.Invalid(), err
	}
	if err := checkAxes("DotGeneral", r, append(slices.Clone(args.rightBatch), args.rightSum...)); err != nil {
		return shapes.Invalid(), err
	}
	if !sameDims(l, r, args.leftSum, args.rightSum) || !sameDims(l, r, args.leftBatch, args.rightBatch) {
		return shapes.Invalid(), errors.Errorf("DotGeneral of %s and %s: contracted axes %v, %v and batch axes %v, %v do not match",
			l, r, args.leftSum, args.rightSum, args.leftBatch, args.rightBatch)
	}
	dims := pick(l.Dimensions, args.leftBatch)
	dims = append(dims, pick(l.Dimensions, otherAxes(l.Rank(), args.leftBatch, args.leftSum))...)
	dims = append(dims, pick(r.Dimensions, otherAxes(r.Rank(), args.rightBatch, args.rightSum))...)
	return shapes.Make(l.DType, dims...), nil
}

func sameDims(l, r shapes.Shape, la, ra []int) bool {
	return slices.Equal(pick(l.Dimensions, la), pick(r.Dimensions, ra))
}

// pick returns the entries of v at the axes.
func pick(v, axes []int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = v[a]
	}
	return out
}

// otherAxes returns the axes below rank that none of the lists contains, in order.
func otherAxes(rank int, lists ...[]int) []int {
	var out []int
	for a := range rank {
		if !slices.ContainsFunc(lists, func(l []int) bool { return slices.Contains(l, a) }) {
			out = append(out, a)
		}
	}
	return out
}

// Dot multiplies vectors and matrices: it contracts the last axis of left with the first of right.
func (b *Builder) Dot(left, right backends.Op) (backends.Op, error) {
	in, err := b.operands("Dot", left, right)
	if err != nil {
		return nil, err
	}
	l, r := in[0].shape.Rank(), in[1].shape.Rank()
	if l < 1 || l > 2 || r < 1 || r > 2 {
		return nil, errors.Errorf("Dot of %s and %s: both must be vectors or matrices", in[0].shape, in[1].shape)
	}
	return b.DotGeneral(left, []int{l - 1}, nil, right, []int{0}, nil)
}

// convArgs has one entry per spatial axis.
type convArgs struct {
	axes                                     backends.ConvolveAxesConfig
	strides, inputDilations, kernelDilations []int
	paddings                                 [][2]int
	channelGroups, batchGroups               int
}

// ConvGeneral convolves (more precisely: correlates) input with kernel:
//
//	out[b, p, o] = Σ_{k, i} in[b, (p·stride + k·kernelDilation − padding) / inputDilation, i] · kernel[k, i, o]
//
// Positions outside the input, and those between elements of a dilated input, count as 0.
func (b *Builder) ConvGeneral(input, kernel backends.Op, axes backends.ConvolveAxesConfig, strides []int, paddings [][2]int,
	inputDilations, kernelDilations []int, channelGroups, batchGroups int) (op backends.Op, err error) {
	defer guard(backends.OpTypeConvGeneral, &err)
	in, err := b.operands("ConvGeneral", input, kernel)
	if err != nil {
		return nil, err
	}
	x, k := in[0].shape, in[1].shape
	if x.DType != k.DType || x.DType == dtypes.Bool {
		return nil, errors.Errorf("ConvGeneral of %s with %s: both must have the same numeric type", x, k)
	}
	spatial := max(0, x.Rank()-2)
	args := convArgs{axes.Clone(), orOnes(strides, spatial), orOnes(inputDilations, spatial), orOnes(kernelDilations, spatial),
		orZeros(paddings, spatial), max(1, channelGroups), max(1, batchGroups)}
	shape, err := shapeinference.ConvGeneralOp(x, k, args.axes, args.strides, args.paddings,
		args.inputDilations, args.kernelDilations, args.channelGroups, args.batchGroups)
	if err != nil {
		return nil, err
	}
	return b.add(backends.OpTypeConvGeneral, shape, args, in...), nil
}
