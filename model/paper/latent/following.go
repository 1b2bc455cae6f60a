package latent

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// Following updates free codebook entries from the data, in addition to or instead of their gradient. The zero value does nothing.
type Following struct {
	Decay      float64 // decay, 0 to 1, of entries as moving averages of the values assigned to them; 0 if they learn by gradient
	ResetBelow float64 // entries used less than this share of uniform use, 0 to 1, are replaced by values of the batch; 0 for never
}

// Follows reports whether Follow must run after each step.
func (f Following) Follows() bool { return f.Decay > 0 || f.ResetBelow > 0 }

// params returns a codebook, [k, d], and if it follows the data "usage", [k]: the relative use of each entry, 1 for uniform use.
func (f Following) params(codebook layer.Param) []layer.Param {
	rate := layer.Codebook
	if f.Decay > 0 {
		rate = layer.Frozen
	}
	params := layer.At(rate, []layer.Param{codebook})
	if f.Follows() {
		params = append(params, layer.At(layer.Frozen, []layer.Param{layer.Plain("usage", layer.Constant(1), codebook.Shape[0])})...)
	}
	return params
}

// usageDecay is the decay of the running usage if the codebook has none.
const usageDecay = 0.99

// Follow updates the usage, the codebook if Decay > 0, and dead entries, after the optimizer's update.
//
//	u_j ← γ u_j + (1−γ) n_j·k/(B·m)                          n_j values of the batch are assigned to entry j
//	c_j ← (γ u_j c_j + (1−γ) (k/(B·m)) Σ_{j(v)=j} v) / u_j'         van den Oord et al. 2017, appendix A.1, with scaled counts
//	c_j ← value j mod B·m of the batch, u_j ← 1,  if u_j < ResetBelow     Zeghidour et al. 2021, section III-C
//
// values is [B, m, d], codes [B, m] int32. Batches are in random order, so the replacement value is random.
func (f Following) Follow(scope *context.Context, values, codes *Node) {
	g, γ := codes.Graph(), f.Decay
	if γ == 0 {
		γ = usageDecay
	}
	codebook, usage := scope.GetVariable("codebook"), scope.GetVariable("usage")
	entries := codebook.ValueGraph(g)
	k, d := entries.Shape().Dim(0), entries.Shape().Dim(1)
	values = StopGradient(Reshape(values, -1, d))
	n := values.Shape().Dim(0)
	share := float64(k) / float64(n) * (1 - γ)
	taken := OneHot(Reshape(codes, -1), k, values.DType()) // [B·m, k]
	before := MulScalar(usage.ValueGraph(g), γ)
	used := Add(before, MulScalar(ReduceSum(taken, 0), share))
	if f.Decay > 0 {
		sums := MulScalar(DotGeneral(taken, []int{0}, nil, values, []int{0}, nil), share) // [k, d]
		means := Div(Add(Mul(InsertAxes(before, 1), entries), sums), InsertAxes(MaxScalar(used, 1e-20), 1))
		entries = Where(BroadcastToDims(InsertAxes(GreaterThan(used, Scalar(g, used.DType(), 1e-20)), 1), k, d), means, entries)
	}
	if f.ResetBelow > 0 {
		dead := LessThan(used, Scalar(g, used.DType(), f.ResetBelow))
		row := Mod(Iota(g, shapes.Make(dtypes.Int32, k), 0), Scalar(g, dtypes.Int32, n))
		fresh := Gather(values, InsertAxes(row, -1))
		entries = Where(BroadcastToDims(InsertAxes(dead, 1), k, d), fresh, entries)
		used = Where(dead, OnesLike(used), used)
	}
	codebook.SetValueGraph(entries)
	usage.SetValueGraph(used)
}
