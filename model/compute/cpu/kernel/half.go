//go:build cgo

package kernel

/*
#include "half.h"
*/
import "C"

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Operands describes the operands of a float32 product.
type Operands int

const (
	Exact  Operands = iota // any values, multiplied as they are
	Halves                 // bfloat16 values, multiplied by the fastest kernels
	Split                  // any values, multiplied as two bfloat16 parts each if that is faster; the products of low parts are omitted
)

// Stored has the operands of a product, the first and the second, that are stored as bfloat16 instead of float32. A slice of floats then has two
// of their elements in each float; strides count elements.
type Stored [2]bool

// elements returns the number of elements that floats hold as operand i.
func (s Stored) elements(i, floats int) int {
	if s[i] {
		return 2 * floats
	}
	return floats
}

// parts returns how many bfloat16 values represent an element.
func (o Operands) parts() int {
	if o == Split {
		return 2
	}
	return 1
}

// The sets of kernels that multiply operands as bfloat16.
const (
	halfNone   = C.HALF_NONE // the float32 kernels
	halfPlain  = C.HALF_PLAIN
	halfAVX512 = C.HALF_AVX512
	halfAMX    = C.HALF_AMX
)

var halfNames = [C.HALF_SETS]string{"float32", "plain C", "AVX512_BF16", "AMX"}

// halfMargin is the minimum speed of a set relative to the float32 kernels. The choice depends on a measurement and should be the same
// each time, since sets differ in the order of sums.
const halfMargin = 1.25

// halfTries is how often the kernels are timed, alternating, in each of halfPlaces pieces of memory; the fastest time of each counts. In some, packing
// takes twice as long.
const halfTries, halfPlaces = 2, 4

// The size of the timed product: it takes the float32 kernels about 1 ms and fits into the L2 cache, as do parts of larger products.
const halfM, halfN, halfK = 512, 256, 512

// HalfChoice is the chosen set of kernels for bfloat16, with the reasons.
type HalfChoice struct {
	Name      string   // "float32" if no kernel for bfloat16 is used
	Precision string   // "bf16" for Halves, "bf16x3" for Split
	Reasons   []string // a sentence for each set
	set       int
}

// String returns the choice as sentences.
func (c HalfChoice) String() string {
	return fmt.Sprintf("Products in %s use the kernels for %s. %s", c.Precision, c.Name, strings.Join(c.Reasons, " "))
}

// ForHalves and ForSplit choose the kernels for these kinds of operands on their first call, which takes a few milliseconds
// if the processor supports any of the sets.
var (
	ForHalves = sync.OnceValue(func() HalfChoice { return chooseHalf("bf16", Halves) })
	ForSplit  = sync.OnceValue(func() HalfChoice { return chooseHalf("bf16x3", Split) })
)

// forcedHalf is the set forced by a test, plus one; 0 if none.
var forcedHalf atomic.Int32

// ForceHalf makes bfloat16 products that are planned from now on use a set regardless of their shapes, for tests. It returns false if
// the processor does not report the set.
func ForceHalf(name string) (undo func(), ok bool) {
	set := slices.Index(halfNames[:], name)
	if set < 0 || C.half_missing(C.int(set)) != C.HALF_HERE {
		return nil, false
	}
	forcedHalf.Store(int32(set) + 1)
	return func() { forcedHalf.Store(0) }, true
}

// set returns the set that multiplies operands, and their number of parts.
func (o Operands) set() (set, parts int) {
	switch forced := int(forcedHalf.Load()); {
	case o == Exact:
		return halfNone, 1
	case forced != 0:
		return forced - 1, o.parts()
	case o == Split:
		return ForSplit().set, 2
	}
	return ForHalves().set, 1
}

// AsHalves reports whether kernels for bfloat16 multiply operands of products whose shapes make it worthwhile.
func (o Operands) AsHalves() bool {
	set, _ := o.set()
	return set != halfNone
}

// halfGain is the assumed speed of a set's tiles relative to those of float32. It is lower than expected, so that products that gain
// little stay in float32, and fixed, so that a shape is always computed in the same way. With two parts each, three products are computed.
var halfGain = [C.HALF_SETS]float64{halfAVX512: 1.5, halfAMX: 8}

