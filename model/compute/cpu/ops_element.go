//go:build cgo

package cpu

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/pkg/errors"
)

// Element-wise operations. Two operands broadcast to each other if one is a scalar or along axes of dimension 1.

func (b *Builder) unary(op backends.OpType, x backends.Op) (backends.Op, error) {
	in, err := b.operands(op.String(), x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.UnaryOp(op, in[0].shape)
	if err != nil {
		return nil, err
	}
	if err := checkComplex(op, in[0].shape.DType); err != nil {
		return nil, err
	}
	return b.add(op, shape, nil, in...), nil
}

func (b *Builder) binary(op backends.OpType, x, y backends.Op) (backends.Op, error) {
	in, err := b.operands(op.String(), x, y)
	if err != nil {
		return nil, err
	}
	rule := op
	if shifts[op] { // shape inference has no rule for shifts; use that of the other bit operations
		rule = backends.OpTypeBitwiseAnd
	}
	shape, err := shapeinference.BinaryOp(rule, in[0].shape, in[1].shape)
	if err != nil {
		return nil, err
	}
	if err := checkComplex(op, in[0].shape.DType); err != nil {
		return nil, err
	}
	return b.add(op, shape, nil, in...), nil
}

var shifts = map[backends.OpType]bool{
	backends.OpTypeShiftLeft: true, backends.OpTypeShiftRightArithmetic: true, backends.OpTypeShiftRightLogical: true,
}

func (b *Builder) comparison(op backends.OpType, x, y backends.Op) (backends.Op, error) {
	in, err := b.operands(op.String(), x, y)
	if err != nil {
		return nil, err
	}
	rule := op
	if op == backends.OpTypeNotEqualTotalOrder { // missing in shape inference
		rule = backends.OpTypeEqualTotalOrder
	}
	shape, err := shapeinference.ComparisonOp(rule, in[0].shape, in[1].shape)
	if err != nil {
		return nil, err
	}
	shape = shape.Clone()
	shape.DType = dtypes.Bool
	if err := checkComplex(op, in[0].shape.DType); err != nil {
		return nil, err
	}
	return b.add(op, shape, nil, in...), nil
}

// Where returns onTrue where the condition is true and onFalse elsewhere; each operand may be a scalar.
func (b *Builder) Where(condition, onTrue, onFalse backends.Op) (backends.Op, error) {
	in, err := b.operands("Where", condition, onTrue, onFalse)
	if err != nil {
		return nil, err
	}
	if in[1].shape.DType != in[2].shape.DType {
		return nil, errors.Errorf("Where of values of different types, %s and %s", in[1].shape, in[2].shape)
	}
	shape, err := shapeinference.WhereOp(in[0].shape, in[1].shape, in[2].shape)
	if err != nil {
		return nil, err
	}
	return b.add(backends.OpTypeWhere, shape, nil, in...), nil
}

// Clamp returns min(max(lo, x), hi); lo and hi may be scalars.
func (b *Builder) Clamp(lo, x, hi backends.Op) (backends.Op, error) {
	in, err := b.operands("Clamp", lo, x, hi)
	if err != nil {
		return nil, err
	}
	for _, bound := range []*node{in[0], in[2]} {
		if bound.shape.DType != in[1].shape.DType || !bound.shape.IsScalar() && !bound.shape.Equal(in[1].shape) {
			return nil, errors.Errorf("Clamp of %s with a bound %s: it must be a scalar or of the same shape", in[1].shape, bound.shape)
		}
	}
	if err := checkComplex(backends.OpTypeClamp, in[1].shape.DType); err != nil {
		return nil, err
	}
	return b.add(backends.OpTypeClamp, in[1].shape, nil, in...), nil
}

// ConvertDType converts values. Floats to integers truncate and saturate, with NaN becoming 0; to bool, any value but 0 is true;
// of complex numbers the real part is converted.
func (b *Builder) ConvertDType(x backends.Op, dtype dtypes.DType) (backends.Op, error) {
	in, err := b.operands("ConvertDType", x)
	if err != nil {
		return nil, err
	}
	if err := checkDType("the result of ConvertDType", dtype); err != nil {
		return nil, err
	}
	if in[0].shape.DType == dtype {
		return in[0], nil
	}
	shape := in[0].shape.Clone()
	shape.DType = dtype
	return b.add(backends.OpTypeConvertDType, shape, nil, in...), nil
}

// IsFinite reports for each element whether it is neither infinite nor NaN.
func (b *Builder) IsFinite(x backends.Op) (backends.Op, error) {
	in, err := b.operands("IsFinite", x)
	if err != nil {
		return nil, err
	}
	if !in[0].shape.DType.IsFloat() {
		return nil, errors.Errorf("IsFinite of %s: only floats can be infinite", in[0].shape)
	}
	return b.add(backends.OpTypeIsFinite, shapes.Make(dtypes.Bool, in[0].shape.Dimensions...), nil, in...), nil
}

// IsNaN reports for each element whether it is not a number: x ≠ x.
func (b *Builder) IsNaN(x backends.Op) (backends.Op, error) { return b.NotEqual(x, x) }

// Abs returns |x|; the result for complex x is a float.
func (b *Builder) Abs(x backends.Op) (backends.Op, error) {
	return b.part(backends.OpTypeAbs, x)
}

// BitCount returns the number of bits set in x.
func (b *Builder) BitCount(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeBitCount, x)
}

