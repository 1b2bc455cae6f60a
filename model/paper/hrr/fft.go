package hrr

import . "github.com/gomlx/gomlx/pkg/core/graph"

// Spectra is the form of symbols, [m, d], whose spectra are multiplied.
type Spectra struct{ Symbols *Node }

// UnbindAll implements Form.
func (s Spectra) UnbindAll(z *Node) *Node { return UnbindAllFFT(s.Symbols, z) }

// BindAll implements Form.
func (s Spectra) BindAll(values *Node) *Node { return BindAllFFT(s.Symbols, values) }

// Slot implements Form.
func (s Spectra) Slot(i int) Form { return Spectra{Slice(s.Symbols, AxisElem(i), AxisRange())} }

// UnbindAllFFT computes UnbindAll as products of spectra, without circulant matrices:
//
//	ṽ_i = F⁻¹( conj(F s_i) ∘ F z )              since F(s†) = conj(F s) for real s
//
// symbols is [m, d], z is [B, d]; the result is [B, m, d]. It takes m + B(1 + m) transforms of d log d steps and stores m·d
// numbers, whereas the matrix product takes B·m·d² cheaper steps and stores m·d².
func UnbindAllFFT(symbols, z *Node) *Node {
	m, d, batch := symbols.Shape().Dim(0), symbols.Shape().Dim(1), z.Shape().Dim(0)
	z.AssertDims(batch, d)
	s, c := spectrumOf(InsertAxes(symbols, 0)), spectrumOf(InsertAxes(z, 1))
	retrieved := s.conj().times(c).signal(d)
	retrieved.AssertDims(batch, m, d)
	return retrieved
}

// BindAllFFT computes BindAll as products of spectra; it bundles before the inverse transform, which is then needed once per sample:
//
//	ẑ = F⁻¹ Σ_i F s_i ∘ F v_i
//
// symbols is [m, d], values is [B, m, d]; the result is [B, d].
func BindAllFFT(symbols, values *Node) *Node {
	m, d, batch := symbols.Shape().Dim(0), symbols.Shape().Dim(1), values.Shape().Dim(0)
	values.AssertDims(batch, m, d)
	pairs := spectrumOf(InsertAxes(symbols, 0)).times(spectrumOf(values))
	bundle := spectrum{ReduceSum(pairs.re, -2), ReduceSum(pairs.im, -2)}.signal(d)
	bundle.AssertDims(batch, d)
	return bundle
}

// ExactFFT computes ExactOf as F⁻¹(F s / |F s|²), without Fourier matrices. symbols and the result are [m, d].
func ExactFFT(symbols *Node) *Node {
	s := spectrumOf(symbols)
	power := Add(Square(s.re), Square(s.im))
	return spectrum{Div(s.re, power), Div(s.im, power)}.signal(symbols.Shape().Dim(1))
}

// spectrum holds the d/2 + 1 Fourier coefficients of real vectors of d components as real and imaginary parts. Products are written out
// because GoMLX 0.26 differentiates a complex product without the conjugate that its gradients of FFT, Abs and Complex rely on.
type spectrum struct{ re, im *Node }

func spectrumOf(x *Node) spectrum {
	f := RealFFT(x)
	return spectrum{Real(f), Imag(f)}
}

func (a spectrum) conj() spectrum { return spectrum{a.re, Neg(a.im)} }

// times returns (a + ib)(c + id) = ac − bd + i(ad + bc) per frequency.
func (a spectrum) times(b spectrum) spectrum {
	return spectrum{Sub(Mul(a.re, b.re), Mul(a.im, b.im)), Add(Mul(a.re, b.im), Mul(a.im, b.re))}
}

// signal returns the inverse transform, with d components.
func (a spectrum) signal(d int) *Node { return InverseRealFFT(Complex(a.re, a.im), d) }
