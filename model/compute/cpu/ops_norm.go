//go:build cgo

package cpu

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/pkg/errors"
)

// Batch normalization is composed of other operations, which fuse as if the model had written them out.

// sheet builds expressions on the shape of one operand; after the first error it does nothing.
type sheet struct {
	b     *Builder
	shape shapes.Shape
	axis  int // axis of the features
	err   error
}

func (s *sheet) apply(f func(x, y backends.Op) (backends.Op, error), x, y backends.Op) backends.Op {
	if s.err != nil {
		return nil
	}
	var out backends.Op
	out, s.err = f(x, y)
	return out
}

func (s *sheet) add(x, y backends.Op) backends.Op { return s.apply(s.b.Add, x, y) }
func (s *sheet) sub(x, y backends.Op) backends.Op { return s.apply(s.b.Sub, x, y) }
func (s *sheet) mul(x, y backends.Op) backends.Op { return s.apply(s.b.Mul, x, y) }

// scalar returns a constant of the operand's type.
func (s *sheet) scalar(v float64) backends.Op {
	if s.err != nil {
		return nil
	}
	var c, out backends.Op
	if c, s.err = s.b.Constant([]float64{v}); s.err != nil {
		return nil
	}
	if c, s.err = s.b.Reshape(c); s.err == nil {
		out, s.err = s.b.ConvertDType(c, s.shape.DType)
	}
	return out
}

// wide broadcasts one value per feature to the whole shape.
func (s *sheet) wide(x backends.Op) backends.Op {
	if s.err != nil {
		return nil
	}
	var out backends.Op
	out, s.err = s.b.BroadcastInDim(x, s.shape, []int{s.axis})
	return out
}

// mean averages over all axes except that of the features.
func (s *sheet) mean(x backends.Op) backends.Op {
	return s.mul(s.sum(x), s.scalar(1/float64(s.shape.Size()/s.shape.Dimensions[s.axis])))
}

func (s *sheet) sum(x backends.Op) backends.Op {
	if s.err != nil {
		return nil
	}
	axes := otherAxes(s.shape.Rank(), []int{s.axis})
	if len(axes) == 0 {
		return x
	}
	var out backends.Op
	out, s.err = s.b.ReduceSum(x, axes...)
	return out
}

// scaled returns 1/√(variance + ε).
func (s *sheet) scaled(variance backends.Op, epsilon float32) backends.Op {
	v := s.add(variance, s.scalar(float64(epsilon)))
	if s.err != nil {
		return nil
	}
	v, s.err = s.b.Rsqrt(v)
	return v
}

// sheet checks the operands of a batch normalization: x, then vectors with one entry per feature.
func (b *Builder) sheet(op backends.OpType, axis int, x backends.Op, vectors ...backends.Op) (*sheet, error) {
	in, err := b.operands(op.String(), append([]backends.Op{x}, vectors...)...)
	if err != nil {
		return nil, err
	}
	shape := in[0].shape
	if axis < 0 {
		axis += shape.Rank()
	}
	if axis < 0 || axis >= shape.Rank() || !shape.DType.IsFloat() || shape.Size() == 0 {
		return nil, errors.Errorf("%s of %s over axis %d: the operand must be non-empty floats that have the axis", op, shape, axis)
	}
	for _, v := range in[1:] {
		if want := shapes.Make(shape.DType, shape.Dimensions[axis]); !v.shape.Equal(want) {
			return nil, errors.Errorf("%s of %s over axis %d: got %s, want a vector %s", op, shape, axis, v.shape, want)
		}
	}
	return &sheet{b: b, shape: shape, axis: axis}, nil
}

// BatchNormForInference returns (x − mean)/√(variance + ε) · scale + offset, per feature.
func (b *Builder) BatchNormForInference(x, scale, offset, mean, variance backends.Op, epsilon float32, axis int) (backends.Op, error) {
	s, err := b.sheet(backends.OpTypeBatchNormForInference, axis, x, scale, offset, mean, variance)
	if err != nil {
		return nil, err
	}
	out := s.normalize(x, scale, offset, mean, variance, epsilon)
	return out, s.err
}

func (s *sheet) normalize(x, scale, offset, mean, variance backends.Op, epsilon float32) backends.Op {
	factor := s.wide(s.mul(s.scaled(variance, epsilon), scale))
	return s.add(s.mul(s.sub(x, s.wide(mean)), factor), s.wide(offset))
}

// BatchNormForTraining normalizes with the batch's own mean and (biased) variance, and returns them.
func (b *Builder) BatchNormForTraining(x, scale, offset backends.Op, epsilon float32, axis int) (out, mean, variance backends.Op, err error) {
	s, err := b.sheet(backends.OpTypeBatchNormForTraining, axis, x, scale, offset)
	if err != nil {
		return nil, nil, nil, err
	}
	mean = s.mean(x)
	centred := s.sub(x, s.wide(mean))
	variance = s.mean(s.mul(centred, centred))
	out = s.normalize(x, scale, offset, mean, variance, epsilon)
	return out, mean, variance, s.err
}

// BatchNormGradient returns the gradients with respect to x, scale and offset, given the gradient g of the normalized output:
//
//	x̂ = (x − mean)/√(variance + ε),  ∂scale = Σ g·x̂,  ∂offset = Σ g,  ∂x = scale/√(variance + ε) · (g − mean(g) − x̂·mean(g·x̂))
func (b *Builder) BatchNormGradient(x, scale, mean, variance, g backends.Op, epsilon float32, axis int) (dx, dScale, dOffset backends.Op, err error) {
	s, err := b.sheet(backends.OpTypeBatchNormGradient, axis, x, scale, mean, variance)
	if err != nil {
		return nil, nil, nil, err
	}
	if in, err := b.operands("BatchNormGradient", g); err != nil || !in[0].shape.Equal(s.shape) {
		return nil, nil, nil, errors.Errorf("BatchNormGradient of %s: the gradient must have the same shape", s.shape)
	}
	r := s.scaled(variance, epsilon)
	unit := s.mul(s.sub(x, s.wide(mean)), s.wide(r))
	dScale, dOffset = s.sum(s.mul(g, unit)), s.sum(g)
	n := s.scalar(1 / float64(s.shape.Size()/s.shape.Dimensions[s.axis]))
	inner := s.sub(s.sub(g, s.wide(s.mul(dOffset, n))), s.mul(unit, s.wide(s.mul(dScale, n))))
	return s.mul(s.wide(s.mul(r, scale)), inner), dScale, dOffset, s.err
}
