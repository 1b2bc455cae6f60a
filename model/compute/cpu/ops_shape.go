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

// Operations that move data or change its shape without computing on it.

// Identity returns x.
func (b *Builder) Identity(x backends.Op) (backends.Op, error) {
	in, err := b.operands("Identity", x)
	if err != nil {
		return nil, err
	}
	return b.add(backends.OpTypeIdentity, in[0].shape, nil, in...), nil
}

// Reshape returns the elements of x with other dimensions of the same total size.
func (b *Builder) Reshape(x backends.Op, dims ...int) (op backends.Op, err error) {
	defer guard(backends.OpTypeReshape, &err)
	in, err := b.operands("Reshape", x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ReshapeOp(in[0].shape, dims)
	if err != nil {
		return nil, err
	}
	return b.add(backends.OpTypeReshape, shape.Clone(), nil, in...), nil
}

// Bitcast reinterprets the bits of x. A larger type absorbs the last axis; a smaller one adds one.
func (b *Builder) Bitcast(x backends.Op, dtype dtypes.DType) (backends.Op, error) {
	in, err := b.operands("Bitcast", x)
	if err != nil {
		return nil, err
	}
	if err := checkDType("the result of Bitcast", dtype); err != nil {
		return nil, err
	}
	from := in[0].shape
	dims := slices.Clone(from.Dimensions)
	switch was, is := from.DType.Size(), dtype.Size(); {
	case is > was:
		last := len(dims) - 1
		if last < 0 || dims[last] != is/was {
			return nil, errors.Errorf("Bitcast of %s to %s: the last axis must have dimension %d", from, dtype, is/was)
		}
		dims = dims[:last]
	case is < was:
		dims = append(dims, was/is)
	}
	return b.add(backends.OpTypeBitcast, shapes.Make(dtype, dims...), nil, in...), nil
}

// broadcastArgs lists, for each axis of the operand, the axis of the result, in order.
type broadcastArgs []int

// BroadcastInDim repeats x along new axes and along axes of dimension 1; axis i of x becomes axes[i] of the result.
func (b *Builder) BroadcastInDim(x backends.Op, shape shapes.Shape, axes []int) (op backends.Op, err error) {
	defer guard(backends.OpTypeBroadcastInDim, &err)
	in, err := b.operands("BroadcastInDim", x)
	if err != nil {
		return nil, err
	}
	if err := shapeinference.BroadcastInDimOp(in[0].shape, shape, axes); err != nil {
		return nil, err
	}
	if !slices.IsSorted(axes) {
		return nil, errors.Errorf("BroadcastInDim cannot transpose: axes %v are not in order", axes)
	}
	out := shapes.Make(in[0].shape.DType, shape.Dimensions...)
	return b.add(backends.OpTypeBroadcastInDim, out, broadcastArgs(slices.Clone(axes)), in...), nil
}

// Broadcast repeats x along new leading axes.
func (b *Builder) Broadcast(x backends.Op, prefix ...int) (backends.Op, error) {
	in, err := b.operands("Broadcast", x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.BroadcastOp(in[0].shape, prefix)
	if err != nil {
		return nil, err
	}
	axes := make([]int, in[0].shape.Rank())
	for i := range axes {
		axes[i] = len(prefix) + i
	}
	return b.BroadcastInDim(x, shape, axes)
}

// transposeArgs lists, for each axis of the result, the axis of the operand.
type transposeArgs []int

// Transpose permutes axes: axis i of the result is axis permutation[i] of x.
func (b *Builder) Transpose(x backends.Op, permutation ...int) (backends.Op, error) {
	in, err := b.operands("Transpose", x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.TransposeOp(in[0].shape, permutation)
	if err != nil {
		return nil, err
	}
	return b.add(backends.OpTypeTranspose, shape, transposeArgs(slices.Clone(permutation)), in...), nil
}

type sliceArgs struct{ starts, limits, strides []int }

// Slice returns the elements from starts up to limits with steps of strides; nil strides are 1.
func (b *Builder) Slice(x backends.Op, starts, limits, strides []int) (backends.Op, error) {
	in, err := b.operands("Slice", x)
	if err != nil {
		return nil, err
	}
	if len(strides) == 0 {
		strides = ones(in[0].shape.Rank())
	}
	shape, err := shapeinference.SliceOp(in[0].shape, starts, limits, strides)
	if err != nil {
		return nil, err
	}
	args := sliceArgs{slices.Clone(starts), slices.Clone(limits), slices.Clone(strides)}
	return b.add(backends.OpTypeSlice, shape, args, in...), nil
}

// ones returns n ones.
func ones(n int) []int { return slices.Repeat([]int{1}, n) }

// padArgs has one entry per axis.
type padArgs []backends.PadAxis

// Pad inserts fill before, after and between the elements of each axis; a negative amount removes elements.
func (b *Builder) Pad(x, fill backends.Op, axes ...backends.PadAxis) (backends.Op, error) {
	in, err := b.operands("Pad", x, fill)
	if err != nil {
		return nil, err
	}
	from := in[0].shape
	if !in[1].shape.IsScalar() || in[1].shape.DType != from.DType {
		return nil, errors.Errorf("Pad of %s with %s: the fill must be a scalar of the same type", from, in[1].shape)
	}
	if len(axes) > from.Rank() {
		return nil, errors.Errorf("Pad of %s got %d axes", from, len(axes))
	}
	args := make(padArgs, from.Rank())
	copy(args, axes)
	shape := from.Clone()
	for i, p := range args {
		d := from.Dimensions[i] + p.Start + p.End + max(0, from.Dimensions[i]-1)*p.Interior
		if p.Interior < 0 || d < 0 {
			return nil, errors.Errorf("Pad of %s: axis %d cannot be padded by %+v", from, i, p)
		}
		shape.Dimensions[i] = d
	}
	return b.add(backends.OpTypePad, shape, args, in...), nil
}

// reverseArgs lists the reversed axes.
type reverseArgs []int

// Reverse returns x with the order of the elements along the axes reversed.
func (b *Builder) Reverse(x backends.Op, axes ...int) (backends.Op, error) {
	in, err := b.operands("Reverse", x)
	if err != nil {
		return nil, err
	}
	if err := checkAxes("Reverse", in[0].shape, axes); err != nil {
		return nil, err
	}
	return b.add(backends.OpTypeReverse, in[0].shape, reverseArgs(slices.Clone(axes)), in...), nil
}

// checkAxes returns an error if an axis does not exist or is listed twice.
func checkAxes(what string, shape shapes.Shape, axes []int) error {
	for i, a := range axes {
		if a < 0 || a >= shape.Rank() || slices.Contains(axes[:i], a) {
			return errors.Errorf("%s of %s: axes %v must be distinct and in [0, %d)", what, shape, axes, shape.Rank())
		}
	}
	return nil
}

// concatArgs is the axis along which the operands are joined.
type concatArgs int

// Concatenate joins the operands along an axis.
func (b *Builder) Concatenate(axis int, ops ...backends.Op) (backends.Op, error) {
	in, err := b.operands("Concatenate", ops...)
	if err != nil {
		return nil, err
	}
	all := make([]shapes.Shape, len(in))
	for i, n := range in {
		all[i] = n.shape
	}
	shape, err := shapeinference.ConcatenateOp(all, axis)
	if err != nil {
		return nil, err
	}
	if len(in) == 1 {
		return in[0], nil
	}
	return b.add(backends.OpTypeConcatenate, shape, concatArgs(axis), in...), nil
}

// iotaArgs is the axis along which the values count up.
type iotaArgs int

// Iota returns 0, 1, 2 … along the axis.
func (b *Builder) Iota(shape shapes.Shape, axis int) (backends.Op, error) {
	if _, err := b.operands("Iota"); err != nil {
		return nil, err
	}
	if err := checkDType("Iota", shape.DType); err != nil {
		return nil, err
	}
	if axis < 0 || axis >= shape.Rank() {
		return nil, errors.Errorf("Iota of %s has no axis %d", shape, axis)
	}
	return b.add(backends.OpTypeIota, shape.Clone(), iotaArgs(axis)), nil
}

// gatherArgs has XLA's parameters under GoMLX's names.
type gatherArgs struct {
	indexVectorAxis                                      int
	offsetAxes, collapsedAxes, startIndexMap, sliceSizes []int
}

// Gather collects slices of the operand at computed positions; indices out of bounds are clamped.
func (b *Builder) Gather(operand, starts backends.Op, indexVectorAxis int,
	offsetAxes, collapsedAxes, startIndexMap, sliceSizes []int, sorted bool) (op backends.Op, err error) {
	defer guard(backends.OpTypeGather, &err)
	in, err := b.operands("Gather", operand, starts)
	if err != nil {
		return nil, err
	}
	if !in[1].shape.DType.IsInt() {
		return nil, errors.Errorf("Gather at indices %s: indices must be integers", in[1].shape)
	}
	indices := in[1]
	if indexVectorAxis == indices.shape.Rank() { // each index is a vector of one element, without its axis
		dims := append(slices.Clone(indices.shape.Dimensions), 1)
		indices = b.add(backends.OpTypeReshape, shapes.Make(indices.shape.DType, dims...), nil, indices)
	}
	shape, err := gatherShape(in[0].shape, indices.shape, indexVectorAxis, offsetAxes, collapsedAxes, startIndexMap, sliceSizes)
	if err != nil {
		return nil, err
	}
	args := gatherArgs{indexVectorAxis, slices.Clone(offsetAxes), slices.Clone(collapsedAxes),
		slices.Clone(startIndexMap), slices.Clone(sliceSizes)}
	return b.add(backends.OpTypeGather, shape, args, in[0], indices), nil
}

// gatherShape infers the shape as GoMLX does, except that GoMLX compares the axis of index vectors with the operand's rank instead of the indices'.
func gatherShape(operand, indices shapes.Shape, indexVectorAxis int, offsetAxes, collapsedAxes, startIndexMap, sliceSizes []int) (shapes.Shape, error) {
	if indexVectorAxis < 0 || indexVectorAxis >= indices.Rank() {
		return shapes.Invalid(), errors.Errorf("Gather at indices %s: there is no axis %d", indices, indexVectorAxis)
	}
	if indexVectorAxis <= operand.Rank() {
		return shapeinference.Gather(operand, indices, indexVectorAxis, offsetAxes, collapsedAxes, startIndexMap, sliceSizes, false)
	}
	// Move the index vectors to the front: the other axes keep their order, so the result is the same.
	moved := indices.Clone()
	size := moved.Dimensions[indexVectorAxis]
	moved.Dimensions = append([]int{size}, slices.Delete(moved.Dimensions, indexVectorAxis, indexVectorAxis+1)...)
	return shapeinference.Gather(operand, moved, 0, offsetAxes, collapsedAxes, startIndexMap, sliceSizes, false)
}

// scatterArgs has XLA's parameters under GoMLX's names.
type scatterArgs struct {
	indexVectorAxis                                int
	windowAxes, insertedAxes, scatterAxesToOperand []int
}

func (b *Builder) scatter(opType backends.OpType, operand, indices, updates backends.Op, indexVectorAxis int,
	windowAxes, insertedAxes, scatterAxes []int) (op backends.Op, err error) {
	defer guard(opType, &err)
	in, err := b.operands(opType.String(), operand, indices, updates)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ScatterOp(in[0].shape, in[1].shape, in[2].shape, indexVectorAxis, windowAxes, insertedAxes, scatterAxes)
	if err != nil {
		return nil, err
	}
	at := in[1]
	if indexVectorAxis == at.shape.Rank() {
		dims := append(slices.Clone(at.shape.Dimensions), 1)
		at = b.add(backends.OpTypeReshape, shapes.Make(at.shape.DType, dims...), nil, at)
	}
	args := scatterArgs{indexVectorAxis, slices.Clone(windowAxes), slices.Clone(insertedAxes), slices.Clone(scatterAxes)}
	return b.add(opType, shape, args, in[0], at, in[2]), nil
}

// ScatterSum adds updates to the operand at computed positions; updates that do not fit are skipped.
func (b *Builder) ScatterSum(operand, indices, updates backends.Op, indexVectorAxis int,
	windowAxes, insertedAxes, scatterAxes []int, sorted, unique bool) (backends.Op, error) {
	return b.scatter(backends.OpTypeScatterSum, operand, indices, updates, indexVectorAxis, windowAxes, insertedAxes, scatterAxes)
}

// ScatterMax takes the maximum of operand and updates at computed positions; updates that do not fit are skipped.
func (b *Builder) ScatterMax(operand, indices, updates backends.Op, indexVectorAxis int,
	windowAxes, insertedAxes, scatterAxes []int, sorted, unique bool) (backends.Op, error) {
	return b.scatter(backends.OpTypeScatterMax, operand, indices, updates, indexVectorAxis, windowAxes, insertedAxes, scatterAxes)
}

// ScatterMin takes the minimum of operand and updates at computed positions; updates that do not fit are skipped.
func (b *Builder) ScatterMin(operand, indices, updates backends.Op, indexVectorAxis int,
	windowAxes, insertedAxes, scatterAxes []int, sorted, unique bool) (backends.Op, error) {
	return b.scatter(backends.OpTypeScatterMin, operand, indices, updates, indexVectorAxis, windowAxes, insertedAxes, scatterAxes)
}

// DynamicSlice returns a slice of the given dimensions that starts at computed indices, which are clamped so that the slice fits.
func (b *Builder) DynamicSlice(operand backends.Op, starts []backends.Op, dims []int) (backends.Op, error) {
	in, err := b.dynamic("DynamicSlice", starts, operand)
	if err != nil {
		return nil, err
	}
	from := in[0].shape
	if len(dims) != from.Rank() {
		return nil, errors.Errorf("DynamicSlice of %s got %d dimensions", from, len(dims))
	}
	for i, d := range dims {
		if d < 0 || d > from.Dimensions[i] {
			return nil, errors.Errorf("DynamicSlice of %s: axis %d is too short for a slice of %d", from, i, d)
		}
	}
	return b.add(backends.OpTypeDynamicSlice, shapes.Make(from.DType, dims...), nil, in...), nil
}

// DynamicUpdateSlice returns the operand with update written at computed indices, which are clamped so that the update fits.
func (b *Builder) DynamicUpdateSlice(operand, update backends.Op, starts []backends.Op) (backends.Op, error) {
	in, err := b.dynamic("DynamicUpdateSlice", starts, operand, update)
	if err != nil {
		return nil, err
	}
	to, from := in[0].shape, in[1].shape
	if from.DType != to.DType || from.Rank() != to.Rank() {
		return nil, errors.Errorf("DynamicUpdateSlice of %s with %s: type and rank must match", to, from)
	}
	for i, d := range from.Dimensions {
		if d > to.Dimensions[i] {
			return nil, errors.Errorf("DynamicUpdateSlice of %s with %s: the update is too large on axis %d", to, from, i)
		}
	}
	return b.add(backends.OpTypeDynamicUpdateSlice, to, nil, in...), nil
}

// dynamic checks that there is an integer start for each axis of the first operand, as scalars or as one vector. It returns
// the operands, followed by the starts.
func (b *Builder) dynamic(action string, starts []backends.Op, operands ...backends.Op) ([]*node, error) {
	in, err := b.operands(action, append(operands, starts...)...)
	if err != nil {
		return nil, err
	}
	count := 0
	for i, s := range in[len(operands):] {
		if !s.shape.DType.IsInt() || s.shape.Rank() > 1 || s.shape.Rank() == 1 && len(starts) > 1 {
			return nil, errors.Errorf("%s: start %d has shape %s, must be a scalar integer", action, i, s.shape)
		}
		count += s.shape.Size()
	}
	if in[0].shape.Rank() != count {
		return nil, errors.Errorf("%s of %s got %d starts", action, in[0].shape, count)
	}
	return in, nil
}
