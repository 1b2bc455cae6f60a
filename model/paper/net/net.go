// Package net implements the convolutional encoder and the style-based decoder that all models share (paper, Table “Architecture”).
// Images and feature maps are NHWC.
package net

import (
	"fmt"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

const (
	leak    = 0.2  // slope of LeakyReLU below 0
	epsilon = 1e-5 // added to the variance by instance normalisation
)

// Encoder maps images to latents: 4 × (Conv 4/2/1 → InstanceNorm → LeakyReLU 0.2), flatten, FC 1 → ReLU, FC 2.
type Encoder struct {
	H, W, C int    // image
	Widths  [4]int // channels of Conv 1 to 4
	FC, Out int    // width of FC 1 and of the latent

	Products layer.Products
}

// Params returns the encoder's parameters, under PyTorch's names: nn.Sequential numbers convolution, norm and activation.
func (e Encoder) Params() []layer.Param {
	var params []layer.Param
	in := e.C
	for i, out := range e.Widths {
		norm := fmt.Sprintf("encoder.%d", 3*i+1)
		params = append(params,
			layer.Conv(fmt.Sprintf("encoder.%d", 3*i), in, out, 4),
			layer.Plain(norm+".weight", layer.Constant(1), out),
			layer.Plain(norm+".bias", layer.Constant(0), out))
		in = out
	}
	params = append(params, layer.LinearOfImage("fc1", e.H/16, e.W/16, in, e.FC)...)
	return append(params, layer.Linear("fc2", e.FC, e.Out)...)
}

// Apply maps x, [B, H, W, C] in [0, 1], to [B, Out].
func (e Encoder) Apply(scope *context.Context, x *Node) *Node {
	x.AssertDims(-1, e.H, e.W, e.C)
	g, batch := x.Graph(), x.Shape().Dim(0)
	for i := range e.Widths {
		x = e.Products.Of(x, layer.Value(scope, g, fmt.Sprintf("encoder.%d.weight", 3*i)), halving)
		norm := fmt.Sprintf("encoder.%d", 3*i+1)
		gain, bias := layer.Value(scope, g, norm+".weight"), layer.Value(scope, g, norm+".bias")
		x = layer.LeakyReLU(Modulate(x, InsertAxes(gain, 0, 0, 0), InsertAxes(bias, 0, 0, 0)), leak)
	}
	h := layer.LeakyReLU(e.Products.Dense(scope, "fc1", Reshape(x, batch, -1)), 0)
	return e.Products.Dense(scope, "fc2", h)
}

// Decoder maps latents to images, starting from a learned canvas that the latent modulates at every scale.
//
//	w = ReLU(Linear z)      4 × StyleConvT(x, w)      Conv 3×3 → logits
type Decoder struct {
	H, W, C int    // image
	Widths  [4]int // channels of Conv 1 to 4; the decoder uses them in reverse order
	FC, In  int    // width of the style vector and of the latent

	Products layer.Products
}

// Params returns the decoder's parameters, under PyTorch's names.
func (d Decoder) Params() []layer.Param {
	top := d.Widths[3]
	params := append([]layer.Param{layer.Canvas("canvas", d.H/16, d.W/16, top)}, layer.Linear("style", d.In, d.FC)...)
	in := top
	for i := range d.Widths {
		up, out := fmt.Sprintf("up.%d", i), d.Widths[3-i]
		params = append(params, layer.ConvTranspose(up+".conv", in, out))
		params = append(params, layer.Linear(up+".affine", d.FC, 2*out)...)
		in = out
	}
	return append(params, layer.Conv("out", in, d.C, 3))
}

// Apply maps z, [B, In], to logits, [B, H, W, C].
func (d Decoder) Apply(scope *context.Context, z *Node) *Node { return d.From(scope, nil, z) }

// From is Apply, given the output of First if it is not nil.
func (d Decoder) From(scope *context.Context, first, z *Node) *Node {
	style := d.Style(scope, z)
	if first == nil {
		first = d.First(scope, z.Graph())
	}
	x := d.start(scope, first, style)
	for i := 1; i < len(d.Widths); i++ {
		x = d.Up(scope, i, x, style)
	}
	return d.Out(scope, x)
}

// First returns what block 0 computes before the style modulates it, which depends only on the weights: [1, H/8, W/8, Widths[3]].
func (d Decoder) First(scope *context.Context, g *Graph) *Node {
	return InstanceNorm(d.convolve(scope, 0, layer.Value(scope, g, "canvas")))
}

// Style returns w = ReLU(Linear z), [B, FC], for z of [B, In].
func (d Decoder) Style(scope *context.Context, z *Node) *Node {
	z.AssertDims(-1, d.In)
	return layer.LeakyReLU(d.Products.Dense(scope, "style", z), 0)
}

// Up applies block i, from 0, to x, the output of the previous block; block 0 ignores x and reads the canvas, shared by the whole batch.
func (d Decoder) Up(scope *context.Context, i int, x, style *Node) *Node {
	if i == 0 {
		return d.start(scope, d.First(scope, style.Graph()), style)
	}
	gain, bias := d.affine(scope, i, style)
	return Modulate(d.convolve(scope, i, x), gain, bias)
}

// start modulates first, the output of First, by the style.
func (d Decoder) start(scope *context.Context, first, style *Node) *Node {
	gain, bias := d.affine(scope, 0, style)
	return Add(Mul(first, gain), bias)
}

// Out maps the output of the last block to logits, [B, H, W, C].
func (d Decoder) Out(scope *context.Context, x *Node) *Node {
	logits := d.Products.Of(x, layer.Value(scope, x.Graph(), "out.weight"), keeping)
	logits.AssertDims(-1, d.H, d.W, d.C)
	return logits
}

// convolve applies block i, which is StyleConvT, up to its norm: ConvTranspose → LeakyReLU 0.2; the output is twice as large as x.
func (d Decoder) convolve(scope *context.Context, i int, x *Node) *Node {
	x = d.Products.Of(x, layer.Value(scope, x.Graph(), fmt.Sprintf("up.%d.conv.weight", i)), ConvTranspose)
	return layer.LeakyReLU(x, leak)
}

// affine returns the factor and the summand of AdaIN, the end of block i, each [B, 1, 1, C].
//
//	(1 + scale)·x̂ + bias,  (scale, bias) = Linear(style)
func (d Decoder) affine(scope *context.Context, i int, style *Node) (gain, bias *Node) {
	halves := Split(d.Products.Dense(scope, fmt.Sprintf("up.%d.affine", i), style), 1, 2)
	return OnePlus(InsertAxes(halves[0], 1, 1)), InsertAxes(halves[1], 1, 1)
}

// InstanceNorm normalizes every channel of every image to mean 0 and variance 1 (biased, plus ε = 1e-5).
//
//	x̂ = (x - mean) / √(var + ε)                 over H and W; x is [B, H, W, C]
//
// Its gradient is written out, which takes two reductions instead of the chain of passes of automatic differentiation:
//
//	∂x = (∂x̂ - mean ∂x̂ - x̂·mean(∂x̂·x̂)) / √(var + ε)
func InstanceNorm(x *Node) *Node {
	normal, scale := standardize(x)
	return layer.WithGradient(normal, []*Node{x}, func(v *Node) *Node { return Mul(scale, unstandardize(v, normal)) })
}

// Modulate returns gain·x̂ + bias for x̂ = InstanceNorm(x); gain and bias are [B, 1, 1, C], or [1, 1, 1, C] for all images. Since they are constant over H
// and W, all gradients need the same two sums over these:
//
//	∂bias = Σ v,  ∂gain = Σ v·x̂,  ∂x = gain·(v - mean v - x̂·mean(v·x̂)) / √(var + ε)      v is the output's gradient
func Modulate(x, gain, bias *Node) *Node {
	normal, scale := standardize(x)
	sum := func(v *Node) *Node {
		v = ReduceAndKeep(v, ReduceSum, 1, 2)
		if gain.Shape().Dim(0) == 1 {
			v = ReduceAndKeep(v, ReduceSum, 0)
		}
		return v
	}
	return layer.WithGradient(Add(Mul(normal, gain), bias), []*Node{x, gain, bias},
		func(v *Node) *Node { return Mul(Mul(gain, scale), unstandardize(v, normal)) },
		func(v *Node) *Node { return sum(Mul(v, normal)) },
		sum)
}

// standardize returns x̂, [B, H, W, C], and 1/√(var + ε), [B, 1, 1, C].
func standardize(x *Node) (normal, scale *Node) {
	deviation := Sub(x, spatialMean(x))
	scale = Reciprocal(Sqrt(AddScalar(spatialMean(Square(deviation)), epsilon)))
	return Mul(deviation, scale), scale
}

// unstandardize returns the part of v that changes x̂: v - mean v - x̂·mean(v·x̂).
func unstandardize(v, normal *Node) *Node {
	return Sub(Sub(v, spatialMean(v)), Mul(normal, spatialMean(Mul(v, normal))))
}

// spatialMean averages [B, H, W, C] over H and W, keeping them as axes of 1.
func spatialMean(x *Node) *Node { return ReduceAndKeep(x, ReduceMean, 1, 2) }
