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

// Operands is what the operands of a product of float32 are.
type Operands int

const (
	Exact  Operands = iota // any values, multiplied as they are
	Halves                 // bfloat16 values: whichever kernels are fastest multiply these
	Split                  // any values, multiplied as two bfloat16 parts each where that is faster: the products of low parts are left out
)

// parts is how many bfloat16 values an element is.
func (o Operands) parts() int {
	if o == Split {
		return 2
	}
	return 1
}

// What multiplies operands as bfloat16.
const (
	halfNone   = C.HALF_NONE // float32's kernels
	halfPlain  = C.HALF_PLAIN
	halfAVX512 = C.HALF_AVX512
	halfAMX    = C.HALF_AMX
)

var halfNames = [C.HALF_SETS]string{"float32", "plain C", "AVX512_BF16", "AMX"}

// halfMargin is how many times as fast as float32's kernels a set must be. A choice by measure should fall the same way each time,
// since sets differ in the order of sums.
const halfMargin = 1.25

// halfTries is how often the kernels are timed, in turn; the fastest time of each counts.
const halfTries = 3

// The product that is timed: it takes float32's kernels some 0.3 ms and stays in the second cache, as parts of larger ones do.
const halfM, halfN, halfK = 384, 128, 256

// HalfChoice is what multiplies operands as bfloat16, and why.
type HalfChoice struct {
	Name      string   // "float32" where no kernel for bfloat16 is used
	Precision string   // "bf16" for Halves, "bf16x3" for Split
	Reasons   []string // a sentence for each set
	set       int
}

// String says it in sentences.
func (c HalfChoice) String() string {
	return fmt.Sprintf("Products in %s use the kernels for %s. %s", c.Precision, c.Name, strings.Join(c.Reasons, " "))
}

// ForHalves and ForSplit choose the kernels for operands of these kinds when they are first called, which takes a few milliseconds
// where the processor has any.
var (
	ForHalves = sync.OnceValue(func() HalfChoice { return chooseHalf("bf16", Halves) })
	ForSplit  = sync.OnceValue(func() HalfChoice { return chooseHalf("bf16x3", Split) })
)

// forcedHalf is a set that tests choose, plus one; 0 where none does.
var forcedHalf atomic.Int32

// ForceHalf makes products of bfloat16 that are planned from now on use a set, whatever their shapes, for tests; false where the
// processor does not announce it.
func ForceHalf(name string) (undo func(), ok bool) {
	set := slices.Index(halfNames[:], name)
	if set < 0 || C.half_missing(C.int(set)) != C.HALF_HERE {
		return nil, false
	}
	forcedHalf.Store(int32(set) + 1)
	return func() { forcedHalf.Store(0) }, true
}

// set is what multiplies operands, and how many parts these have.
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

// AsHalves says whether kernels for bfloat16 multiply operands, where it pays by their shapes.
func (o Operands) AsHalves() bool {
	set, _ := o.set()
	return set != halfNone
}

// halfGain is how many times as fast as float32's tiles those of a set are taken to be: less than they should be, so that products
// which gain little stay as they are. It is fixed, so that a shape is always computed in the same way. Of two parts each, three products are computed.
var halfGain = [C.HALF_SETS]float64{halfAVX512: 1.5, halfAMX: 4}

// packCost is how many multiplications in float32 take as long as packing an element.
const packCost = 24

// halfPays says whether a set computes products faster than float32's kernels, which may read one operand in place. Work is
// counted in multiplications in float32, of whole tiles.
func halfPays(set, parts int, inPlace bool, products ...*product) bool {
	if set == halfNone || forcedHalf.Load() != 0 {
		return set != halfNone
	}
	var wide, narrow float64
	for _, q := range products {
		m, n, k := float64(q.c.m), float64(q.c.n), float64(q.c.k)
		packing := packCost * (m + n) * k
		wide += m * n * k
		if !inPlace {
			wide += packing
		}
		whole := func(n C.int64_t, of int) float64 { return float64(roundUp(int(n), of)) }
		multiplying := whole(q.c.m, int(C.half_unit(C.int(set)))) * whole(q.c.n, C.HALF_COLS/2) * whole(q.c.k, C.HALF_STEP) / halfGain[set]
		narrow += float64(parts)*packing + float64(2*parts-1)*multiplying
	}
	return narrow < wide
}

// chooseHalf takes the fastest set that proves itself.
func chooseHalf(precision string, o Operands) HalfChoice {
	best := HalfChoice{Name: halfNames[halfNone], Precision: precision}
	gain := halfMargin
	for set := halfAMX; set >= halfAVX512; set-- {
		if missing := int(C.half_missing(C.int(set))); missing != C.HALF_HERE {
			best.Reasons = append(best.Reasons, halfNames[set]+" "+halfMissing[missing])
			continue
		}
		if err := proveHalf(set, o); err != nil {
			best.Reasons = append(best.Reasons, fmt.Sprintf("%s computes wrongly here: %v.", halfNames[set], err))
			continue
		}
		speed := halfSpeed(set, o)
		best.Reasons = append(best.Reasons, fmt.Sprintf("%s is %.2g times as fast as float32; at least %g is asked for.", halfNames[set], speed, halfMargin))
		if speed >= gain {
			best.Name, best.set, gain = halfNames[set], set, speed
		}
	}
	return best
}

var halfMissing = [...]string{
	C.HALF_NOT_BUILT: "is not built for this processor.", C.HALF_NOT_ANNOUNCED: "is not announced by the processor.",
	C.HALF_NOT_PERMITTED: "is not permitted by the system.",
}

// halfProduct is a product of dense matrices of random values.
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
		panic(err) // one axis each always fits
	}
	return q, fill(m * k), fill(k * n)
}

// proveHalf compares a set's product with plain C's. Products of bfloat16 are exact in float32 and each addition, k of them for each
// term, rounds by at most 2⁻²⁴ of the sum of absolute terms, on both sides.
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
				return fmt.Errorf("an element is %g where %g±%.1g is right", x, y, bound)
			}
		}
	}
	return nil
}

// halfSpeed is how many times as fast as float32's kernels a set computes a product, packing included.
func halfSpeed(set int, o Operands) float64 {
	p := NewPool(1)
	defer p.Close()
	q, a, b := halfProduct(halfM, halfN, halfK, o)
	c := make([]float32, halfM*halfN)
	best := [2]int64{math.MaxInt64, math.MaxInt64}
	for try := range halfTries + 1 {
		for i, s := range [2]int{halfNone, set} {
			q.halve(s, o.parts())
			took := measured(func() { p.multiply(q, a, b, c, false) })
			if try > 0 { // the first try fetches code and memory
				best[i] = min(best[i], max(took, int64(time.Microsecond)))
			}
		}
	}
	return float64(best[0]) / float64(best[1])
}
