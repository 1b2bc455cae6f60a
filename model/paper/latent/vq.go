package latent

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// VQ is VQ-VAE's bottleneck (van den Oord et al. 2017): z is cut into m parts of d numbers, and each part takes the nearest of
// k entries, which all slots share.
type VQ struct {
	M, K, D  int
	UnitNorm bool // how entries begin; see Params
	Rotation bool // the gradient passes the quantizer by the rotation trick, else straight through

	Decay      float64 // entries are running means of the parts that took them, of this decay; 0 where they learn by gradient
	ResetBelow float64 // entries used less than this share of an even use are replaced by parts of the batch; 0 for none
}

// Params is the codebook, [k, d], under PyTorch's name, and where Follow needs it "usage", [k]: how much each entry is used, 1 for an even
// use.
//
//	C ~ U(±√(3/d))          with UnitNorm: E‖c‖² = 1           Hsu et al. 2023, latent_quantization
//	C ~ U(±1/k)             else                               van den Oord et al. 2017, published code
func (v VQ) Params() []layer.Param {
	bound := 1 / float64(v.K)
	if v.UnitNorm {
		bound = math.Sqrt(3 / float64(v.D))
	}
	rate := layer.Codebook
	if v.Decay > 0 {
		rate = layer.Frozen
	}
	params := layer.At(rate, []layer.Param{layer.Plain("codebook", layer.Uniform(bound), v.K, v.D)})
	if v.Follows() {
		params = append(params, layer.At(layer.Frozen, []layer.Param{layer.Plain("usage", layer.Constant(1), v.K)})...)
	}
	return params
}

// Follows says whether Follow has anything to do after a step.
func (v VQ) Follows() bool { return v.Decay > 0 || v.ResetBelow > 0 }

// usageDecay is that of the running usage where the codebook itself has none.
const usageDecay = 0.99

// Follow moves what follows the data, after the optimizer's update: the usage, with Decay the codebook, and dead entries.
//
//	u_j ← γ u_j + (1−γ) n_j·k/(B·m)                          n_j parts of the batch took entry j
//	c_j ← (γ u_j c_j + (1−γ) (k/(B·m)) Σ_{j(v)=j} v) / u_j'         van den Oord et al. 2017, appendix A.1, its counts scaled
//	c_j ← part j mod B·m of the batch, u_j ← 1,  where u_j < ResetBelow      Zeghidour et al. 2021, section III-C
//
// Batches are in random order, so that the part is a random one.
func (v VQ) Follow(scope *context.Context, s Slots) {
	g, γ := s.Codes.Graph(), v.Decay
	if γ == 0 {
		γ = usageDecay
	}
	parts := StopGradient(Reshape(s.Retrieved, -1, v.D))
	n := parts.Shape().Dim(0)
	share := float64(v.K) / float64(n) * (1 - γ)
	taken := OneHot(Reshape(s.Codes, -1), v.K, parts.DType()) // [B·m, k]
	codebook, usage := scope.GetVariable("codebook"), scope.GetVariable("usage")
	before, entries := MulScalar(usage.ValueGraph(g), γ), codebook.ValueGraph(g)
	used := Add(before, MulScalar(ReduceSum(taken, 0), share))
	if v.Decay > 0 {
		sums := MulScalar(DotGeneral(taken, []int{0}, nil, parts, []int{0}, nil), share) // [k, d]
		entries = Div(Add(Mul(InsertAxes(before, 1), entries), sums), InsertAxes(MaxScalar(used, 1e-20), 1))
		entries = Where(BroadcastToDims(InsertAxes(GreaterThan(used, Scalar(g, used.DType(), 1e-20)), 1), v.K, v.D), entries, codebook.ValueGraph(g))
	}
	if v.ResetBelow > 0 {
		dead := LessThan(used, Scalar(g, used.DType(), v.ResetBelow))
		row := Mod(Iota(g, shapes.Make(dtypes.Int32, v.K), 0), Scalar(g, dtypes.Int32, n))
		fresh := Gather(parts, InsertAxes(row, -1))
		entries = Where(BroadcastToDims(InsertAxes(dead, 1), v.K, v.D), fresh, entries)
		used = Where(dead, OnesLike(used), used)
	}
	codebook.SetValueGraph(entries)
	usage.SetValueGraph(used)
}

// Apply cuts z, [B, m·d], takes the nearest entries and joins them again.
func (v VQ) Apply(scope *context.Context, z *Node) Slots {
	parts, entries := v.Retrieve(scope, z), layer.Value(scope, z.Graph(), "codebook")
	codes := Nearest(parts, entries)
	quantized := Lookup(entries, codes)
	bundle := Reshape(through(parts, quantized, v.Rotation), -1, v.M*v.D)
	return Slots{parts, parts, quantized, codes, entries, bundle}
}

// Retrieve cuts z, [B, m·d], into the parts of the slots, [B, m, d].
func (v VQ) Retrieve(_ *context.Context, z *Node) *Node { return Reshape(z, -1, v.M, v.D) }

// Represent is the code of every slot, [B, m] int32, of its part, [B, m, d].
func (v VQ) Represent(scope *context.Context, parts *Node) *Node {
	return Nearest(parts, layer.Value(scope, parts.Graph(), "codebook"))
}

// Bundle joins the entries of code tuples, [B, m], to [B, m·d].
func (v VQ) Bundle(scope *context.Context, codes *Node) *Node {
	return Reshape(Lookup(layer.Value(scope, codes.Graph(), "codebook"), codes), -1, v.M*v.D)
}
