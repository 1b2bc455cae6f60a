package move

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/dtypes/bfloat16"
	"github.com/x448/float16"
)

// Op is a reduction operation. Max and Min of floats are NaN if any value is. And, Or and Xor apply to the bits of
// integers and to booleans. The result over no values is the identity of the operation: 0, 1, the lowest value, the highest, all ones
// (true), 0 and 0.
type Op uint8

// The operations of reductions, windows and scatters.
const (
	Sum Op = iota
	Product
	Max
	Min
	And
	Or
	Xor
)

// String returns the name of the operation for errors.
func (op Op) String() string {
	return [...]string{"sum", "product", "max", "min", "and", "or", "xor"}[op]
}

// bitwise reports whether the operation applies to bits instead of numbers.
func (op Op) bitwise() bool { return op >= And }

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type real interface {
	integer | float32 | float64
}

// accumulator folds runs of memory into a row of values. Floats and complex numbers are summed in 64-bit parts regardless of
// their own size, so a sum of n float32 is exact up to its last rounding for n up to several hundred million.
type accumulator interface {
	reset(n int)      // n values, each the identity
	zip(run []byte)   // combines value i with element i
	fold(run []byte)  // combines value 0 with every element
	store(dst []byte) // writes the values
}

// newAccumulator returns an accumulator for at most n values.
func newAccumulator(op Op, dtype dtypes.DType, n int) (accumulator, error) {
	lowest, highest := math.Inf(-1), math.Inf(1)
	switch {
	case dtype == dtypes.Bool && op != Sum && op != Product:
		return newBits[uint8](op, 1, n), nil
	case dtype.IsInt() && op.bitwise():
		return newBitsOf(op, dtype, n), nil
	case dtype.IsInt():
		return newIntegers(op, dtype, n), nil
	case op.bitwise() || dtype.IsComplex() && (op == Max || op == Min):
		return nil, fmt.Errorf("the cpu engine has no %s of %s", op, dtype)
	}
	switch dtype {
	case dtypes.Float32:
		return newReals[float32, float64](op, lowest, highest, n), nil
	case dtypes.Float64:
		return newReals[float64, float64](op, lowest, highest, n), nil
	case dtypes.Float16, dtypes.BFloat16:
		return &halves{reals: newReals[float32, float64](op, lowest, highest, n), codec: codecOf(dtype), wide: make([]float32, 512)}, nil
	case dtypes.Complex64:
		return &complexes[complex64]{op: op, room: make([]complex128, n)}, nil
	case dtypes.Complex128:
		return &complexes[complex128]{op: op, room: make([]complex128, n)}, nil
	}
	return nil, fmt.Errorf("the cpu engine has no %s of %s", op, dtype)
}

func newIntegers(op Op, dtype dtypes.DType, n int) accumulator {
	switch dtype {
	case dtypes.Int8:
		return newReals[int8](op, int8(math.MinInt8), math.MaxInt8, n)
	case dtypes.Int16:
		return newReals[int16](op, int16(math.MinInt16), math.MaxInt16, n)
	case dtypes.Int32:
		return newReals[int32](op, int32(math.MinInt32), math.MaxInt32, n)
	case dtypes.Int64:
		return newReals[int64](op, int64(math.MinInt64), math.MaxInt64, n)
	case dtypes.Uint8:
		return newReals[uint8](op, uint8(0), math.MaxUint8, n)
	case dtypes.Uint16:
		return newReals[uint16](op, uint16(0), math.MaxUint16, n)
	case dtypes.Uint32:
		return newReals[uint32](op, uint32(0), math.MaxUint32, n)
	}
	return newReals[uint64](op, uint64(0), math.MaxUint64, n)
}

func newBitsOf(op Op, dtype dtypes.DType, n int) accumulator {
	switch dtype.Size() {
	case 1:
		return newBits(op, ^uint8(0), n)
	case 2:
		return newBits(op, ^uint16(0), n)
	case 4:
		return newBits(op, ^uint32(0), n)
	}
	return newBits(op, ^uint64(0), n)
}

// reals accumulates numbers of type T as type A.
type reals[T, A real] struct {
	op       Op
	identity A
	room, at []A
}

func newReals[T, A real](op Op, lowest, highest A, n int) *reals[T, A] {
	identity := map[Op]A{Sum: 0, Product: 1, Max: lowest, Min: highest}[op]
	return &reals[T, A]{op: op, identity: identity, room: make([]A, n)}
}

func (r *reals[T, A]) reset(n int) {
	r.at = r.room[:n]
	for i := range r.at {
		r.at[i] = r.identity
	}
}

func (r *reals[T, A]) zip(run []byte)  { zip(r.op, r.at, Of[T](run)) }
func (r *reals[T, A]) fold(run []byte) { r.at[0] = fold(r.op, r.at[0], Of[T](run)) }

func (r *reals[T, A]) store(dst []byte) {
	out := Of[T](dst)[:len(r.at)]
	for i, v := range r.at {
		out[i] = T(v)
	}
}

// zip combines values[i] with acc[i].
func zip[T, A real](op Op, acc []A, values []T) {
	acc = acc[:len(values)]
	switch op {
	case Sum:
		for i, v := range values {
			acc[i] += A(v)
		}
	case Product:
		for i, v := range values {
			acc[i] *= A(v)
		}
	case Max:
		for i, v := range values {
			acc[i] = max(acc[i], A(v))
		}
	case Min:
		for i, v := range values {
			acc[i] = min(acc[i], A(v))
		}
	}
}

