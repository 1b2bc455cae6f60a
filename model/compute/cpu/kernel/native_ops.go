//go:build cgo && amd64 && (linux || darwin)

package kernel

/*
#include "half.h"
*/
import "C"

// simple lists the operations that are one instruction.
var simple = map[Op]opcode{Add: vaddps, Sub: vsubps, Mul: vmulps, Div: vdivps, And: vandps, Or: vorps, Xor: vxorps}

// compared lists the predicates of comparisons.
var compared = map[Op]byte{Equal: ifEqual, NotEqual: ifNotEqual, Greater: ifGreater, GreaterEqual: ifGreaterEqual, Less: ifLess, LessEqual: ifLessEqual}

const (
	signBit  = 0x80000000
	allBits  = 0xffffffff
	infinity = 0x7f800000
	one      = 0x3f800000
)

// compute writes an operation, as in program_body.h, and returns the register of its result, which has no slot yet.
func (g *generator) compute(op Op, src [3]C.int32_t) int {
	if op.Operands() > 1 {
		return g.computeSeveral(op, src)
	}
	x, d := g.load(src[0]), g.take()
	of := vector{kind: inVector, n: x}
	switch op {
	case Copy:
		g.write(vmovups, d, 0, of)
	case Neg:
		g.write(vxorps, d, x, g.constant(signBit))
	case Abs:
		g.write(vandps, d, x, g.constant(^uint32(signBit)))
	case Not:
		g.write(vxorps, d, x, g.constant(allBits))
	case ToFloat:
		g.write(vandps, d, x, g.constant(one))
	case ToMask:
		g.compare(d, x, g.constant(0), ifNotEqual)
	case Sqrt:
		g.write(vsqrtps, d, 0, of)
	case Rsqrt:
		root := g.take()
		g.write(vsqrtps, root, 0, of)
		g.write(vmovups, d, 0, g.constant(one))
		g.write(vdivps, d, d, vector{kind: inVector, n: root})
	case Floor:
		g.write(vroundps, d, 0, of, toSmaller)
	case Ceil:
		g.write(vroundps, d, 0, of, toLarger)
	case Round:
		g.write(vroundps, d, 0, of, toNearest)
	case IsFinite:
		g.write(vandps, d, x, g.constant(infinity)) // no NaN
		g.compare(d, d, g.constant(infinity), ifNotEqual)
	case Sign:
		zero := g.test(x, g.constant(0), ifEqualOrNaN)
		g.write(vandps, d, x, g.constant(signBit))
		g.write(vorps, d, d, g.constant(one))
		g.blend(d, d, of, zero)
	case RoundBF16:
		g.roundBF16(d, x)
	}
	return d
}

func (g *generator) computeSeveral(op Op, src [3]C.int32_t) int {
	x := g.load(src[0])
	switch op {
	case Select:
		y, z, d := g.load(src[1]), g.load(src[2]), g.take()
		if g.lanes == 16 {
			g.write(vpmovd2m, k1, 0, vector{kind: inVector, n: x})
			x = inMask
		}
		g.blend(d, z, vector{kind: inVector, n: y}, x)
		return d
	case Clamp:
		y, z, larger, d := g.load(src[1]), g.load(src[2]), g.take(), g.take()
		g.most(vmaxps, larger, y, x)
		g.most(vminps, d, larger, z)
		return d
	case FMA:
		y, z, d := g.load(src[1]), g.load(src[2]), g.take()
		g.write(vmovups, d, 0, vector{kind: inVector, n: z})
		g.write(vfmadd231ps, d, x, vector{kind: inVector, n: y})
		return d
	case Max, Min:
		y, d, code := g.load(src[1]), g.take(), vmaxps
		if op == Min {
			code = vminps
		}
		if g.scales(src) { // the instruction returns y if either is NaN
			g.write(code, d, x, vector{kind: inVector, n: y})
		} else {
			g.most(code, d, x, y)
		}
		return d
	}
	d := g.take()
	if code, ok := simple[op]; ok {
		g.write(code, d, x, g.second(src[1]))
	} else {
		g.compare(d, x, g.second(src[1]), compared[op])
	}
	return d
}

