//go:build cgo

package cpu

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/dtypes/bfloat16"
	"github.com/x448/float16"
)

// blockFn computes n elements of dst from the operands in src; operations with fewer than three operands ignore the rest. dst may be one of them.
type blockFn func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int)

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type float interface{ float32 | float64 }

type number interface{ integer | float }

// vector returns the n elements at p.
func vector[T any](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }

// elementFn returns the loop of an element-wise operation on operands of type dtype, or nil if the operation does not support the type.
// For a Where, dtype is the type of its values.
func elementFn(op backends.OpType, dtype dtypes.DType) blockFn {
	if op == backends.OpTypeComplex {
		return joinFn(dtype)
	}
	switch dtype {
	case dtypes.Bool:
		return boolFn(op)
	case dtypes.Int8:
		return integerFn[int8](op)
	case dtypes.Int16:
		return integerFn[int16](op)
	case dtypes.Int32:
		return integerFn[int32](op)
	case dtypes.Int64:
		return integerFn[int64](op)
	case dtypes.Uint8:
		return integerFn[uint8](op)
	case dtypes.Uint16:
		return integerFn[uint16](op)
	case dtypes.Uint32:
		return integerFn[uint32](op)
	case dtypes.Uint64:
		return integerFn[uint64](op)
	case dtypes.Float32:
		return floatFn[float32](op)
	case dtypes.Float64:
		return floatFn[float64](op)
	case dtypes.Float16:
		return halfFn(op, float16.Float16.Float32, float16.Fromfloat32)
	case dtypes.BFloat16:
		return halfFn(op, bfloat16.BFloat16.Float32, roundBF16)
	case dtypes.Complex64:
		return complexFn[complex64, float32](op)
	case dtypes.Complex128:
		return complexFn[complex128, float64](op)
	}
	return nil
}

// map1 applies a function of one operand to each element.
func map1[A, B any](f func(A) B) blockFn {
	return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
		d, a := vector[B](dst, n), vector[A](src[0], n)
		for i, v := range a {
			d[i] = f(v)
		}
	}
}

// map2 applies a function of two operands to each element.
func map2[A, B any](f func(x, y A) B) blockFn {
	return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
		d, a, b := vector[B](dst, n), vector[A](src[0], n), vector[A](src[1], n)
		for i, v := range a {
			d[i] = f(v, b[i])
		}
	}
}

// where returns the loop of Where.
func where[T any]() blockFn {
	return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
		d, c, a, b := vector[T](dst, n), vector[bool](src[0], n), vector[T](src[1], n), vector[T](src[2], n)
		for i, yes := range c {
			if yes {
				d[i] = a[i]
			} else {
				d[i] = b[i]
			}
		}
	}
}

// clamp returns the loop of min(max(lo, x), hi).
func clamp[T number]() blockFn {
	return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
		d, lo, x, hi := vector[T](dst, n), vector[T](src[0], n), vector[T](src[1], n), vector[T](src[2], n)
		for i, v := range x {
			d[i] = min(max(lo[i], v), hi[i])
		}
	}
}

func boolFn(op backends.OpType) blockFn {
	switch op {
	case backends.OpTypeLogicalNot:
		return map1(func(x bool) bool { return !x })
	case backends.OpTypeLogicalAnd, backends.OpTypeMin:
		return map2(func(x, y bool) bool { return x && y })
	case backends.OpTypeLogicalOr, backends.OpTypeMax:
		return map2(func(x, y bool) bool { return x || y })
	case backends.OpTypeLogicalXor, backends.OpTypeNotEqual, backends.OpTypeNotEqualTotalOrder:
		return map2(func(x, y bool) bool { return x != y })
	case backends.OpTypeEqual, backends.OpTypeEqualTotalOrder:
		return map2(func(x, y bool) bool { return x == y })
	case backends.OpTypeGreaterThan, backends.OpTypeGreaterThanTotalOrder:
		return map2(func(x, y bool) bool { return x && !y })
	case backends.OpTypeGreaterOrEqual, backends.OpTypeGreaterOrEqualTotalOrder:
		return map2(func(x, y bool) bool { return x || !y })
	case backends.OpTypeLessThan, backends.OpTypeLessThanTotalOrder:
		return map2(func(x, y bool) bool { return !x && y })
	case backends.OpTypeLessOrEqual, backends.OpTypeLessOrEqualTotalOrder:
		return map2(func(x, y bool) bool { return !x || y })
	case backends.OpTypeWhere:
		return where[bool]()
	}
	return nil
}

