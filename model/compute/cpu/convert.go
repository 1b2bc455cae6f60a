//go:build cgo

package cpu

import (
	"math"
	"unsafe"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/dtypes/bfloat16"
	"github.com/x448/float16"
)

// convertFn returns the loop that converts values of one type to another.
func convertFn(from, to dtypes.DType) blockFn {
	switch from {
	case dtypes.Bool: // booleans are stored as bytes 0 and 1
		return convertFrom[uint8](to)
	case dtypes.Int8:
		return convertFrom[int8](to)
	case dtypes.Int16:
		return convertFrom[int16](to)
	case dtypes.Int32:
		return convertFrom[int32](to)
	case dtypes.Int64:
		return convertFrom[int64](to)
	case dtypes.Uint8:
		return convertFrom[uint8](to)
	case dtypes.Uint16:
		return convertFrom[uint16](to)
	case dtypes.Uint32:
		return convertFrom[uint32](to)
	case dtypes.Uint64:
		return convertFrom[uint64](to)
	case dtypes.Float32:
		return convertFrom[float32](to)
	case dtypes.Float64:
		return convertFrom[float64](to)
	case dtypes.Float16:
		return convertHalf(to, float16.Float16.Float32)
	case dtypes.BFloat16:
		return convertHalf(to, bfloat16.BFloat16.Float32)
	case dtypes.Complex64:
		return convertComplex[complex64](to)
	case dtypes.Complex128:
		return convertComplex[complex128](to)
	}
	return nil
}

func convertFrom[A number](to dtypes.DType) blockFn {
	switch to {
	case dtypes.Bool:
		return map1(func(x A) bool { return x != 0 })
	case dtypes.Int8:
		return convert[A, int8]()
	case dtypes.Int16:
		return convert[A, int16]()
	case dtypes.Int32:
		return convert[A, int32]()
	case dtypes.Int64:
		return convert[A, int64]()
	case dtypes.Uint8:
		return convert[A, uint8]()
	case dtypes.Uint16:
		return convert[A, uint16]()
	case dtypes.Uint32:
		return convert[A, uint32]()
	case dtypes.Uint64:
		return convert[A, uint64]()
	case dtypes.Float32:
		return convert[A, float32]()
	case dtypes.Float64:
		return convert[A, float64]()
	case dtypes.Float16:
		return map1(func(x A) float16.Float16 { return float16.Fromfloat32(float32(x)) })
	case dtypes.BFloat16:
		return map1(func(x A) bfloat16.BFloat16 { return roundBF16(float32(x)) })
	case dtypes.Complex64:
		return map1(func(x A) complex64 { return complex(float32(x), 0) })
	case dtypes.Complex128:
		return map1(func(x A) complex128 { return complex(float64(x), 0) })
	}
	return nil
}

// convertHalf converts 16-bit floats by way of float32.
func convertHalf[H any](to dtypes.DType, widen func(H) float32) blockFn {
	f := convertFrom[float32](to)
	return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
		var wide [halfBlock]float32
		in := vector[H](src[0], n)
		for lo := 0; lo < n; lo += halfBlock {
			m := min(halfBlock, n-lo)
			for i, h := range in[lo : lo+m] {
				wide[i] = widen(h)
			}
			f(unsafe.Add(dst, lo*to.Size()), [3]unsafe.Pointer{unsafe.Pointer(&wide)}, m)
		}
	}
}

// convert applies Go's conversion, or truncate from floats to integers, because Go's result for values out of range depends on the machine.
func convert[A, B number]() blockFn {
	if isFloat[A]() && !isFloat[B]() {
		return map1(truncate[A, B])
	}
	return func(dst unsafe.Pointer, src [3]unsafe.Pointer, n int) {
		d, a := vector[B](dst, n), vector[A](src[0], n)
		for i, v := range a {
			d[i] = B(v)
		}
	}
}

// truncate drops the fraction, saturates values out of range and converts NaN to 0.
func truncate[A, B number](x A) B {
	v := float64(x)
	lo, hi := bounds[B]()
	switch {
	case v != v:
		return 0
	case v <= float64(lo):
		return lo
	case v >= float64(hi):
		return hi
	}
	return B(v)
}

// bounds returns the smallest and the largest integer of a type.
func bounds[B number]() (lo, hi B) {
	var zero B
	if zero-1 > 0 { // unsigned: 0 − 1 wraps
		return 0, zero - 1
	}
	top := int64(math.MaxInt64) >> (64 - 8*unsafe.Sizeof(zero))
	return B(-top - 1), B(top)
}

func isFloat[T number]() bool {
	var zero T
	switch any(zero).(type) {
	case float32, float64:
		return true
	}
	return false
}
