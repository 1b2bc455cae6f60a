package theory

import "math"

// TotalCorrelation returns Σ_i I(ṽ_i; Ṽ_{<i} | x) in nats for the retrievals of a sample's values under the paper's Gaussian model,
// with independent noise of variance τ² on every component. It is exact for any size.
//
//	−½ log det(I + M),  M = (Σ̄ + τ²I)^{−½} (Σ − Σ̄) (Σ̄ + τ²I)^{−½}          paper, Reduction to the Log-Determinant
//
// The determinant is never formed. At each frequency the m coefficients of the errors have covariance γ·I and pseudo-covariance v̂v̂ᵀ,
// with P = Σ_i |v̂_i|² and γ = P + dτ², so each frequency contributes
//
//	½ [ Σ_i log(1 − |v̂_i|⁴/γ²) − log(1 − P²/γ²) ]         for 0 < ω < d/2, complex
//	½ [ Σ_i log(1 + v̂_i²/γ) − log(1 + P/γ) ]              for ω = 0 and d/2, real
//
// and frequencies are independent. The result is infinite for τ² = 0 (paper, A Posterior Precision Floor).
func TotalCorrelation(values [][]float64, tau2 float64) float64 {
	f, spectra := spectraOf(values)
	sum := 0.0
	for w := range f.bins() {
		P := 0.0
		for _, v := range spectra {
			P += power(v[w])
		}
		if P == 0 {
			continue
		}
		gamma := P + float64(f.d)*tau2
		for _, v := range spectra {
			sum += term(power(v[w]), gamma, f.mirrored(w))
		}
		sum -= term(P, gamma, f.mirrored(w))
	}
	return sum
}

// term returns half the log-determinant for a share p of γ.
func term(p, gamma float64, mirrored bool) float64 {
	if mirrored {
		return 0.5 * math.Log1p(-p/gamma*p/gamma)
	}
	return 0.5 * math.Log1p(p/gamma)
}

// Delta holds the norms of Δ = Σ − Σ̄, the covariance outside its diagonal blocks, that the paper's bound needs.
type Delta struct {
	Frobenius2 float64 // ‖Δ‖_F² = Σ_{i≠j} ‖Σ_ij‖_F²
	Operator   float64 // √(Σ_{i≠j} ‖Σ_ij‖_op²), an upper bound on ‖Δ‖_op
}

// DeltaOf returns the norms of Δ for a sample's values, [m][d].
func DeltaOf(values [][]float64) Delta {
	f, spectra := spectraOf(values)
	var c Delta
	for i := range values {
		for j := range i {
			p := pairOf(f, spectra[i], spectra[j])
			c.Frobenius2 += 2 * p.Frobenius2
			c.Operator += 2 * p.Operator * p.Operator
		}
	}
	c.Operator = math.Sqrt(c.Operator)
	return c
}

// Norms returns upper bounds on ‖M‖_F² and ‖M‖_op for a variance τ² > 0.
//
//	‖M‖_F² ≤ ‖Δ‖_F² / τ⁴,  ‖M‖_op ≤ ‖Δ‖_op / τ²           paper, Bounding the Total Correlation
func (c Delta) Norms(tau2 float64) (frobenius2, operator float64) {
	return c.Frobenius2 / (tau2 * tau2), c.Operator / tau2
}

// Bound returns the paper's upper bound on TotalCorrelation, in nats. It is infinite if the norms do not imply ‖M‖_op < 1, since the bound
// does not apply then.
//
//	TC ≤ ‖M‖_F² / (4 (1 − ‖M‖_op)²)  if ‖M‖_op < 1        paper, Bounding the Total Correlation
func (c Delta) Bound(tau2 float64) float64 {
	frobenius2, operator := c.Norms(tau2)
	if operator >= 1 {
		return math.Inf(1)
	}
	return frobenius2 / (4 * (1 - operator) * (1 - operator))
}

// Order returns the expression that total correlation scales with.
//
//	TC = O( m² / (τ⁴ d) )                                  paper, Proposition 2, where τ is called t
func Order(m, d int, tau2 float64) float64 {
	return float64(m) * float64(m) / (tau2 * tau2 * float64(d))
}