// fold combines all values with acc. A NaN is unequal to itself, and stays because no value is above or below it.
func fold[T, A real](op Op, acc A, values []T) A {
	switch op {
	case Sum:
		return acc + sum[T, A](values)
	case Product:
		for _, v := range values {
			acc *= A(v)
		}
	case Max:
		for _, v := range values {
			if a := A(v); a > acc || a != a {
				acc = a
			}
		}
	case Min:
		for _, v := range values {
			if a := A(v); a < acc || a != a {
				acc = a
			}
		}
	}
	return acc
}

// pairwise is the length above which a sum is split in two, which bounds its rounding error.
const pairwise = 4096

// sum adds values in four independent sums, so that additions do not wait for one another.
func sum[T, A real](values []T) A {
	if len(values) > pairwise {
		half := len(values) / 2
		return sum[T, A](values[:half]) + sum[T, A](values[half:])
	}
	var a, b, c, d A
	for len(values) >= 4 {
		a += A(values[0])
		b += A(values[1])
		c += A(values[2])
		d += A(values[3])
		values = values[4:]
	}
	for _, v := range values {
		a += A(v)
	}
	return (a + b) + (c + d)
}

// words accumulates bits.
type words[T integer] struct {
	op       Op
	identity T
	room, at []T
}

// newBits returns an accumulator of bits; all is the initial value of And.
func newBits[T integer](op Op, all T, n int) *words[T] {
	switch op { // of booleans, the maximum is any and the minimum is all
	case Max:
		op = Or
	case Min:
		op = And
	}
	w := &words[T]{op: op, room: make([]T, n)}
	if op == And {
		w.identity = all
	}
	return w
}

func (w *words[T]) reset(n int) {
	w.at = w.room[:n]
	for i := range w.at {
		w.at[i] = w.identity
	}
}

func (w *words[T]) zip(run []byte)   { zipBits(w.op, w.at, Of[T](run)) }
func (w *words[T]) store(dst []byte) { copy(Of[T](dst), w.at) }

func (w *words[T]) fold(run []byte) {
	acc := w.at[0]
	switch values := Of[T](run); w.op {
	case And:
		for _, v := range values {
			acc &= v
		}
	case Or:
		for _, v := range values {
			acc |= v
		}
	case Xor:
		for _, v := range values {
			acc ^= v
		}
	}
	w.at[0] = acc
}

func zipBits[T integer](op Op, acc, values []T) {
	acc = acc[:len(values)]
	switch op {
	case And:
		for i, v := range values {
			acc[i] &= v
		}
	case Or:
		for i, v := range values {
			acc[i] |= v
		}
	case Xor:
		for i, v := range values {
			acc[i] ^= v
		}
	}
}

// codec reads and writes one of the 16-bit floats.
type codec struct {
	decode func(uint16) float32
	encode func(float32) uint16
}

func codecOf(dtype dtypes.DType) codec {
	if dtype == dtypes.BFloat16 {
		return codec{
			func(b uint16) float32 { return bfloat16.FromBits(b).Float32() },
			func(v float32) uint16 { return bfloat16.FromFloat32(v).Bits() },
		}
	}
	return codec{
		func(b uint16) float32 { return float16.Frombits(b).Float32() },
		func(v float32) uint16 { return float16.Fromfloat32(v).Bits() },
	}
}

// widen decodes as much of run as fits into wide, and returns the rest of run.
func (c codec) widen(wide []float32, run []uint16) (part []float32, rest []uint16) {
	n := min(len(wide), len(run))
	for i, b := range run[:n] {
		wide[i] = c.decode(b)
	}
	return wide[:n], run[n:]
}

// halves accumulates 16-bit floats by way of float32.
type halves struct {
	*reals[float32, float64]
	codec codec
	wide  []float32
}

func (h *halves) zip(run []byte) {
	acc := h.at
	for part, rest := h.codec.widen(h.wide, Of[uint16](run)); len(part) > 0; part, rest = h.codec.widen(h.wide, rest) {
		zip(h.op, acc, part)
		acc = acc[len(part):]
	}
}

func (h *halves) fold(run []byte) {
	for part, rest := h.codec.widen(h.wide, Of[uint16](run)); len(part) > 0; part, rest = h.codec.widen(h.wide, rest) {
		h.at[0] = fold(h.op, h.at[0], part)
	}
}

func (h *halves) store(dst []byte) {
	out := Of[uint16](dst)[:len(h.at)]
	for i, v := range h.at {
		out[i] = h.codec.encode(float32(v))
	}
}

// complexes accumulates complex numbers, by sum or product.
type complexes[T complex64 | complex128] struct {
	op       Op
	room, at []complex128
}

func (c *complexes[T]) reset(n int) {
	c.at = c.room[:n]
	for i := range c.at {
		c.at[i] = complex(float64(c.op), 0) // Sum is 0 and Product is 1, like their identities
	}
}

func (c *complexes[T]) zip(run []byte) {
	for i, v := range Of[T](run) {
		if c.op == Sum {
			c.at[i] += complex128(v)
		} else {
			c.at[i] *= complex128(v)
		}
	}
}

func (c *complexes[T]) fold(run []byte) {
	acc := c.at[0]
	for _, v := range Of[T](run) {
		if c.op == Sum {
			acc += complex128(v)
		} else {
			acc *= complex128(v)
		}
	}
	c.at[0] = acc
}

func (c *complexes[T]) store(dst []byte) {
	out := Of[T](dst)[:len(c.at)]
	for i, v := range c.at {
		out[i] = T(v)
	}
}