// numberFn has the operations of both integers and floats. The important loops are written out, since a call per element costs more than an addition.
func numberFn[T number](op backends.OpType) blockFn {
	switch op {
	case backends.OpTypeAdd:
		return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
			d, a, b := vector[T](dst, n), vector[T](src[0], n), vector[T](src[1], n)
			for i, v := range a {
				d[i] = v + b[i]
			}
		}
	case backends.OpTypeSub:
		return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
			d, a, b := vector[T](dst, n), vector[T](src[0], n), vector[T](src[1], n)
			for i, v := range a {
				d[i] = v - b[i]
			}
		}
	case backends.OpTypeMul:
		return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
			d, a, b := vector[T](dst, n), vector[T](src[0], n), vector[T](src[1], n)
			for i, v := range a {
				d[i] = v * b[i]
			}
		}
	case backends.OpTypeNeg:
		return map1(func(x T) T { return -x })
	case backends.OpTypeMax:
		return map2(func(x, y T) T { return max(x, y) })
	case backends.OpTypeMin:
		return map2(func(x, y T) T { return min(x, y) })
	case backends.OpTypeClamp:
		return clamp[T]()
	case backends.OpTypeWhere:
		return where[T]()
	}
	return compareFn[T](op)
}

func compareFn[T number](op backends.OpType) blockFn {
	switch op {
	case backends.OpTypeEqual:
		return map2(func(x, y T) bool { return x == y })
	case backends.OpTypeNotEqual:
		return map2(func(x, y T) bool { return x != y })
	case backends.OpTypeGreaterThan:
		return map2(func(x, y T) bool { return x > y })
	case backends.OpTypeGreaterOrEqual:
		return map2(func(x, y T) bool { return x >= y })
	case backends.OpTypeLessThan:
		return map2(func(x, y T) bool { return x < y })
	case backends.OpTypeLessOrEqual:
		return map2(func(x, y T) bool { return x <= y })
	}
	return nil
}

// plainOrder maps each total-order comparison to the ordinary comparison.
var plainOrder = map[backends.OpType]backends.OpType{
	backends.OpTypeEqualTotalOrder:          backends.OpTypeEqual,
	backends.OpTypeNotEqualTotalOrder:       backends.OpTypeNotEqual,
	backends.OpTypeGreaterThanTotalOrder:    backends.OpTypeGreaterThan,
	backends.OpTypeGreaterOrEqualTotalOrder: backends.OpTypeGreaterOrEqual,
	backends.OpTypeLessThanTotalOrder:       backends.OpTypeLessThan,
	backends.OpTypeLessOrEqualTotalOrder:    backends.OpTypeLessOrEqual,
}

// integerFn returns the loops of integers, for which total order is the ordinary order.
func integerFn[T integer](op backends.OpType) blockFn {
	if plain, ok := plainOrder[op]; ok {
		op = plain
	}
	width := int(unsafe.Sizeof(T(0))) * 8
	switch op {
	case backends.OpTypeAbs:
		return map1(func(x T) T {
			if x < 0 {
				return -x
			}
			return x
		})
	case backends.OpTypeSign:
		return map1(sign[T])
	case backends.OpTypeDiv:
		return map2(divide[T])
	case backends.OpTypeRem:
		return map2(remainder[T])
	case backends.OpTypePow:
		return map2(power[T])
	case backends.OpTypeBitwiseNot:
		return map1(func(x T) T { return ^x })
	case backends.OpTypeBitwiseAnd:
		return map2(func(x, y T) T { return x & y })
	case backends.OpTypeBitwiseOr:
		return map2(func(x, y T) T { return x | y })
	case backends.OpTypeBitwiseXor:
		return map2(func(x, y T) T { return x ^ y })
	case backends.OpTypeShiftLeft:
		return map2(func(x, y T) T { return x << shift(y) })
	case backends.OpTypeShiftRightArithmetic:
		return map2(func(x, y T) T { return arithmeticShift(x, shift(y), width) })
	case backends.OpTypeShiftRightLogical:
		return map2(func(x, y T) T { return T(bitsOf(x, width) >> shift(y)) })
	case backends.OpTypeBitCount:
		return map1(func(x T) T { return T(bits.OnesCount64(bitsOf(x, width))) })
	case backends.OpTypeClz:
		return map1(func(x T) T { return T(bits.LeadingZeros64(bitsOf(x, width)) - 64 + width) })
	}
	return numberFn[T](op)
}

