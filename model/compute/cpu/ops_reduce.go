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

// reduceArgs lists the reduced axes, in order.
type reduceArgs []int

// reduce adds a reduction over the axes, which are removed; no axes means all.
func (b *Builder) reduce(op backends.OpType, x backends.Op, axes []int) (backends.Op, error) {
	in, err := b.operands(op.String(), x)
	if err != nil {
		return nil, err
	}
	from := in[0].shape
	if err := checkReduceType(op, from); err != nil {
		return nil, err
	}
	if len(axes) == 0 {
		for a := range from.Rank() {
			axes = append(axes, a)
		}
	}
	if err := checkAxes(op.String(), from, axes); err != nil {
		return nil, err
	}
	shape, err := shapeinference.ReduceOp(from, axes)
	if err != nil {
		return nil, err
	}
	args := reduceArgs(slices.Clone(axes))
	slices.Sort(args)
	return b.add(op, shape, args, in...), nil
}

// checkReduceType rejects logical operations on numbers, bitwise ones on floats, sums of booleans and maxima of complex numbers.
func checkReduceType(op backends.OpType, from shapes.Shape) error {
	ok := true
	switch op {
	case backends.OpTypeReduceLogicalAnd, backends.OpTypeReduceLogicalOr, backends.OpTypeReduceLogicalXor:
		ok = from.DType == dtypes.Bool
	case backends.OpTypeReduceBitwiseAnd, backends.OpTypeReduceBitwiseOr, backends.OpTypeReduceBitwiseXor:
		ok = from.DType.IsInt()
	case backends.OpTypeReduceSum, backends.OpTypeReduceProduct:
		ok = from.DType != dtypes.Bool
	case backends.OpTypeReduceMax, backends.OpTypeReduceMin:
		ok = !from.DType.IsComplex()
	}
	if !ok {
		return errors.Errorf("%s of %s: not defined for this type", op, from)
	}
	return nil
}

// ReduceSum sums over the axes, or over all if none are given.
func (b *Builder) ReduceSum(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceSum, x, axes)
}

// ReduceProduct multiplies over the axes, or over all if none are given.
func (b *Builder) ReduceProduct(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceProduct, x, axes)
}

// ReduceMax returns the maximum over the axes, or over all if none are given; NaN if any element is NaN.
func (b *Builder) ReduceMax(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceMax, x, axes)
}

// ReduceMin returns the minimum over the axes, or over all if none are given; NaN if any element is NaN.
func (b *Builder) ReduceMin(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceMin, x, axes)
}

// ReduceBitwiseAnd combines integers with & over the axes, or over all if none are given.
func (b *Builder) ReduceBitwiseAnd(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceBitwiseAnd, x, axes)
}

// ReduceBitwiseOr combines integers with | over the axes, or over all if none are given.
func (b *Builder) ReduceBitwiseOr(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceBitwiseOr, x, axes)
}

// ReduceBitwiseXor combines integers with ^ over the axes, or over all if none are given.
func (b *Builder) ReduceBitwiseXor(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceBitwiseXor, x, axes)
}

// ReduceLogicalAnd reports whether all booleans along the axes are true.
func (b *Builder) ReduceLogicalAnd(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceLogicalAnd, x, axes)
}

// ReduceLogicalOr reports whether any boolean along the axes is true.
func (b *Builder) ReduceLogicalOr(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceLogicalOr, x, axes)
}

// ReduceLogicalXor reports whether an odd number of booleans along the axes is true.
func (b *Builder) ReduceLogicalXor(x backends.Op, axes ...int) (backends.Op, error) {
	return b.reduce(backends.OpTypeReduceLogicalXor, x, axes)
}

type argArgs struct {
	axis int
	min  bool
}

