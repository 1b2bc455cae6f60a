package hrr

import . "github.com/gomlx/gomlx/pkg/core/graph"

// UnbindAllFFT is UnbindAll as products of spectra, without circulant matrices:
//
//	ṽ_i = F⁻¹( conj(F s_i) ∘ F z )              as F(s†) = conj(F s) for real s
//
// symbols is [m, d], z is [B, d]; the result is [B, m, d]. It takes m + B(1 + m) transforms of d log d steps and keeps m·d
// numbers where the product takes B·m·d² steps and keeps m·d². But the steps of a matrix product are the cheaper ones. On two
// cores of the CPU engine, m = 9, B = 16 to 128, a step of both directions with gradients (BenchmarkForms) is 1.7 to 3.9 times
// as fast with circulants at d = 512, about even at d = 1024, and 1.4 to 4.9 times as fast with spectra at d = 2048. So the
// model, whose d is 512 at most by preset, binds with circulants; this form is for larger d. A d with a large prime factor
// is slow here: 509 takes some 25 times as long as 512.
func UnbindAllFFT(symbols, z *Node) *Node {
	m, d, batch := symbols.Shape().Dim(0), symbols.Shape().Dim(1), z.Shape().Dim(0)
	z.AssertDims(batch, d)
	s, c := spectrumOf(InsertAxes(symbols, 0)), spectrumOf(InsertAxes(z, 1))
	retrieved := s.conj().times(c).signal(d)
	retrieved.AssertDims(batch, m, d)
	return retrieved
}

// BindAllFFT is BindAll as products of spectra; bundling comes before the way back, so that there is one for each sample:
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

// InvolutionOf is Involution of every vector along the last axis: s†_n = s_{-n mod d}. symbols is [..., d], as is the result.
func InvolutionOf(symbols *Node) *Node {
	if symbols.Shape().Dim(-1) == 1 {
		return symbols
	}
	first, rest := Slice(symbols, AxisRange().Spacer(), AxisElem(0)), Slice(symbols, AxisRange().Spacer(), AxisRange(1))
	return Concatenate([]*Node{first, Reverse(rest, -1)}, -1)
}

// BundleOf is Bundle of the vectors of every sample: the sum over m of [..., m, d], which is [..., d].
func BundleOf(vectors *Node) *Node { return ReduceSum(vectors, -2) }

// SimilarityOf is Similarity of vectors pair by pair: the cosine of the angle between a and b, 0 where either is 0.
//
//	cos(a, b) = aᵀb / (‖a‖ ‖b‖)
//
// a and b are [..., d], one of them with axes of 1 where it stands for all; the result lacks the last axis.
func SimilarityOf(a, b *Node) *Node {
	return Div(ReduceSum(Mul(a, b), -1), Mul(lengthOf(a), lengthOf(b)))
}

// lengthOf is ‖v‖ along the last axis, and 1 for 0, whose products are 0 whatever they are divided by.
func lengthOf(v *Node) *Node {
	square := ReduceSum(Square(v), -1)
	return Sqrt(Where(GreaterThan(square, ZerosLike(square)), square, OnesLike(square)))
}

// spectrum holds the d/2 + 1 Fourier coefficients of real vectors of d components, part by part: GoMLX 0.26 differentiates a
// product of complex numbers without the conjugate that its gradients of FFT, Abs and Complex count on, so products are
// written out.
type spectrum struct{ re, im *Node }

func spectrumOf(x *Node) spectrum {
	f := RealFFT(x)
	return spectrum{Real(f), Imag(f)}
}

func (a spectrum) conj() spectrum { return spectrum{a.re, Neg(a.im)} }

// times is (a + ib)(c + id) = ac − bd + i(ad + bc), frequency by frequency.
func (a spectrum) times(b spectrum) spectrum {
	return spectrum{Sub(Mul(a.re, b.re), Mul(a.im, b.im)), Add(Mul(a.re, b.im), Mul(a.im, b.re))}
}

// signal is the way back, to d components.
func (a spectrum) signal(d int) *Node { return InverseRealFFT(Complex(a.re, a.im), d) }
