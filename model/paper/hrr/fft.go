package hrr

import . "github.com/gomlx/gomlx/pkg/core/graph"

// UnbindAllFFT computes UnbindAll as products of spectra, without circulant matrices:
//
//	ṽ_i = F⁻¹( conj(F s_i) ∘ F z )              since F(s†) = conj(F s) for real s
//
// symbols is [m, d], z is [B, d]; the result is [B, m, d]. It takes m + B(1 + m) transforms of d log d steps and stores m·d
// numbers, whereas the matrix product takes B·m·d² cheaper steps and stores m·d². On two cores of the CPU engine, with m = 9 and
// B = 16 to 128, a step of both directions with gradients (BenchmarkForms) is 1.7 to 3.9 times as fast with circulants at d = 512,
// about even at d = 1024, and 1.4 to 4.9 times as fast with spectra at d = 2048. The model therefore binds with circulants, as its
// presets have d ≤ 512; this form is for larger d. It is slow if d has a large prime factor: 509 takes about 25 times as long as 512.
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
	bundle := spectrum{BundleOf(pairs.re), BundleOf(pairs.im)}.signal(d)
	bundle.AssertDims(batch, d)
	return bundle
}

// InvolutionOf applies Involution along the last axis: s†_n = s_{-n mod d}. symbols and the result are [..., d].
func InvolutionOf(symbols *Node) *Node {
	if symbols.Shape().Dim(-1) == 1 {
		return symbols
	}
	first, rest := Slice(symbols, AxisRange().Spacer(), AxisElem(0)), Slice(symbols, AxisRange().Spacer(), AxisRange(1))
	return Concatenate([]*Node{first, Reverse(rest, -1)}, -1)
}

// BundleOf bundles the vectors of every sample: it sums [..., m, d] over m to [..., d].
func BundleOf(vectors *Node) *Node { return ReduceSum(vectors, -2) }

// SimilarityOf returns the Similarity of vectors pairwise: the cosine of the angle between a and b, 0 if either is 0.
//
//	cos(a, b) = aᵀb / (‖a‖ ‖b‖)
//
// a and b are [..., d] and broadcast over axes of size 1; the result drops the last axis.
func SimilarityOf(a, b *Node) *Node {
	return Div(ReduceSum(Mul(a, b), -1), Mul(lengthOf(a), lengthOf(b)))
}

// lengthOf returns ‖v‖ along the last axis, or 1 for a zero vector, whose products are 0 for any divisor.
func lengthOf(v *Node) *Node {
	square := ReduceSum(Square(v), -1)
	return Sqrt(Where(GreaterThan(square, ZerosLike(square)), square, OnesLike(square)))
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