// scales reports whether the current instruction's second operand is the first one, multiplied, so that it is NaN wherever that is, as in LeakyReLU.
func (g *generator) scales(src [3]C.int32_t) bool {
	for i := g.now - 1; i >= 0; i-- {
		c := &g.p.code[i]
		switch {
		case c.dst == src[1]:
			return src[1] != src[0] && Op(c.op) == Mul && (c.src[0] == src[0] || c.src[1] == src[0])
		case c.dst == src[0]:
			return false
		}
	}
	return false
}

// inMask stands for the mask register of AVX-512 instead of a vector register.
const inMask = -1

// compare writes whether a comparison is true to all bits of each of d's lanes.
func (g *generator) compare(d, x int, y vector, predicate byte) {
	if g.lanes == 16 {
		g.write(vcmpps, k1, x, y, predicate)
		g.write(vpmovm2d, d, 0, vector{kind: inVector, n: k1})
	} else {
		g.write(vcmpps, d, x, y, predicate)
	}
}

// test writes whether a comparison is true to a mask for blend, which it returns.
func (g *generator) test(x int, y vector, predicate byte) int {
	if g.lanes == 16 {
		g.write(vcmpps, k1, x, y, predicate)
		return inMask
	}
	mask := g.take()
	g.write(vcmpps, mask, x, y, predicate)
	return mask
}

// blend writes d = yes where the mask is true, no elsewhere.
func (g *generator) blend(d, no int, yes vector, mask int) {
	if mask == inMask {
		g.encode(vblendmps, 2, k1, d, no, yes)
	} else {
		g.write(vblendvps, d, no, yes, byte(mask<<4))
	}
}

// most writes the larger or smaller of x and y to d, another register; NaN if either is. The instruction alone returns y if either is NaN.
func (g *generator) most(op opcode, d, x, y int) {
	nan := g.test(x, vector{kind: inVector, n: x}, ifUnordered)
	g.write(op, d, x, vector{kind: inVector, n: y})
	g.blend(d, d, vector{kind: inVector, n: x}, nan)
	if nan != inMask {
		g.pinned[nan] = false
	}
}

func (g *generator) roundBF16(d, x int) {
	g.roundUp(d, x, g.take())
	g.write(vandps, d, d, g.constant(0xffff0000))
}

// roundUp writes values to d whose upper halves are the nearest bfloat16 of x. It changes odd, and all three differ.
func (g *generator) roundUp(d, x, odd int) {
	number := g.test(x, vector{kind: inVector, n: x}, ifOrdered)
	g.write(vpsrld, 2, odd, vector{kind: inVector, n: x}, 16)
	g.write(vandps, odd, odd, g.constant(1))
	g.write(vpaddd, odd, odd, g.constant(0x7fff))
	g.write(vpaddd, odd, odd, vector{kind: inVector, n: x})
	g.write(vorps, d, x, g.constant(0x00400000))
	g.blend(d, d, vector{kind: inVector, n: odd}, number)
}

// storeHalves stores the nearest bfloat16 of x, with the processor's conversion if it has one, unless there are denormals, which that treats as zero.
func (g *generator) storeHalves(x, slot int) {
	d := g.take()
	of := vector{kind: inVector, n: d}
	rounded := func() {
		g.roundUp(d, x, spare)
		g.write(vpsrld, 2, d, of, 16)
		g.write(vpmovdw, d, 0, of)
	}
	switch {
	case g.lanes == lanes:
		g.roundUp(d, x, g.take())
		g.write(vpsrld, 2, d, of, 16)
		g.write(vpackusdw, d, d, of) // in each half of the vector
		g.write(vpermq, d, 0, of, 0x08)
	case C.converts == 0:
		rounded()
	default:
		back := g.ifDenormal(x, rounded)
		g.write(vcvtbf16, d, 0, vector{kind: inVector, n: x})
		back()
	}
	to := g.array(slot)
	if g.column == 0 {
		g.prefetch(prefetchw, to.kind, to.n, aheadStored)
	}
	g.encode(vmovupsStore, byte(g.lanes/16), 0, d, 0, to)
}
