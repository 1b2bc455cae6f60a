package hrr

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"slotscope/model/paper/layer"
)

// Form applies the matrices M_i of all slots; M_i v = s_i ⊗ v if they are circulant.
type Form interface {
	UnbindAll(z *Node) *Node    // ṽ_i = M_iᵀ z: z is [B, d], the result [B, m, d]
	BindAll(values *Node) *Node // ẑ = Σ_i M_i v_i: values is [B, m, d], the result [B, d]
	Slot(i int) Form            // the form of slot i only
}

// Matrices is the form of any matrices side by side, [d, m·d].
type Matrices struct{ All *Node }

// UnbindAll implements Form.
func (a Matrices) UnbindAll(z *Node) *Node { return UnbindAll(a.All, z) }

// BindAll implements Form.
func (a Matrices) BindAll(values *Node) *Node { return BindAll(a.All, values) }

// Slot implements Form.
func (a Matrices) Slot(i int) Form { return Matrices{block(a.All, i)} }

// block returns matrix i of those that lie side by side.
func block(all *Node, i int) *Node {
	width := all.Shape().Dim(0)
	return Slice(all, AxisRange(), AxisRange(i*width, (i+1)*width))
}

// UnbindAll retrieves the noisy value of every slot from a batch of bundles, in one matrix product.
//
//	ṽ_i = s_i† ⊗ z                              paper, Algorithm 1, line 2; s† is the involution
//
// circulants is [d, m·d] as returned by Circulants, z is [B, d]; the result is [B, m, d].
func UnbindAll(circulants, z *Node) *Node {
	d := z.Shape().Dim(1)
	circulants.AssertDims(d, -1)
	return Reshape(layer.Multiply(z, circulants), z.Shape().Dim(0), -1, d)
}

// BindAll binds each value to the symbol of its slot and bundles the pairs, in one matrix product.
//
//	ẑ = Σ_i s_i ⊗ v_i                           paper, Algorithm 1, line 8
//
// circulants is [d, m·d], values is [B, m, d]; the result is [B, d].
func BindAll(circulants, values *Node) *Node {
	d := values.Shape().Dim(2)
	circulants.AssertDims(d, values.Shape().Dim(1)*d)
	flat := Reshape(values, values.Shape().Dim(0), -1)
	return layer.MultiplyTransposed(flat, circulants)
}

// CirculantsOf computes Circulants on a graph, for learned symbols: symbols is [m, d], the result [d, m·d].
func CirculantsOf(symbols *Node) *Node {
	g, m, d := symbols.Graph(), symbols.Shape().Dim(0), symbols.Shape().Dim(1)
	square := shapes.Make(dtypes.Int32, d, d, 1)
	where := Sub(Iota(g, square, 0), Iota(g, square, 1)) // n - j
	where = Where(LessThan(where, ScalarZero(g, dtypes.Int32)), AddScalar(where, d), where)
	columns := Gather(Transpose(symbols, 0, 1), where) // [n, j, i] = s_i,(n-j) mod d
	columns.AssertDims(d, d, m)
	return Reshape(Transpose(columns, 1, 2), d, m*d)
}

// ExactOf returns the vectors t_i whose involution is the exact inverse of s_i, so that UnbindAll with t retrieves with s⁻¹:
//
//	F t = F s / |F s|²
//
// It uses real Fourier matrices, so it runs on engines without FFT. symbols and the result are [m, d].
func ExactOf(symbols *Node) *Node {
	g, d := symbols.Graph(), symbols.Shape().Dim(1)
	c, s := fourierMatrices(g, symbols.DType(), d)
	re, im := layer.Multiply(symbols, c), Neg(layer.Multiply(symbols, s))
	power := Add(Square(re), Square(im))
	return DivScalar(Sub(layer.Multiply(Div(re, power), c), layer.Multiply(Div(im, power), s)), float64(d))
}

// fourierMatrices returns cos(2πkn/d) and sin(2πkn/d), both symmetric [d, d]. They are gathered from tables of d angles, because some
// engines read large constants as text.
func fourierMatrices(g *Graph, dtype dtypes.DType, d int) (cosine, sine *Node) {
	cosines, sines := make([]float64, d), make([]float64, d)
	for n := range d {
		sines[n], cosines[n] = math.Sincos(2 * math.Pi * float64(n) / float64(d))
	}
	square := shapes.Make(dtypes.Int32, d, d, 1)
	turns := Mul(Iota(g, square, 0), Iota(g, square, 1))
	angle := Mod(turns, Scalar(g, dtypes.Int32, d)) // kn mod d
	table := func(values []float64) *Node {
		return Gather(ConvertDType(Const(g, values), dtype), angle)
	}
	return table(cosines), table(sines)
}
