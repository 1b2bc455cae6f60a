package theory

import "math"

// The posterior of a retrieval has a floor: independent noise of variance τ² on each of its components (paper, “A Posterior Precision
// Floor”). The floor is measured relative to the noise of the retrieval itself, m/d per component:
//
//	ρ = τ²·d/m                                             ρ = 1 is the noise of retrieval itself

// Tau2 returns the floor's variance τ² per component at the ratio ρ ≥ 0.
func Tau2(m, d int, ratio float64) float64 { return ratio * float64(m) / float64(d) }

// Ratio returns ρ for a floor of variance τ² per component.
func Ratio(m, d int, tau2 float64) float64 { return tau2 * float64(d) / float64(m) }

// ChannelAt returns the capacity in nats of Proposition 1's channel if the noise of a retrieval is the floor's, ρ·m/d per component. At
// ρ = 1 it is Capacity.Channel; at τ = 1, where ρ = d/m, almost nothing is left.
//
//	m·d/2·log(1 + 1/(m·ρ))
func ChannelAt(m, d int, ratio float64) float64 {
	slots := float64(m)
	return slots * float64(d) / 2 * math.Log1p(1/(slots*ratio))
}