// BitwiseNot returns ^x.
func (b *Builder) BitwiseNot(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeBitwiseNot, x)
}

// Ceil returns ⌈x⌉.
func (b *Builder) Ceil(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeCeil, x)
}

// Clz returns the number of leading zero bits of x.
func (b *Builder) Clz(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeClz, x)
}

// Cos returns cos x.
func (b *Builder) Cos(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeCos, x)
}

// Erf returns erf x = 2/√π ∫₀ˣ e^(−t²) dt.
func (b *Builder) Erf(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeErf, x)
}

// Exp returns eˣ.
func (b *Builder) Exp(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeExp, x)
}

// Expm1 returns eˣ − 1.
func (b *Builder) Expm1(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeExpm1, x)
}

// Floor returns ⌊x⌋.
func (b *Builder) Floor(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeFloor, x)
}

// Log returns ln x.
func (b *Builder) Log(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeLog, x)
}

// Log1p returns ln(1 + x).
func (b *Builder) Log1p(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeLog1p, x)
}

// LogicalNot returns !x.
func (b *Builder) LogicalNot(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeLogicalNot, x)
}

// Logistic returns 1/(1 + e⁻ˣ).
func (b *Builder) Logistic(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeLogistic, x)
}

// Neg returns −x.
func (b *Builder) Neg(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeNeg, x)
}

// Round returns x rounded to the nearest integer, halves to the even one.
func (b *Builder) Round(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeRound, x)
}

// Rsqrt returns 1/√x.
func (b *Builder) Rsqrt(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeRsqrt, x)
}

// Sign returns −1, ±0, 1 or NaN, depending on x.
func (b *Builder) Sign(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeSign, x)
}

// Sin returns sin x.
func (b *Builder) Sin(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeSin, x)
}

// Sqrt returns √x.
func (b *Builder) Sqrt(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeSqrt, x)
}

// Tanh returns tanh x.
func (b *Builder) Tanh(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeTanh, x)
}

// Add returns x + y.
func (b *Builder) Add(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeAdd, x, y)
}

// Sub returns x − y.
func (b *Builder) Sub(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeSub, x, y)
}

// Mul returns x · y.
func (b *Builder) Mul(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeMul, x, y)
}

// Div returns x / y; integers truncate, and x / 0 has all bits set.
func (b *Builder) Div(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeDiv, x, y)
}

// Rem returns the remainder of x / y with the sign of x.
func (b *Builder) Rem(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeRem, x, y)
}