// ArgMinMax returns the index of the smallest or largest element along an axis: the first of equal ones, or of a NaN if there is one.
func (b *Builder) ArgMinMax(x backends.Op, axis int, dtype dtypes.DType, isMin bool) (backends.Op, error) {
	in, err := b.operands("ArgMinMax", x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ArgMinMaxOp(numeric(in[0].shape), axis, dtype)
	if err != nil {
		return nil, err
	}
	if in[0].shape.Dimensions[axis] == 0 {
		return nil, errors.Errorf("ArgMinMax of %s: axis %d has no elements", in[0].shape, axis)
	}
	return b.add(backends.OpTypeArgMinMax, shape, argArgs{axis, isMin}, in...), nil
}

// numeric returns the shape with booleans as the numbers 0 and 1, which is how they are stored.
func numeric(shape shapes.Shape) shapes.Shape {
	if shape.DType == dtypes.Bool {
		shape.DType = dtypes.Uint8
	}
	return shape
}

// windowArgs has one entry per axis.
type windowArgs struct {
	reduce                                          backends.ReduceOpType
	window, strides, baseDilations, windowDilations []int
	paddings                                        [][2]int
}

// ReduceWindow reduces each window that slides over x. Default strides are the window, default dilations 1, default paddings 0.
func (b *Builder) ReduceWindow(x backends.Op, reduction backends.ReduceOpType,
	window, strides, baseDilations, windowDilations []int, paddings [][2]int) (backends.Op, error) {
	in, err := b.operands("ReduceWindow", x)
	if err != nil {
		return nil, err
	}
	rank := in[0].shape.Rank()
	args := windowArgs{reduction, orOnes(window, rank), slices.Clone(strides), orOnes(baseDilations, rank), orOnes(windowDilations, rank), orZeros(paddings, rank)}
	if len(strides) == 0 {
		args.strides = args.window
	}
	shape, err := shapeinference.ReduceWindowOp(in[0].shape, args.window, args.strides, args.baseDilations, args.windowDilations, args.paddings)
	if err != nil {
		return nil, err
	}
	adds := reduction == backends.ReduceOpSum || reduction == backends.ReduceOpProduct
	if reduction < backends.ReduceOpSum || reduction > backends.ReduceOpMin || adds && in[0].shape.DType == dtypes.Bool {
		return nil, errors.Errorf("ReduceWindow of %s: %s is not defined for this type", in[0].shape, reduction)
	}
	return b.add(backends.OpTypeReduceWindow, shape, args, in...), nil
}

// orOnes copies v, or returns n ones if it is empty.
func orOnes(v []int, n int) []int {
	if len(v) == 0 {
		return ones(n)
	}
	return slices.Clone(v)
}

// orZeros copies v, or returns n pairs of zeros if it is empty.
func orZeros(v [][2]int, n int) [][2]int {
	if len(v) == 0 {
		return make([][2]int, n)
	}
	return slices.Clone(v)
}

// selectArgs has one entry per axis.
type selectArgs struct {
	min             bool
	window, strides []int
	paddings        [][2]int
}

func (b *Builder) selectAndScatter(op backends.OpType, operand, source backends.Op, window, strides []int, paddings [][2]int) (backends.Op, error) {
	in, err := b.operands(op.String(), operand, source)
	if err != nil {
		return nil, err
	}
	rank := in[0].shape.Rank()
	args := selectArgs{op == backends.OpTypeSelectAndScatterMin, orOnes(window, rank), slices.Clone(strides), orZeros(paddings, rank)}
	if len(strides) == 0 {
		args.strides = args.window
	}
	windows, err := shapeinference.ReduceWindowOp(in[0].shape, args.window, args.strides, nil, nil, args.paddings)
	if err != nil {
		return nil, err
	}
	if !windows.Equal(in[1].shape) {
		return nil, errors.Errorf("%s of %s: the windows have shape %s, but the source has %s", op, in[0].shape, windows, in[1].shape)
	}
	return b.add(op, in[0].shape, args, in...), nil
}

// SelectAndScatterMax adds each source element at the position of the largest element of its window: the gradient of max pooling.
func (b *Builder) SelectAndScatterMax(operand, source backends.Op, window, strides []int, paddings [][2]int) (backends.Op, error) {
	return b.selectAndScatter(backends.OpTypeSelectAndScatterMax, operand, source, window, strides, paddings)
}

// SelectAndScatterMin adds each source element at the position of the smallest element of its window.
func (b *Builder) SelectAndScatterMin(operand, source backends.Op, window, strides []int, paddings [][2]int) (backends.Op, error) {
	return b.selectAndScatter(backends.OpTypeSelectAndScatterMin, operand, source, window, strides, paddings)
}

// RNGBitGenerator returns the new state, and random bits of the given shape.
func (b *Builder) RNGBitGenerator(state backends.Op, shape shapes.Shape) (newState, values backends.Op, err error) {
	in, err := b.operands("RNGBitGenerator", state)
	if err != nil {
		return nil, nil, err
	}
	if !in[0].shape.Equal(backends.RNGStateShape) {
		return nil, nil, errors.Errorf("RNGBitGenerator got a state %s, want %s", in[0].shape, backends.RNGStateShape)
	}
	if err := checkDType("RNGBitGenerator", shape.DType); err != nil {
		return nil, nil, err
	}
	if shape.DType == dtypes.Bool || shape.DType.IsComplex() {
		return nil, nil, errors.Errorf("RNGBitGenerator cannot fill %s: only integers and floats are supported", shape)
	}
	out := b.addResults(backends.OpTypeRNGBitGenerator, []shapes.Shape{in[0].shape, shape.Clone()}, nil, in...)
	return out[0], out[1], nil
}
