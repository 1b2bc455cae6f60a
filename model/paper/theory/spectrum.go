package theory

import (
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"
)

// spectra transforms real vectors of length d. It keeps frequencies 0 to d/2, since the others are their conjugates.
type spectra struct {
	fft *fourier.FFT
	d   int
}

func newSpectra(d int) spectra { return spectra{fourier.NewFFT(d), d} }

func (s spectra) bins() int { return s.d/2 + 1 }

// of returns v̂_ω = Σ_n v_n e^{−2πiωn/d} in a new slice.
func (s spectra) of(v []float64) []complex128 { return s.fft.Coefficients(nil, v) }

// back is the inverse of of.
func (s spectra) back(c []complex128) []float64 {
	v := s.fft.Sequence(nil, c)
	for n := range v {
		v[n] /= float64(s.d)
	}
	return v
}

// mirrored reports whether a frequency represents two, ω and d−ω; only then is its coefficient complex.
func (s spectra) mirrored(w int) bool { return w > 0 && 2*w < s.d }

func conj(c complex128) complex128 { return cmplx.Conj(c) }

// power returns |c|².
func power(c complex128) float64 { return real(c)*real(c) + imag(c)*imag(c) }

// spectraOf transforms every value of a sample.
func spectraOf(values [][]float64) (spectra, [][]complex128) {
	f := newSpectra(len(values[0]))
	all := make([][]complex128, len(values))
	for i, v := range values {
		all[i] = f.of(v)
	}
	return f, all
}
