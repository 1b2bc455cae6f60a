package latent

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// Following is how a codebook of free entries follows the data beside, or instead of, its gradient. The zero value does nothing.
type Following struct {
	Decay      float64 // entries are running means of the values that took them, of this decay, 0 to 1; 0 where they learn by gradient
	ResetBelow float64 // entries used less than this share of an even use, 0 to 1, are replaced by values of the batch; 0 for none
}

// Follows says whether Follow has anything to do after a step.
func (f Following) Follows() bool { return f.Decay > 0 || f.ResetBelow > 0 }

// params is a codebook, [k, d], and where it follows "usage", [k]: how much each entry is used, 1 for an even use.
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

// usageDecay is that of the running usage where the codebook itself has none.
const usageDecay = 0.99

// Follow moves what follows the data, after the optimizer's update: the usage, with Decay the codebook, and dead entries.
//
//	u_j ← γ u_j + (1−γ) n_j·k/(B·m)                          n_j values of the batch took entry j
//	c_j ← (γ u_j c_j + (1−γ) (k/(B·m)) Σ_{j(v)=j} v) / u_j'         van den Oord et al. 2017, appendix A.1, its counts scaled
//	c_j ← value j mod B·m of the batch, u_j ← 1,  where u_j < ResetBelow     Zeghidour et al. 2021, section III-C
//
// values is [B, m, d], codes [B, m] int32. Batches are in random order, so that the value is a random one.
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
