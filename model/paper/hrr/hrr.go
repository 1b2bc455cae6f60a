// Package hrr implements the algebra of holographic reduced representations: binding, unbinding, bundling and their inverses, both
// on slices, as the reference, and on graph nodes, for all slots at once.
package hrr

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/dsp/fourier"
)

// Float is a component of a vector.
type Float interface{ ~float32 | ~float64 }

// Bind returns the circular convolution of a and b by its definition; both have length d.
//
//	(a ⊗ b)_n = Σ_j a_j b_{(n-j) mod d}         paper, “Preliminaries of HRR vectors”
func Bind[T Float](a, b []T) []T {
	d := len(mustMatch(a, b))
	out := make([]T, d)
	for n := range out {
		var sum float64
		for j := range a {
			sum += float64(a[j]) * float64(b[mod(n-j, d)])
		}
		out[n] = T(sum)
	}
	return out
}

// BindFFT computes Bind as a product of spectra: a ⊗ b = F⁻¹(F a ∘ F b), in d log d steps.
func BindFFT[T Float](a, b []T) []T {
	mustMatch(a, b)
	return combine(a, b, func(a, b complex128) complex128 { return a * b })
}

// Involution returns the approximate inverse: s†_n = s_{-n mod d}.
func Involution[T Float](s []T) []T {
	out := make([]T, len(s))
	for n := range s {
		out[n] = s[mod(-n, len(s))]
	}
	return out
}

// Unbind retrieves a noisy value from a bundle by circular correlation.
//
//	ṽ = s† ⊗ z                                  paper, Algorithm 1, line 2
//
// With m unit pairs bundled, the noise variance per component is about m/d and the signal's 1/d: an SNR of 1/m.
func Unbind[T Float](s, z []T) []T { return Bind(Involution(s), z) }

// ExactInverse returns the exact inverse, F(s⁻¹) = conj(F s) / |F s|², for which s⁻¹ ⊗ (s ⊗ v) = v. It returns an error if the spectrum
// of s contains a zero.
func ExactInverse[T Float](s []T) ([]T, error) {
	var empty error
	out := respectrum(s, func(k int, c complex128) complex128 {
		power := real(c)*real(c) + imag(c)*imag(c)
		if power == 0 {
			empty = fmt.Errorf("symbol has no exact inverse: its spectrum is 0 at frequency %d", k)
			return 0
		}
		return complex(real(c)/power, -imag(c)/power)
	})
	return out, empty
}

// Unit projects s to unit magnitude at every frequency, which makes the involution its exact inverse and its norm 1.
//
//	F(s') = F s / |F s|                         Ganesan et al. 2021
func Unit[T Float](s []T) []T {
	return respectrum(s, func(_ int, c complex128) complex128 {
		if c == 0 {
			return 1
		}
		return c / complex(math.Hypot(real(c), imag(c)), 0)
	})
}

// Bundle returns the superposition Σ_i v_i of vectors of equal length.
func Bundle[T Float](vectors ...[]T) []T {
	if len(vectors) == 0 {
		return nil
	}
	sum := make([]T, len(vectors[0]))
	for _, v := range vectors {
		mustMatch(sum, v)
		for n := range v {
			sum[n] += v[n]
		}
	}
	return sum
}

// Similarity returns the cosine of the angle between a and b; 0 if either is 0.
func Similarity[T Float](a, b []T) float64 {
	mustMatch(a, b)
	var ab, aa, bb float64
	for n := range a {
		ab += float64(a[n]) * float64(b[n])
		aa += float64(a[n]) * float64(a[n])
		bb += float64(b[n]) * float64(b[n])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// Symbol draws an HRR vector: s_n ~ N(0, 1/d), independent.
func Symbol[T Float](rng *rand.Rand, d int) []T {
	s, std := make([]T, d), 1/math.Sqrt(float64(d))
	for n := range s {
		s[n] = T(std * rng.NormFloat64())
	}
	return s
}

// Circulant returns the [d, d] matrix of binding with s, in row-major order: C[n, j] = s_{(n-j) mod d}, so C v = s ⊗ v and Cᵀ v = s† ⊗ v.
func Circulant[T Float](s []T) []T {
	d := len(s)
	c := make([]T, d*d)
	for n := range d {
		for j := range d {
			c[n*d+j] = s[mod(n-j, d)]
		}
	}
	return c
}

// Circulants returns the circulant matrices of m symbols, [m, d], side by side as [d, m·d], the operand of UnbindAll and BindAll.
//
//	U[n, i·d+j] = s_i,(n-j) mod d
func Circulants[T Float](symbols []T, m int) []T {
	d := len(symbols) / m
	u := make([]T, d*m*d)
	for i := range m {
		for n, row := range rows(Circulant(symbols[i*d:(i+1)*d]), d) {
			copy(u[(n*m+i)*d:], row)
		}
	}
	return u
}

func rows[T Float](matrix []T, d int) [][]T {
	out := make([][]T, len(matrix)/d)
	for n := range out {
		out[n] = matrix[n*d : (n+1)*d]
	}
	return out
}

// respectrum applies f to each frequency of the spectrum of s and transforms back.
func respectrum[T Float](s []T, f func(k int, c complex128) complex128) []T {
	k := -1
	return combine(s, s, func(c, _ complex128) complex128 { k++; return f(k, c) })
}

// combine returns F⁻¹ f(F a, F b); it calls f for frequencies 0 to d/2 in order.
func combine[T Float](a, b []T, f func(a, b complex128) complex128) []T {
	fft := fourier.NewFFT(len(a))
	fa, fb := fft.Coefficients(nil, widen(a)), fft.Coefficients(nil, widen(b))
	for k := range fa {
		fa[k] = f(fa[k], fb[k])
	}
	out := make([]T, len(a))
	for n, v := range fft.Sequence(nil, fa) {
		out[n] = T(v / float64(len(a)))
	}
	return out
}

func widen[T Float](s []T) []float64 {
	out := make([]float64, len(s))
	for n, v := range s {
		out[n] = float64(v)
	}
	return out
}

func mustMatch[T Float](a, b []T) []T {
	if len(a) != len(b) {
		panic(fmt.Sprintf("hrr: vectors have different lengths, %d and %d", len(a), len(b)))
	}
	return a
}

func mod(n, d int) int { return ((n % d) + d) % d }
