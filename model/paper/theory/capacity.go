// Package theory is what the paper proves about the HRR latent, as functions: how much it can hold, how noisy a retrieval is,
// and how far retrievals depend on each other. Letters are the paper's: m slots, k entries, d components. Information is
// in nats.
package theory

import (
	"fmt"
	"math"

	"slotscope/model"
)

// NatsPerBit turns nats into bits by division.
const NatsPerBit = math.Ln2

// Capacity is the bound on what the latent can tell of an image, in nats, term by term.
//
//	I(x; ẑ) ≤ min( m·d/2·log(1 + 1/m), m·log k )          paper, Proposition 1
type Capacity struct {
	Channel  float64 // m·d/2·log(1 + 1/m): m retrievals, each d Gaussian channels with an SNR of 1/m
	Codebook float64 // m·log k: m codes out of k
}

// CapacityOf is the bound for m slots, vectors of d components and k entries, each at least 1.
func CapacityOf(m, d, k int) Capacity {
	slots := float64(m)
	return Capacity{Channel: slots * float64(d) / 2 * math.Log1p(1/slots), Codebook: slots * math.Log(float64(k))}
}

// Bound is the smaller term.
func (c Capacity) Bound() float64 { return min(c.Channel, c.Codebook) }

// CodebookBinds says whether the codebook is what limits, so that a larger k would hold more; else it is the channel, and a
// larger k gains nothing (paper, “Codebook sizing”).
func (c Capacity) CodebookBinds() bool { return c.Codebook < c.Channel }

// Limits of what the functions take; beyond them nothing can be trained.
const (
	MaxSlots     = 1 << 12
	MaxDimension = 1 << 20
	MaxEntries   = 1 << 30
)

// Check says what of m, d and k is out of range, by field.
func Check(m, d, k int) model.Invalid {
	bad := model.Invalid{}
	for _, f := range []struct {
		name       string
		v, largest int
	}{{"m", m, MaxSlots}, {"d", d, MaxDimension}, {"k", k, MaxEntries}} {
		if f.v < 1 || f.v > f.largest {
			bad[f.name] = fmt.Sprintf("is %d; 1 to %d are possible", f.v, f.largest)
		}
	}
	return bad
}

// LeastD is the least dimension whose channel can carry R nats through m slots, R ≥ 0.
//
//	d ≥ 2R / (m·log(1 + 1/m))                              paper, “Design corollary”
func LeastD(R float64, m int) float64 {
	slots := float64(m)
	return atLeastOne(2 * R / (slots * math.Log1p(1/slots)))
}

// LeastK is the least number of entries that can tell R nats apart with m codes, R ≥ 0. It may be infinite as a float64.
//
//	k ≥ e^{R/m}                                            paper, “Design corollary”
func LeastK(R float64, m int) float64 { return atLeastOne(math.Exp(R / float64(m))) }

// atLeastOne rounds up; a rate that was computed from a whole d or k does not ask for one more.
func atLeastOne(v float64) float64 { return max(1, math.Ceil(v*(1-1e-12))) }

// Rate is the information in one image of a full-factorial dataset, in nats: Σ log of the cardinalities of its factors.
func Rate(cardinalities []int) float64 {
	sum := 0.0
	for _, n := range cardinalities {
		sum += math.Log(float64(n))
	}
	return sum
}