// A product whose larger operand, or kernel, has at least unroundedSize elements, each for at most so many results as unroundedRows says for a set, takes less
// time in float32 than rounding that operand and multiplying it as bfloat16. On Zen 4 with AVX512_BF16, about 60 results would make up for it; on a Xeon with
// AMX, 32 do.
const unroundedSize = 1 << 18

var unroundedRows = [C.HALF_SETS]int{halfAVX512: 32, halfAMX: 16}

// staysFloat reports whether a product with an operand of so many elements, each used for rows results, takes less time if its operands are not rounded.
func staysFloat(set, size, rows int) bool {
	return size >= unroundedSize && rows <= unroundedRows[set]
}

// StaysFloat reports whether the product takes less time in float32 than with operands that are first rounded to bfloat16.
func (g Gemm) StaysFloat() bool {
	set, _ := Halves.set()
	return g.Batch <= 1 && staysFloat(set, g.K*max(g.M, g.N), min(g.M, g.N))
}

// StaysFloat reports whether the convolution takes less time in float32 than with operands that are first rounded to bfloat16.
func (s ConvSpec) StaysFloat() bool {
	out, err := s.OutShape()
	if err != nil {
		return false
	}
	rows, size := s.Batch, s.OutChannels*s.InChannels
	for d, n := range out {
		rows, size = rows*divideUp(n, s.InDilation[d]), size*s.Kernel[d]
	}
	set, _ := Halves.set()
	return staysFloat(set, size, rows)
}

// The times to pack an element as float32, to pack one as part of a pair, adjacent in memory or not, and to store a result by way of a block, in
// float32 multiplications.
const (
	packCost     = 24
	pairsCost    = 8
	farPairsCost = 120
	storeCost    = 48
)

// pairCost returns the time to pack an element of an operand as part of a pair.
func pairCost(o *C.operand) float64 {
	if o.bounded == 0 && o.x.digits == 1 && (o.x.d[0].off == 1 || o.k.d[o.k.digits-1].off == 1) {
		return pairsCost
	}
	return farPairsCost
}

// halfPays reports whether a set computes products faster than the float32 kernels, which may read one operand in place.
func halfPays(set, parts int, inPlace bool, products ...*product) bool {
	return halfSpeedup(set, parts, inPlace, products...) > 1
}

// halfSpeedup returns the assumed speed of a set relative to the float32 kernels for products: 0 without a set, infinity if it is forced. Work is
// counted in float32 multiplications of whole tiles.
func halfSpeedup(set, parts int, inPlace bool, products ...*product) float64 {
	switch {
	case set == halfNone:
		return 0
	case forcedHalf.Load() != 0:
		return math.Inf(1)
	}
	var wide, narrow float64
	for _, q := range products {
		m, n, k := float64(q.c.m), float64(q.c.n), float64(q.c.k)
		wide += m * n * k
		if !inPlace {
			wide += packCost * (m + n) * k
		}
		packing := (pairCost(&q.c.a)*m + pairCost(&q.c.b)*n) * k
		whole := func(n C.int64_t, of int) float64 { return float64(roundUp(int(n), of)) }
		multiplying := whole(q.c.m, int(C.half_unit(C.int(set)))) * whole(q.c.n, C.HALF_COLS/2) * whole(q.c.k, C.HALF_STEP) / halfGain[set]
		narrow += float64(parts)*packing + float64(2*parts-1)*multiplying + storeCost*m*n
	}
	return wide / narrow
}

