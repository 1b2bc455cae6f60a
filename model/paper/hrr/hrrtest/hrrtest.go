// Package hrrtest computes the algebra of package hrr by its definitions on slices, one pair at a time, for tests to compare with.
package hrrtest

import "slotscope/model/paper/hrr"

// Bind returns the circular convolution of a and b, which have equal length.
//
//	(a ⊗ b)_n = Σ_j a_j b_{(n-j) mod d}         paper, “Preliminaries of HRR vectors”
func Bind[T hrr.Float](a, b []T) []T {
	d := len(a)
	out := make([]T, d)
	for n := range out {
		var sum float64
		for j := range a {
			sum += float64(a[j]) * float64(b[(n-j+d)%d])
		}
		out[n] = T(sum)
	}
	return out
}

// Unbind retrieves a noisy value from a bundle by circular correlation.
//
//	ṽ = s† ⊗ z                                  paper, Algorithm 1, line 2
//
// With m unit pairs bundled, the noise variance per component is about m/d and the signal's 1/d: an SNR of 1/m.
func Unbind[T hrr.Float](s, z []T) []T { return Bind(hrr.Involution(s), z) }

// Bundle returns the superposition Σ_i v_i of vectors of equal length.
func Bundle[T hrr.Float](vectors ...[]T) []T {
	sum := make([]T, len(vectors[0]))
	for _, v := range vectors {
		for n := range v {
			sum[n] += v[n]
		}
	}
	return sum
}
