package theory

import (
	"math"
)

// Covariance returns the covariance Σ of all m retrievals given the values v_i, over random symbols: md × md, in row-major order.
//
//	(Σ_ij)_ab = 1/d · [ (v_j ⊗ v_i)_{a+b} + δ_ij Σ_l Σ_n (v_l)_{a+n} (v_l)_{b+n} ]
//
// This is the paper's Covariance Block Structure: off the diagonal the last equation of Off-Diagonal Blocks, and on the diagonal the sum
// of its three terms, where 2/d·(v_i)_a (v_i)_b supplies the n = 0 terms of the two sums over n ≠ 0. It is exact for Gaussian symbols.
// It needs m²d² numbers, which TotalCorrelation avoids.
func Covariance(values [][]float64) []float64 {
	m, d := shape(values, values)
	sigma := make([]float64, m*d*m*d)
	auto := autocorrelation(values)
	for i := range m {
		for j := range m {
			g := convolve(values[j], values[i])
			for a := range d {
				row := sigma[(i*d+a)*m*d+j*d:]
				for b := range d {
					row[b] = g[(a+b)%d] / float64(d)
					if i == j {
						row[b] += auto[(b-a+d)%d] / float64(d)
					}
				}
			}
		}
	}
	return sigma
}

// autocorrelation returns Σ_l Σ_n (v_l)_n (v_l)_{n+t} for every lag t.
func autocorrelation(values [][]float64) []float64 {
	f, spectra := spectraOf(values)
	sum := make([]complex128, f.bins())
	for _, v := range spectra {
		for w := range v {
			sum[w] += complex(power(v[w]), 0)
		}
	}
	return f.back(sum)
}

func convolve(a, b []float64) []float64 {
	f := newSpectra(len(a))
	x, y := f.of(a), f.of(b)
	for w := range x {
		x[w] *= y[w]
	}
	return f.back(x)
}

// Pair measures how strongly the retrievals of two slots covary, by the norms of their block Σ_ij, i ≠ j.
type Pair struct {
	Frobenius2 float64 // ‖Σ_ij‖_F² = ‖v_j ⊗ v_i‖² / d              paper, Off-Diagonal Blocks; about 1/d
	Operator   float64 // ‖Σ_ij‖_op = max_ω |v̂_jω| |v̂_iω| / d     paper, Sharpened Off-Diagonal Operator Norm; O(log d / d)
}

// PairOf returns the norms of the block of two values of d components.
func PairOf(a, b []float64) Pair {
	f := newSpectra(len(a))
	return pairOf(f, f.of(a), f.of(b))
}

func pairOf(f spectra, a, b []complex128) Pair {
	var p Pair
	d := float64(f.d)
	for w := range a {
		g := power(a[w]) * power(b[w])
		if p.Operator = max(p.Operator, math.Sqrt(g)/d); f.mirrored(w) {
			g *= 2
		}
		p.Frobenius2 += g / (d * d) // Parseval: ‖g‖² = Σ_ω |ĝ_ω|² / d
	}
	return p
}

// Pairs returns the mean norms over all pairs i ≠ j of a sample's values, zero for a single slot.
func Pairs(values [][]float64) Pair {
	f, spectra := spectraOf(values)
	var mean Pair
	n := float64(len(values) * (len(values) - 1) / 2)
	for i := range values {
		for j := range i {
			p := pairOf(f, spectra[i], spectra[j])
			mean.Frobenius2 += p.Frobenius2 / n
			mean.Operator += p.Operator / n
		}
	}
	return mean
}

// SamplePairs returns the mean of Pairs over trials draws of m HRR vectors, m ≥ 2.
func SamplePairs(m, d, trials int, seed uint64) Pair {
	rng := newRand(seed, m, d)
	var mean Pair
	for range trials {
		p := Pairs(vectors(rng, m, d))
		mean.Frobenius2 += p.Frobenius2 / float64(trials)
		mean.Operator += p.Operator / float64(trials)
	}
	return mean
}