// chooseHalf returns the fastest set that passes its test.
func chooseHalf(precision string, o Operands) HalfChoice {
	best := HalfChoice{Name: halfNames[halfNone], Precision: precision}
	gain := halfMargin
	for set := halfAMX; set >= halfAVX512; set-- {
		if missing := missingHalf(set); missing != "" {
			best.Reasons = append(best.Reasons, halfNames[set]+" "+missing)
			continue
		}
		if err := proveHalf(set, o); err != nil {
			best.Reasons = append(best.Reasons, fmt.Sprintf("%s gives wrong results: %v.", halfNames[set], err))
			continue
		}
		speed := halfSpeed(set, o)
		best.Reasons = append(best.Reasons, fmt.Sprintf("%s is %.2g times as fast as float32 at a matrix product; at least %g is required.", halfNames[set], speed, halfMargin))
		if speed >= gain {
			best.Name, best.set, gain = halfNames[set], set, speed
		}
	}
	return best
}

var halfMissing = [...]string{
	C.HALF_NOT_BUILT: "is not built for this processor.", C.HALF_NOT_ANNOUNCED: "is not reported by the processor.",
	C.HALF_NOT_PERMITTED: "is not permitted by the system.",
}

// missingHalf returns why this process cannot use a set, or nothing. It asks the system for permission to use AMX, without which its
// instructions end the process.
func missingHalf(set int) string { return halfMissing[C.half_missing(C.int(set))] }

// halfProduct returns a product of dense matrices of random values.
func halfProduct(m, n, k int, o Operands) (q *product, a, b []float32) {
	r := rand.New(rand.NewPCG(uint64(m), uint64(n)))
	fill := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = r.Float32()*2 - 1
			if o == Halves {
				x[i] = math.Float32frombits(math.Float32bits(x[i]) &^ 0xffff)
			}
		}
		return x
	}
	q = new(product)
	if err := q.set([]axis{{size: m, a: k, c: n, dim: -1}}, []axis{{size: n, b: 1, c: 1, dim: -1}}, []axis{{size: k, a: 1, b: n, dim: -1}},
		unbounded(0), unbounded(0), 0, false); err != nil {
		panic(err) // cannot fail with one axis each
	}
	return q, fill(m * k), fill(k * n)
}

// proveHalf compares a set's product with that of plain C. Products of bfloat16 are exact in float32, and each addition (k of them per
// element and term) rounds by at most 2⁻²⁴ of the sum of absolute terms, on both sides.
func proveHalf(set int, o Operands) error {
	const m, n, k = 45, 53, 333
	p := NewPool(1)
	defer p.Close()
	q, a, b := halfProduct(m, n, k, o)
	got, want := make([]float32, m*n), make([]float32, m*n)
	q.halve(set, o.parts())
	p.multiply(q, a, b, got, false)
	q.halve(halfPlain, o.parts())
	p.multiply(q, a, b, want, false)
	for i := range m {
		for j := range n {
			scale := 0.0
			for t := range k {
				scale += math.Abs(float64(a[i*k+t]) * float64(b[t*n+j]))
			}
			x, y := float64(got[i*n+j]), float64(want[i*n+j])
			if bound := k * float64(2*o.parts()-1) * scale * 0x1p-23; !(math.Abs(x-y) <= bound) {
				return fmt.Errorf("an element is %g instead of %g±%.1g", x, y, bound)
			}
		}
	}
	return nil
}

// halfSpeed returns the speed of a set relative to the float32 kernels for one product, packing included.
func halfSpeed(set int, o Operands) float64 {
	best := [2]int64{math.MaxInt64, math.MaxInt64}
	for range halfPlaces {
		for i, t := range halfTimes(set, o) {
			best[i] = min(best[i], t)
		}
	}
	return float64(best[0]) / float64(best[1])
}

// halfTimes returns the shortest times of the float32 kernels and of a set, in nanoseconds.
func halfTimes(set int, o Operands) (best [2]int64) {
	p := NewPool(1)
	defer p.Close()
	q, a, b := halfProduct(halfM, halfN, halfK, o)
	c := make([]float32, halfM*halfN)
	best = [2]int64{math.MaxInt64, math.MaxInt64}
	for try := range halfTries + 1 {
		for i, s := range [2]int{halfNone, set} {
			q.halve(s, o.parts())
			took := measured(func() { p.multiply(q, a, b, c, false) })
			if try > 0 { // the first try loads code and memory into the caches
				best[i] = min(best[i], max(took, int64(time.Microsecond)))
			}
		}
	}
	return best
}