// Pow returns x to the power y.
func (b *Builder) Pow(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypePow, x, y)
}

// Max returns the larger of x and y, or NaN if either is NaN.
func (b *Builder) Max(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeMax, x, y)
}

// Min returns the smaller of x and y, or NaN if either is NaN.
func (b *Builder) Min(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeMin, x, y)
}

// BitwiseAnd returns x & y.
func (b *Builder) BitwiseAnd(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeBitwiseAnd, x, y)
}

// BitwiseOr returns x | y.
func (b *Builder) BitwiseOr(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeBitwiseOr, x, y)
}

// BitwiseXor returns x ^ y.
func (b *Builder) BitwiseXor(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeBitwiseXor, x, y)
}

// LogicalAnd returns x && y.
func (b *Builder) LogicalAnd(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLogicalAnd, x, y)
}

// LogicalOr returns x || y.
func (b *Builder) LogicalOr(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLogicalOr, x, y)
}

// LogicalXor returns x != y of booleans.
func (b *Builder) LogicalXor(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLogicalXor, x, y)
}

// ShiftLeft returns x << y.
func (b *Builder) ShiftLeft(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeShiftLeft, x, y)
}

// ShiftRightArithmetic returns x >> y, keeping the sign.
func (b *Builder) ShiftRightArithmetic(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeShiftRightArithmetic, x, y)
}

// ShiftRightLogical returns x >> y, filling with zeros.
func (b *Builder) ShiftRightLogical(x, y backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeShiftRightLogical, x, y)
}

// Equal returns x == y, as booleans.
func (b *Builder) Equal(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeEqual, x, y)
}

// NotEqual returns x != y, as booleans.
func (b *Builder) NotEqual(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeNotEqual, x, y)
}

// GreaterThan returns x > y, as booleans.
func (b *Builder) GreaterThan(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeGreaterThan, x, y)
}

// GreaterOrEqual returns x ≥ y, as booleans.
func (b *Builder) GreaterOrEqual(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeGreaterOrEqual, x, y)
}

// LessThan returns x < y, as booleans.
func (b *Builder) LessThan(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeLessThan, x, y)
}

// LessOrEqual returns x ≤ y, as booleans.
func (b *Builder) LessOrEqual(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeLessOrEqual, x, y)
}

// EqualTotalOrder returns x == y in the order −NaN < −Inf < finite < −0 < +0 < finite < +Inf < +NaN.
func (b *Builder) EqualTotalOrder(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeEqualTotalOrder, x, y)
}

// NotEqualTotalOrder returns x != y in the order −NaN < −Inf < finite < −0 < +0 < finite < +Inf < +NaN.
func (b *Builder) NotEqualTotalOrder(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeNotEqualTotalOrder, x, y)
}

// GreaterThanTotalOrder returns x > y in the order −NaN < −Inf < finite < −0 < +0 < finite < +Inf < +NaN.
func (b *Builder) GreaterThanTotalOrder(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeGreaterThanTotalOrder, x, y)
}

// GreaterOrEqualTotalOrder returns x ≥ y in the order −NaN < −Inf < finite < −0 < +0 < finite < +Inf < +NaN.
func (b *Builder) GreaterOrEqualTotalOrder(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeGreaterOrEqualTotalOrder, x, y)
}

// LessThanTotalOrder returns x < y in the order −NaN < −Inf < finite < −0 < +0 < finite < +Inf < +NaN.
func (b *Builder) LessThanTotalOrder(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeLessThanTotalOrder, x, y)
}

// LessOrEqualTotalOrder returns x ≤ y in the order −NaN < −Inf < finite < −0 < +0 < finite < +Inf < +NaN.
func (b *Builder) LessOrEqualTotalOrder(x, y backends.Op) (backends.Op, error) {
	return b.comparison(backends.OpTypeLessOrEqualTotalOrder, x, y)
}
