package theory

import (
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"
)

// spectra transforms real vectors of one length d; it holds the frequencies from 0 to d/2, for the others are their mirror.
type spectra struct {
	fft *fourier.FFT
	d   int
}

func newSpectra(d int) spectra { return spectra{fourier.NewFFT(d), d} }

func (s spectra) bins() int { return s.d/2 + 1 }

// of is v̂_ω = Σ_n v_n e^{−2πiωn/d}, a slice of its own.
func (s spectra) of(v []float64) []complex128 { return s.fft.Coefficients(nil, v) }

// back is the inverse of of.
func (s spectra) back(c []complex128) []float64 {
	v := s.fft.Sequence(nil, c)
	for n := range v {
		v[n] /= float64(s.d)
	}
	return v
}

// mirrored says whether a frequency stands for two, ω and d−ω; its coefficient is complex then, else real.
func (s spectra) mirrored(w int) bool { return w > 0 && 2*w < s.d }

func conj(c complex128) complex128 { return cmplx.Conj(c) }

// power is |c|².
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