// bitsOf returns the low width bits of x.
func bitsOf[T integer](x T, width int) uint64 { return uint64(x) << (64 - width) >> (64 - width) }

// shift converts a shift amount for Go: a negative amount shifts by more than any width.
func shift[T integer](y T) uint64 {
	if y < 0 {
		return 64
	}
	return uint64(y)
}

// arithmeticShift fills the freed bits with the highest bit, also for unsigned types.
func arithmeticShift[T integer](x T, by uint64, width int) T {
	return T(int64(bitsOf(x, width)<<(64-width)) >> (64 - width) >> by)
}

func sign[T integer](x T) T {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -x / x // −1; a constant −1 does not compile for unsigned types
	}
	return 0
}

// divide truncates; division by 0 returns all bits set, as in XLA.
func divide[T integer](x, y T) T {
	if y == 0 {
		return ^T(0)
	}
	return x / y
}

// remainder returns x for division by 0, as in XLA.
func remainder[T integer](x, y T) T {
	if y == 0 {
		return x
	}
	return x % y
}

// power multiplies by squaring. A negative exponent truncates to 0, except for ±1.
func power[T integer](x, y T) T {
	if y < 0 {
		if x != 1 && x+1 != 0 {
			return 0
		}
		y = y & 1
	}
	p := T(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			p *= x
		}
		x *= x
	}
	return p
}

// real1 has the functions of one real variable.
var real1 = map[backends.OpType]func(float64) float64{
	backends.OpTypeCeil:     math.Ceil,
	backends.OpTypeCos:      math.Cos,
	backends.OpTypeErf:      math.Erf,
	backends.OpTypeExp:      math.Exp,
	backends.OpTypeExpm1:    math.Expm1,
	backends.OpTypeFloor:    math.Floor,
	backends.OpTypeLog:      math.Log,
	backends.OpTypeLog1p:    math.Log1p,
	backends.OpTypeLogistic: logistic,
	backends.OpTypeRound:    math.RoundToEven,
	backends.OpTypeRsqrt:    func(x float64) float64 { return 1 / math.Sqrt(x) },
	backends.OpTypeSin:      math.Sin,
	backends.OpTypeSqrt:     math.Sqrt,
	backends.OpTypeTanh:     math.Tanh,
}

