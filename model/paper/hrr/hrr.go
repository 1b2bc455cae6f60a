// Package hrr implements the algebra of holographic reduced representations. Symbols, their inverses and circulant matrices are computed
// on slices; binding, unbinding and bundling on graph nodes, for all slots at once: with circulants or with FFTs.
package hrr

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/dsp/fourier"
)

// Float is a component of a vector.
type Float interface{ ~float32 | ~float64 }

// Involution returns the approximate inverse: s†_n = s_{-n mod d}.
func Involution[T Float](s []T) []T {
	out := make([]T, len(s))
	for n := range s {
		out[n] = s[mod(-n, len(s))]
	}
	return out
}

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

// respectrum applies f to frequencies 0 to d/2 of the spectrum of s and transforms back.
func respectrum[T Float](s []T, f func(k int, c complex128) complex128) []T {
	fft := fourier.NewFFT(len(s))
	spectrum := fft.Coefficients(nil, widen(s))
	for k, c := range spectrum {
		spectrum[k] = f(k, c)
	}
	out := make([]T, len(s))
	for n, v := range fft.Sequence(nil, spectrum) {
		out[n] = T(v / float64(len(s)))
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

func mod(n, d int) int { return ((n % d) + d) % d }
