package ae

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/latent"
	"slotscope/model/paper/loss"
)

// Tripod combines three inductive biases (Hsu et al. 2024): latents on a finite grid, kernel-based latent multiinformation, and a
// normalized Hessian penalty on the decoder.
type Tripod struct {
	autoencoder
	slots latent.Grid
}

func newTripod(c model.Config, image Image) *Tripod {
	slots := latent.Grid{M: c.M, K: c.K}
	return &Tripod{newAutoencoder(c, image, slots, c.M, c.M, 1), slots}
}

// Noise implements Model: Rademacher and normal probes, [2, p, m].
func (t *Tripod) Noise() int { return 2 * t.cfg.Probes * t.cfg.M }

// Draw implements Model: the first half of every row is ±1, the second N(0, 1).
func (t *Tripod) Draw(rng *rand.Rand, out []float32) {
	t.autoencoder.Draw(rng, out)
	each := t.Noise()
	for i := range out {
		if i%each < each/2 {
			out[i] = float32(2*rng.IntN(2) - 1)
		}
	}
}

// tripod holds the intermediate results of a forward pass.
type tripod struct {
	z, std             *Node // [B, m], [m]
	slots              latent.Slots
	kernels            loss.Kernels
	rademacher, normal *Node // curvatures, [B, layers]
	logits             *Node // [B, H, W, C]
}

func (t *Tripod) forward(scope *context.Context, batch Batch) tripod {
	z := t.Latent(scope, batch.Images)
	slots := t.slots.Apply(z)
	std := loss.Deviation(slots.Retrieved)
	f := tripod{z: z, std: std, slots: slots, kernels: loss.KernelsOf(slots.Quantized, std)}
	f.rademacher, f.normal, f.logits = t.decode(scope, slots.Quantized, std, batch.Draws)
	return f
}

// layersOf returns the decoder outputs that the penalty reads, in order; see Config.LayersNHP.
func (t *Tripod) layersOf() []string {
	return strings.Split(cmp.Or(t.cfg.LayersNHP, model.LayersNHP), ",")
}

// decode runs the decoder on z, [B, m], and up to the last penalized layer on z ± ε·std∘r for every probe r, all in one batch.
func (t *Tripod) decode(scope *context.Context, z, std, draws *Node) (rademacher, normal, logits *Node) {
	b, m, p := z.Shape().Dim(0), t.cfg.M, t.cfg.Probes
	probes := Reshape(TransposeAllAxes(Reshape(draws, b, 2*p, m), 1, 0, 2), 2*p, b, m)
	v := MulScalar(Mul(probes, InsertAxes(std, 0, 0)), t.cfg.EpsilonNHP)
	at := InsertAxes(z, 0)
	points := Reshape(Concatenate([]*Node{at, Add(at, v), Sub(at, v)}, 0), (1+4*p)*b, m)

	layers := t.layersOf()
	var columns [2][]*Node
	penalize := func(name string, f *Node) {
		if !slices.Contains(layers, name) {
			return
		}
		f = Reshape(f, append([]int{1 + 4*p, b}, f.Shape().Dimensions[1:]...)...)
		here := Squeeze(Slice(f, AxisRange(0, 1)), 0)
		for kind := range columns {
			ahead, behind := 1+kind*p, 1+(2+kind)*p
			columns[kind] = append(columns[kind], InsertAxes(loss.Curvature(here, Slice(f, AxisRange(ahead, ahead+p)), Slice(f, AxisRange(behind, behind+p)), t.cfg.EpsilonNHP), 1))
		}
	}
	style, x := t.decoder.Style(scope, points), (*Node)(nil)
	penalize("style", style)
	all := true
	for i, name := range []string{"up.0", "up.1", "up.2", "up.3"} {
		x = t.decoder.Up(scope, i, x, style)
		penalize(name, x)
		if all && (name == layers[len(layers)-1] || i == 3) { // later layers need only the image itself
			x, style, all = Slice(x, AxisRange(0, b)), Slice(style, AxisRange(0, b)), false
		}
	}
	return Concatenate(columns[0], 1), Concatenate(columns[1], 1), t.decoder.Out(scope, x)
}

// Losses implements Model.
//
//	L = λ_r·BCE + λ_klm·KLM + λ_nhp·NHP
func (t *Tripod) Losses(scope *context.Context, batch Batch) Objective {
	f := t.forward(scope, batch)
	terms := []Term{
		{"recon", t.cfg.LambdaRec, loss.Reconstruction(f.logits, batch.Images)},
		{"klm", t.cfg.LambdaKLM, loss.Multiinformation(f.kernels)},
		{"nhp", t.cfg.LambdaNHP, loss.HessianPenalty(f.rademacher, f.normal)},
	}
	return Objective{Total: weighted(terms), Terms: terms, Codes: f.slots.Codes, Watch: moments("latent", InsertAxes(f.slots.Retrieved, 1)), Logits: f.logits}
}
