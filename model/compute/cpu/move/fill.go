package move

import (
	"encoding/binary"
	"math/bits"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/dtypes/bfloat16"
	"github.com/x448/float16"
)

// Where chooses elements lo to hi of dst: onTrue's if the condition's byte is not zero, otherwise onFalse's. Elements have size
// bytes. condition, onTrue and onFalse may each be a single element, which is then repeated.
func Where(size int, dst, condition, onTrue, onFalse []byte, lo, hi int) {
	if lo >= hi {
		return
	}
	if len(condition) == 1 {
		chosen := onFalse
		if condition[0] != 0 {
			chosen = onTrue
		}
		if len(chosen) == size {
			fill(dst[lo*size:hi*size], chosen)
		} else {
			copy(dst[lo*size:hi*size], chosen[lo*size:hi*size])
		}
		return
	}
	switch size {
	case 1:
		where[uint8](dst, condition, onTrue, onFalse, lo, hi)
	case 2:
		where[uint16](dst, condition, onTrue, onFalse, lo, hi)
	case 4:
		where[uint32](dst, condition, onTrue, onFalse, lo, hi)
	case 8:
		where[uint64](dst, condition, onTrue, onFalse, lo, hi)
	default:
		where[[2]uint64](dst, condition, onTrue, onFalse, lo, hi)
	}
}

// where is Where for one width; a step of 0 repeats a single element.
func where[T word](dst, condition, onTrue, onFalse []byte, lo, hi int) {
	a, b := Of[T](onTrue), Of[T](onFalse)
	aStep, bStep := min(1, len(a)-1), min(1, len(b)-1)
	out, c := Of[T](dst)[lo:hi], condition[lo:hi]
	for i := range out {
		if c[i] != 0 {
			out[i] = a[(lo+i)*aStep]
		} else {
			out[i] = b[(lo+i)*bStep]
		}
	}
}

// Iota numbers the indices along one axis of an array.
type Iota struct {
	N     int // runs of equal numbers
	Grain int // runs per worker that are worth the overhead

	dtype dtypes.DType
	n     int // dimension of the axis
	run   int // bytes of one run: all axes after this one
	cycle []byte
}

// PlanIota plans an iota of the given numeric type along an axis of dims.
func PlanIota(dtype dtypes.DType, dims []int, axis int) *Iota {
	run := Size(dims[axis+1:]) * dtype.Size()
	p := &Iota{dtype: dtype, n: dims[axis], run: run, Grain: grain(run)}
	if Size(dims) > 0 {
		p.N = Size(dims[:axis+1])
	}
	p.cycle = make([]byte, p.n*dtype.Size())
	for i := range p.n {
		number(dtype, p.cycle[i*dtype.Size():], i)
	}
	return p
}

// Run writes runs lo to hi.
func (p *Iota) Run(dst []byte, lo, hi int) {
	size := p.dtype.Size()
	for r := lo; r < min(hi, p.N); r++ {
		fill(dst[r*p.run:][:p.run], p.cycle[r%p.n*size:][:size])
	}
}

// number writes i as one element of a numeric type.
func number(dtype dtypes.DType, dst []byte, i int) {
	switch dtype {
	case dtypes.Float32:
		Of[float32](dst)[0] = float32(i)
	case dtypes.Float64:
		Of[float64](dst)[0] = float64(i)
	case dtypes.Float16:
		Of[float16.Float16](dst)[0] = float16.Fromfloat32(float32(i))
	case dtypes.BFloat16:
		Of[bfloat16.BFloat16](dst)[0] = bfloat16.FromFloat32(float32(i))
	case dtypes.Complex64:
		Of[complex64](dst)[0] = complex(float32(i), 0)
	case dtypes.Complex128:
		Of[complex128](dst)[0] = complex(float64(i), 0)
	default: // integers, little-endian
		var b [8]byte
		binary.NativeEndian.PutUint64(b[:], uint64(i))
		copy(dst[:dtype.Size()], b[:])
	}
}

// PhiloxUnits returns the number of units of work for random bits of n bytes: blocks of 128 bits.
func PhiloxUnits(n int) int { return (n + 15) / 16 }

// PhiloxNext returns the state after n bytes were drawn: the counter, words 1 (low) and 2 (high), counts blocks.
func PhiloxNext(state [3]uint64, n int) [3]uint64 {
	low, carry := bits.Add64(state[1], uint64(PhiloxUnits(n)), 0)
	return [3]uint64{state[0], low, state[2] + carry}
}

// Philox writes blocks lo to hi of dst with the random bits that follow state, as XLA's RNG_PHILOX does for 32- and 64-bit
// integers: Philox4x32-10 (Salmon et al., SC 2011) with key state[0] and the counter state[1] + 2⁶⁴·state[2] + block.
func Philox(state [3]uint64, dst []byte, lo, hi int) {
	for b := lo; b < min(hi, PhiloxUnits(len(dst))); b++ {
		low, carry := bits.Add64(state[1], uint64(b), 0)
		block := philox(low, state[2]+carry, state[0])
		copy(dst[16*b:], Bytes(block[:]))
	}
}

// philox returns one block: ten rounds on the 128-bit counter.
func philox(low, high, key uint64) [4]uint32 {
	c0, c1, c2, c3 := uint32(low), uint32(low>>32), uint32(high), uint32(high>>32)
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		p0, p1 := uint64(c0)*0xD2511F53, uint64(c2)*0xCD9E8D57
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return [4]uint32{c0, c1, c2, c3}
}
