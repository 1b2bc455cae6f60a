// Package theory implements the paper's results on the HRR latent: its capacity, the noise of a retrieval and the dependence between
// retrievals. Letters are the paper's: m slots, k entries, d components. Information is in nats.
package theory

import (
	"fmt"
	"math"

	"slotscope/model"
)

// NatsPerBit is the number of nats in a bit; divide nats by it to get bits.
const NatsPerBit = math.Ln2

// Capacity holds the two terms of the bound on the latent's information about an image, in nats.
//
//	I(x; ẑ) ≤ min( m·d/2·log(1 + 1/m), m·log k )          paper, Proposition 1
type Capacity struct {
	Channel  float64 // m·d/2·log(1 + 1/m): m retrievals, each d Gaussian channels with an SNR of 1/m
	Codebook float64 // m·log k: m codes out of k
}

// CapacityOf returns the bound for m slots, vectors of d components and k entries, each at least 1.
func CapacityOf(m, d, k int) Capacity {
	slots := float64(m)
	return Capacity{Channel: slots * float64(d) / 2 * math.Log1p(1/slots), Codebook: slots * math.Log(float64(k))}
}

// Bound returns the smaller term.
func (c Capacity) Bound() float64 { return min(c.Channel, c.Codebook) }

// CodebookBinds reports whether the codebook limits the capacity, so that a larger k would increase it. Otherwise the channel does, and
// a larger k gains nothing (paper, “Codebook sizing”).
func (c Capacity) CodebookBinds() bool { return c.Codebook < c.Channel }

// Limits of the arguments; larger models cannot be trained.
const (
	MaxSlots     = 1 << 12
	MaxDimension = 1 << 20
	MaxEntries   = 1 << 30
)

// Check returns which of m, d and k are out of range, by field.
func Check(m, d, k int) model.Invalid {
	bad := model.Invalid{}
	for _, f := range []struct {
		name       string
		v, largest int
	}{{"m", m, MaxSlots}, {"d", d, MaxDimension}, {"k", k, MaxEntries}} {
		if f.v < 1 || f.v > f.largest {
			bad[f.name] = fmt.Sprintf("%d is out of range; choose 1 to %d", f.v, f.largest)
		}
	}
	return bad
}

// LeastD returns the smallest dimension d whose channel can carry R nats through m slots, R ≥ 0.
//
//	d ≥ 2R / (m·log(1 + 1/m))                              paper, “Design corollary”
func LeastD(R float64, m int) float64 {
	slots := float64(m)
	return atLeastOne(2 * R / (slots * math.Log1p(1/slots)))
}

// LeastK returns the smallest number of entries k with which m codes can carry R nats, R ≥ 0. It may overflow to +Inf.
//
//	k ≥ e^{R/m}                                            paper, “Design corollary”
func LeastK(R float64, m int) float64 { return atLeastOne(math.Exp(R / float64(m))) }

// atLeastOne rounds up to at least 1; its tolerance keeps a rate computed from a whole d or k from being rounded up by one.
func atLeastOne(v float64) float64 { return max(1, math.Ceil(v*(1-1e-12))) }

// Rate returns the information in one image of a full-factorial dataset, in nats: Σ log of the cardinalities of its factors.
func Rate(cardinalities []int) float64 {
	sum := 0.0
	for _, n := range cardinalities {
		sum += math.Log(float64(n))
	}
	return sum
}