// logistic returns 1/(1 + e⁻ˣ), with full relative precision for negative x.
func logistic(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

func floatFn[T float](op backends.OpType) blockFn {
	if f, ok := real1[op]; ok {
		return map1(func(x T) T { return T(f(float64(x))) })
	}
	if plain, ok := plainOrder[op]; ok {
		return totalOrder[T](plain)
	}
	switch op {
	case backends.OpTypeAbs:
		return map1(func(x T) T { return T(math.Abs(float64(x))) })
	case backends.OpTypeSign:
		return map1(func(x T) T {
			if x == 0 || x != x {
				return x
			}
			return T(math.Copysign(1, float64(x)))
		})
	case backends.OpTypeDiv:
		return map2(func(x, y T) T { return x / y })
	case backends.OpTypeRem:
		return map2(func(x, y T) T { return T(math.Mod(float64(x), float64(y))) })
	case backends.OpTypePow:
		return map2(func(x, y T) T { return T(math.Pow(float64(x), float64(y))) })
	case backends.OpTypeIsFinite:
		return map1(func(x T) bool { return x-x == 0 })
	}
	return numberFn[T](op)
}

// totalOrder compares floats by their rank in total order.
func totalOrder[T float](op backends.OpType) blockFn {
	compare := map[backends.OpType]func(x, y int64) bool{
		backends.OpTypeEqual:          func(x, y int64) bool { return x == y },
		backends.OpTypeNotEqual:       func(x, y int64) bool { return x != y },
		backends.OpTypeGreaterThan:    func(x, y int64) bool { return x > y },
		backends.OpTypeGreaterOrEqual: func(x, y int64) bool { return x >= y },
		backends.OpTypeLessThan:       func(x, y int64) bool { return x < y },
		backends.OpTypeLessOrEqual:    func(x, y int64) bool { return x <= y },
	}[op]
	return map2(func(x, y T) bool { return compare(rank(x), rank(y)) })
}

// rank maps a float to an integer in total order: its bits, with all but the sign inverted for negative numbers.
func rank[T float](x T) int64 {
	var b int64
	if unsafe.Sizeof(x) == 4 {
		b = int64(int32(math.Float32bits(float32(x))))
		if b < 0 {
			return b ^ math.MaxInt32
		}
		return b
	}
	b = int64(math.Float64bits(float64(x)))
	if b < 0 {
		return b ^ math.MaxInt64
	}
	return b
}

// roundBF16 rounds to the nearest bfloat16, ties to even; GoMLX's own conversion truncates.
func roundBF16(x float32) bfloat16.BFloat16 {
	b := math.Float32bits(x)
	if x != x {
		return bfloat16.FromBits(uint16(b>>16) | 1<<6) // still NaN
	}
	return bfloat16.FromBits(uint16((b + 0x7fff + b>>16&1) >> 16))
}

// halfBlock is the number of 16-bit floats widened at a time.
const halfBlock = 256

// halfFn computes 16-bit floats by way of float32: widen, compute, round.
func halfFn[H any](op backends.OpType, widen func(H) float32, round func(float32) H) blockFn {
	f := floatFn[float32](op)
	if f == nil {
		return nil
	}
	operands, boolean := 1, false
	switch {
	case op == backends.OpTypeWhere:
		return where[H]()
	case op == backends.OpTypeClamp:
		operands = 3
	case op == backends.OpTypeIsFinite:
		boolean = true
	case isComparison(op):
		operands, boolean = 2, true
	case isBinary(op):
		operands = 2
	}
	return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
		var wide [4][halfBlock]float32
		for lo := 0; lo < n; lo += halfBlock {
			m := min(halfBlock, n-lo)
			var args [3]unsafe.Pointer
			for k := range operands {
				for i, h := range vector[H](src[k], n)[lo : lo+m] {
					wide[k][i] = widen(h)
				}
				args[k] = unsafe.Pointer(&wide[k])
			}
			if boolean {
				f(unsafe.Add(dst, lo), args, m)
				continue
			}
			f(unsafe.Pointer(&wide[3]), args, m)
			out := vector[H](dst, n)[lo : lo+m]
			for i := range out {
				out[i] = round(wide[3][i])
			}
		}
	}
}

func isComparison(op backends.OpType) bool {
	if _, ok := plainOrder[op]; ok {
		return true
	}
	switch op {
	case backends.OpTypeEqual, backends.OpTypeNotEqual, backends.OpTypeGreaterThan, backends.OpTypeGreaterOrEqual,
		backends.OpTypeLessThan, backends.OpTypeLessOrEqual:
		return true
	}
	return false
}

func isBinary(op backends.OpType) bool {
	switch op {
	case backends.OpTypeAdd, backends.OpTypeSub, backends.OpTypeMul, backends.OpTypeDiv, backends.OpTypeRem, backends.OpTypePow,
		backends.OpTypeMax, backends.OpTypeMin, backends.OpTypeBitwiseAnd, backends.OpTypeBitwiseOr, backends.OpTypeBitwiseXor,
		backends.OpTypeLogicalAnd, backends.OpTypeLogicalOr, backends.OpTypeLogicalXor, backends.OpTypeShiftLeft,
		backends.OpTypeShiftRightArithmetic, backends.OpTypeShiftRightLogical:
		return true
	}
	return false
}
