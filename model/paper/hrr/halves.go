package hrr

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"slotscope/model/paper/layer"
)

// Halves is the form of circulant matrices of m symbols of even length d that takes half of the multiplications. A circulant consists of two blocks A and B of width
// d/2, and two products of this width replace it:
//
//	ẑ = [A B; B A] v        ẑ₀ ± ẑ₁ = (A ± B)(v₀ ± v₁)        for the halves of ẑ = (ẑ₀, ẑ₁) and v = (v₀, v₁)
//
// This is the Chinese remainder theorem for xᵈ − 1 = (x^(d/2) − 1)(x^(d/2) + 1).
type Halves struct {
	Sum, Difference *Node // (A + B)/2 and (A − B)/2 of all symbols side by side, [d/2, m·d/2] each
}

// HalfCirculants returns the matrices of Halves for m symbols, [m, d]. With h = d/2 they are
//
//	(s_i,(n-j) mod d ± s_i,n-j+h)/2        in row n and column i·h + j
func HalfCirculants[T Float](symbols []T, m int) (sum, difference []T) {
	d := len(symbols) / m
	h := d / 2
	sum, difference = make([]T, h*m*h), make([]T, h*m*h)
	for i := range m {
		s := symbols[i*d : (i+1)*d]
		for n := range h {
			for j := range h {
				a, b, at := s[mod(n-j, d)], s[n-j+h], (n*m+i)*h+j
				sum[at], difference[at] = (a+b)/2, (a-b)/2
			}
		}
	}
	return sum, difference
}

// HalvesOf computes HalfCirculants on a graph, for learned symbols: symbols is [m, d].
func HalvesOf(symbols *Node) Halves {
	g, h := symbols.Graph(), symbols.Shape().Dim(1)/2
	first, second := MulScalar(Slice(symbols, AxisRange(), AxisRange(0, h)), 0.5), MulScalar(Slice(symbols, AxisRange(), AxisRange(h)), 0.5)
	square := shapes.Make(dtypes.Int32, h, 1, h)
	wraps := LessThan(Iota(g, square, 0), Iota(g, square, 2)) // where n - j < 0, A has s₁ and B has s₀
	whole := Reshape(CirculantsOf(Sub(first, second)), h, -1, h)
	difference := Where(BroadcastToDims(wraps, whole.Shape().Dimensions...), Neg(whole), whole)
	return Halves{CirculantsOf(Add(first, second)), Reshape(difference, h, -1)}
}

// Slot implements Form.
func (c Halves) Slot(i int) Form { return Halves{block(c.Sum, i), block(c.Difference, i)} }

// UnbindAll implements Form.
func (c Halves) UnbindAll(z *Node) *Node {
	h, batch := c.Sum.Shape().Dim(0), z.Shape().Dim(0)
	z.AssertDims(batch, 2*h)
	sum, difference := folded(Reshape(z, batch, 2, h))
	return Reshape(unfolded(Reshape(layer.Multiply(sum, c.Sum), batch, -1, h), Reshape(layer.Multiply(difference, c.Difference), batch, -1, h)), batch, -1, 2*h)
}

// BindAll implements Form.
func (c Halves) BindAll(values *Node) *Node {
	h, batch := c.Sum.Shape().Dim(0), values.Shape().Dim(0)
	values.AssertDims(batch, c.Sum.Shape().Dim(1)/h, 2*h)
	sum, difference := folded(Reshape(values, batch, -1, 2, h))
	sum, difference = layer.MultiplyTransposed(Reshape(sum, batch, -1), c.Sum), layer.MultiplyTransposed(Reshape(difference, batch, -1), c.Difference)
	return Reshape(unfolded(sum, difference), batch, 2*h)
}

// folded returns x₀ + x₁ and x₀ − x₁, [..., h], of x, [..., 2, h].
func folded(x *Node) (sum, difference *Node) {
	return ReduceSum(x, -2), ReduceSum(Mul(x, signs(x)), -2)
}

// unfolded returns p + q and p − q, [..., 2, h], of p and q, [..., h].
func unfolded(p, q *Node) *Node {
	p, q = InsertAxes(p, -2), InsertAxes(q, -2)
	return Add(p, Mul(q, signs(q)))
}

// signs returns 1 and −1 along the last axis but one of an array of x's rank.
func signs(x *Node) *Node {
	dims := make([]int, x.Rank())
	for i := range dims {
		dims[i] = 1
	}
	dims[len(dims)-2] = 2
	return Reshape(ConvertDType(Const(x.Graph(), []float32{1, -1}), x.DType()), dims...)
}
