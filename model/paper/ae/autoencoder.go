package ae

import (
	"math/rand/v2"
	"slices"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/latent"
	"slotscope/model/paper/layer"
	"slotscope/model/paper/net"
)

// bottleneck implements the stages between encoder and decoder: three of a Model's five.
type bottleneck interface {
	Params() []layer.Param
	Retrieve(scope *context.Context, z *Node) *Node
	Represent(scope *context.Context, retrieved *Node) *Node
	Bundle(scope *context.Context, slots *Node) *Node
}

// autoencoder holds the parts shared by all models: encoder, decoder and the five stages. Every model embeds one.
type autoencoder struct {
	store
	cfg     model.Config
	encoder net.Encoder
	decoder net.Decoder
	middle  bottleneck
	size    int     // n
	gain    float64 // z = f(x)·gain, and the decoder reads ẑ/gain
}

// newAutoencoder joins the shared networks with a bottleneck; outputs is the encoder's output size and size the decoder's input size.
func newAutoencoder(c model.Config, image Image, middle bottleneck, outputs, size int, gain float64) autoencoder {
	encoder := net.Encoder{H: image.H, W: image.W, C: image.C, Widths: c.Widths, FC: c.FC, Out: outputs, Products: products(c)}
	decoder := net.Decoder{H: image.H, W: image.W, C: image.C, Widths: c.Widths, FC: c.FC, In: size, Products: products(c)}
	networks := slices.Concat(encoder.Params(), decoder.Params())
	s := store{params: slices.Concat(encoder.Params(), middle.Params(), decoder.Params()), networks: networks, unbiased: c.NoBiasDecay, seed: c.Seed, rate: c.CodebookLR}
	return autoencoder{store: s, cfg: c, encoder: encoder, decoder: decoder, middle: middle, size: size, gain: gain}
}

// products returns the precision of the products of convolutions and of the linear layers of encoder, decoder, denoiser and generator.
func products(c model.Config) layer.Products {
	if c.Precision == model.BF16 {
		return layer.Mixed
	}
	return layer.Exact
}

// Discrete implements Model.
func (a autoencoder) Discrete() bool { return a.cfg.Discrete() }

// Size implements Model.
func (a autoencoder) Size() int { return a.size }

// Noise implements Model, for models without random draws.
func (a autoencoder) Noise() int { return 0 }

// Draw implements Model: N(0, 1).
func (a autoencoder) Draw(rng *rand.Rand, out []float32) {
	for i := range out {
		out[i] = float32(rng.NormFloat64())
	}
}

// Latent implements Model: z = f(x)·gain, from the first n encoder outputs. The others, in a VAE, are log variances.
func (a autoencoder) Latent(scope *context.Context, x *Node) *Node {
	outputs := a.encoder.Apply(scope, x)
	if a.encoder.Out > a.size {
		outputs = Slice(outputs, AxisRange(), AxisRange(0, a.size))
	}
	return scaled(outputs, a.gain)
}

// Retrieve implements Model.
func (a autoencoder) Retrieve(scope *context.Context, z *Node) *Node {
	z.AssertDims(-1, a.size)
	retrieved := a.middle.Retrieve(scope, z)
	retrieved.AssertDims(-1, a.cfg.M, -1)
	return retrieved
}

// Represent implements Model.
func (a autoencoder) Represent(scope *context.Context, retrieved *Node) *Node {
	slots := a.middle.Represent(scope, retrieved)
	slots.AssertDims(-1, a.cfg.M)
	return slots
}

// Bundle implements Model.
func (a autoencoder) Bundle(scope *context.Context, slots *Node) *Node {
	slots.AssertDims(-1, a.cfg.M)
	bundle := a.middle.Bundle(scope, slots)
	bundle.AssertDims(-1, a.size)
	return bundle
}

// Render implements Model: g(ẑ/gain).
func (a autoencoder) Render(scope *context.Context, bundle *Node) *Node {
	return a.decoder.Apply(scope, scaled(bundle, 1/a.gain))
}

// Encode implements Model.
func (a autoencoder) Encode(scope *context.Context, x *Node) *Node {
	return a.Represent(scope, a.Retrieve(scope, a.Latent(scope, x)))
}

// Decode implements Model.
func (a autoencoder) Decode(scope *context.Context, slots *Node) *Node {
	return a.Render(scope, a.Bundle(scope, slots))
}

// Fixed implements Model.
func (a autoencoder) Fixed(scope *context.Context, g *Graph) []*Node {
	fixed := []*Node{a.decoder.First(scope, g)}
	if h, ok := a.middle.(latent.HRR); ok {
		if bound := h.Bound(scope, g); bound != nil {
			fixed = append(fixed, bound)
		}
	}
	return fixed
}

// DecodeFixed implements Model.
func (a autoencoder) DecodeFixed(scope *context.Context, fixed []*Node, slots *Node) *Node {
	var bundle *Node
	if len(fixed) > 1 {
		bundle = a.middle.(latent.HRR).BundleBound(fixed[1], slots)
	} else {
		bundle = a.Bundle(scope, slots)
	}
	return a.decoder.From(scope, fixed[0], scaled(bundle, 1/a.gain))
}

// FromLatent implements Model.
func (a autoencoder) FromLatent(scope *context.Context, z *Node) (slots, logits *Node) {
	slots = a.Represent(scope, a.Retrieve(scope, z))
	return slots, a.Decode(scope, slots)
}

func scaled(x *Node, by float64) *Node {
	if by == 1 {
		return x
	}
	return MulScalar(x, by)
}

// weighted returns Σ weight · value. Terms of weight 0 after the first are measured but excluded, even if their value is not finite.
func weighted(terms []Term) *Node {
	total := MulScalar(terms[0].Value, terms[0].Weight)
	for _, t := range terms[1:] {
		if t.Weight != 0 {
			total = Add(total, MulScalar(t.Value, t.Weight))
		}
	}
	return total
}

// activity returns the moments of numeric latents, [B, m], and the number of active ones, which vary between images.
//
//	active = #{i : Var_B(z_i) > 0.01}          Burda et al. 2016, for posterior means
func activity(z *Node) []Series {
	z = StopGradient(z)
	spread := ReduceMean(Square(Sub(z, ReduceAndKeep(z, ReduceMean, 0))), 0) // [m]
	active := ReduceAllSum(ConvertDType(GreaterThan(spread, Scalar(z.Graph(), z.DType(), 0.01)), z.DType()))
	return append(moments("latent", InsertAxes(z, 1)), Series{"latent/active", active})
}

// moments returns the quantities that loss.Structural regularizes, for B matrices of n rows, [B, n, d], averaged over the matrices.
func moments(name string, x *Node) []Series {
	x = StopGradient(x)
	centred := Sub(x, ReduceAndKeep(x, ReduceMean, 1, 2))
	return []Series{
		{name + "/mean", ReduceAllMean(x)},
		{name + "/var", ReduceAllMean(Square(centred))},
		{name + "/norm2", ReduceAllMean(ReduceSum(Square(x), 2))},
	}
}
