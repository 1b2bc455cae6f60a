//go:build cgo

package cpu

import (
	"math"
	"math/cmplx"
	"unsafe"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/pkg/errors"
)

// Complex numbers are stored as pairs of floats, the real part first. They are computed in Go, element by element. Operations that
// need an order (Max, LessThan, Clamp …) or have no complex form here (Rem, Expm1, Log1p …) return an error.

type complexNumber interface{ complex64 | complex128 }

// partOf maps a complex type to the type of its parts, complexOf the reverse.
var (
	partOf    = map[dtypes.DType]dtypes.DType{dtypes.Complex64: dtypes.Float32, dtypes.Complex128: dtypes.Float64}
	complexOf = map[dtypes.DType]dtypes.DType{dtypes.Float32: dtypes.Complex64, dtypes.Float64: dtypes.Complex128}
)

// Complex returns x + iy of floats: complex64 for float32, complex128 for float64. Either operand may be a scalar.
func (b *Builder) Complex(x, y backends.Op) (backends.Op, error) {
	in, err := b.operands("Complex", x, y)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.BinaryOp(backends.OpTypeAdd, in[0].shape, in[1].shape)
	if err != nil {
		return nil, errors.WithMessage(err, "Complex")
	}
	dtype, ok := complexOf[shape.DType]
	if !ok {
		return nil, errors.Errorf("Complex of %s and %s: the parts must be float32 or float64", in[0].shape, in[1].shape)
	}
	shape = shape.Clone()
	shape.DType = dtype
	return b.add(backends.OpTypeComplex, shape, nil, in...), nil
}

// Real returns the real part of x, or x itself if it is a float.
func (b *Builder) Real(x backends.Op) (backends.Op, error) {
	in, err := b.operands("Real", x)
	if err != nil {
		return nil, err
	}
	if in[0].shape.DType.IsFloat() {
		return in[0], nil
	}
	return b.part(backends.OpTypeReal, x)
}

// Imag returns the imaginary part of x, or 0 if it is a float.
func (b *Builder) Imag(x backends.Op) (backends.Op, error) {
	in, err := b.operands("Imag", x)
	if err != nil {
		return nil, err
	}
	if shape := in[0].shape; shape.DType.IsFloat() {
		zero := b.constant(shape.Clone(), make([]byte, shape.Memory()))
		return zero, nil
	}
	return b.part(backends.OpTypeImag, x)
}

// Conj returns re x − i·im x.
func (b *Builder) Conj(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeConj, x)
}

// part adds an operation whose result for complex numbers has the type of their parts; for other types it is the same as unary.
func (b *Builder) part(op backends.OpType, x backends.Op) (backends.Op, error) {
	out, err := b.unary(op, x)
	if err != nil {
		return nil, err
	}
	n := out.(*node)
	if dtype, ok := partOf[n.shape.DType]; ok {
		n.shape = n.shape.Clone()
		n.shape.DType = dtype
	}
	return n, nil
}

// checkComplex returns an error if an element-wise operation does not exist for complex numbers.
func checkComplex(op backends.OpType, dtype dtypes.DType) error {
	if dtype.IsComplex() && elementFn(op, dtype) == nil {
		return errors.Errorf("cpu engine: there is no %s of complex numbers (%s)", op, dtype)
	}
	return nil
}

// joinFn returns the loop of Complex for a type of parts.
func joinFn(parts dtypes.DType) blockFn {
	switch parts {
	case dtypes.Float32:
		return join[float32]
	case dtypes.Float64:
		return join[float64]
	}
	return nil
}

// join computes x + iy.
func join[R float](dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
	d, re, im := vector[[2]R](dst, n), vector[R](src[0], n), vector[R](src[1], n)
	for i, v := range re {
		d[i] = [2]R{v, im[i]}
	}
}

// component returns the loop that extracts one part of complex numbers: 0 is the real, 1 the imaginary part.
func component[R float](k int) blockFn {
	return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
		d, a := vector[R](dst, n), vector[[2]R](src[0], n)
		for i := range a {
			d[i] = a[i][k]
		}
	}
}

// complex1 has the functions of one complex variable, with the branch cuts of math/cmplx along the negative real axis.
var complex1 = map[backends.OpType]func(complex128) complex128{
	backends.OpTypeConj:  cmplx.Conj,
	backends.OpTypeExp:   cmplx.Exp,
	backends.OpTypeLog:   cmplx.Log,
	backends.OpTypeSqrt:  cmplx.Sqrt,
	backends.OpTypeRsqrt: func(x complex128) complex128 { return 1 / cmplx.Sqrt(x) },
	backends.OpTypeSign:  direction,
}

// direction returns x/|x|, and 0 for 0.
func direction(x complex128) complex128 {
	if x == 0 {
		return 0
	}
	return x / complex(cmplx.Abs(x), 0)
}

// complexFn returns the loop of an operation on complex numbers C with parts R, or nil if there is none.
func complexFn[C complexNumber, R float](op backends.OpType) blockFn {
	if f, ok := complex1[op]; ok {
		return map1(func(x C) C { return C(f(complex128(x))) })
	}
	switch op {
	case backends.OpTypeReal:
		return component[R](0)
	case backends.OpTypeImag:
		return component[R](1)
	case backends.OpTypeAbs:
		return map1(func(x [2]R) R { return R(math.Hypot(float64(x[0]), float64(x[1]))) })
	case backends.OpTypeNeg:
		return map1(func(x C) C { return -x })
	case backends.OpTypeAdd:
		return map2(func(x, y C) C { return x + y })
	case backends.OpTypeSub:
		return map2(func(x, y C) C { return x - y })
	case backends.OpTypeMul:
		return map2(func(x, y C) C { return x * y })
	case backends.OpTypeDiv:
		return map2(func(x, y C) C { return x / y })
	case backends.OpTypePow:
		return map2(func(x, y C) C { return C(cmplx.Pow(complex128(x), complex128(y))) })
	case backends.OpTypeEqual:
		return map2(func(x, y C) bool { return x == y })
	case backends.OpTypeNotEqual:
		return map2(func(x, y C) bool { return x != y })
	case backends.OpTypeWhere:
		return where[C]()
	}
	return nil
}

// convertComplex converts complex numbers: to bool, any value but 0 is true; to other real types, the real part is converted, as in XLA.
func convertComplex[C complexNumber](to dtypes.DType) blockFn {
	switch to {
	case dtypes.Complex64:
		return map1(func(x C) complex64 { return complex64(x) })
	case dtypes.Complex128:
		return map1(func(x C) complex128 { return complex128(x) })
	case dtypes.Bool:
		return map1(func(x C) bool { return x != 0 })
	}
	f := convertFrom[float64](to)
	return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
		var wide [halfBlock]float64
		in := vector[C](src[0], n)
		for lo := 0; lo < n; lo += halfBlock {
			m := min(halfBlock, n-lo)
			for i, x := range in[lo : lo+m] {
				wide[i] = real(complex128(x))
			}
			f(unsafe.Add(dst, lo*to.Size()), [3]unsafe.Pointer{unsafe.Pointer(&wide)}, m)
		}
	}
}
