// Package ae states the models, the paper's and others of the field, as graph functions over a variable store, one file per model.
package ae

import (
	"fmt"
	"math/rand/v2"
	"slices"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// Image is the shape of the pictures that a model is built for.
type Image struct{ H, W, C int }

// Term is one summand of an objective; Value is a scalar, in the paper's units, before its weight.
type Term struct {
	Name   string
	Weight float64
	Value  *Node
}

// Series is a scalar worth watching that is not part of the objective, such as "latent/var".
type Series struct {
	Name  string
	Value *Node
}

// Batch is what one step learns from.
type Batch struct {
	Images *Node // x, [B, H, W, C] in [0, 1]
	Draws  *Node // [B, Noise()], as Draw fills it; nil where Noise() is 0
	Step   *Node // number of the step, from 1, a scalar; nil where what is annealed has reached its end
}

// Objective is what a model makes of one batch.
type Objective struct {
	Total  *Node    // scalar: Σ weight · value; encoder, bottleneck and decoder minimize it
	Terms  []Term   // every summand, also most of weight 0
	Codes  *Node    // [B, m] int32, or nil where Discrete is false
	Watch  []Series // further scalars for the run's page
	Logits *Node    // [B, H, W, C]; of fewer images where a model decodes a part of the batch

	// Discriminator is the scalar that the variables of the second player minimize; nil where there is none.
	Discriminator *Node
	// Follow moves variables that follow the data instead of a gradient; it is called when the optimizers' updates are in the graph. It is
	// nil where there are none.
	Follow func()
}

// Model is an autoencoder: its stages, how it is trained, and its variables.
type Model interface {
	Stages
	Learner
	// Parameters counts what is learned: all of it, and the encoder's and decoder's share.
	Parameters() (all, networks int)
	// Init creates every variable in scope, drawn on the host from the configuration's seed: the same on every engine.
	Init(scope *context.Context) error
	// Export copies the variables out under PyTorch's names and layouts; Import is its inverse, checks every shape and changes
	// nothing unless all fit. Frozen tensors are constants of the graphs above: build those after Init or Import.
	Export(scope *context.Context) (map[string]checkpoint.Tensor, error)
	Import(scope *context.Context, tensors map[string]checkpoint.Tensor) error
}

// Stages are an autoencoder taken apart, every model into the same five. All are graph functions.
//
//	x ──Latent──▶ z ──Retrieve──▶ ṽ ──Represent──▶ slots ──Bundle──▶ ẑ ──Render──▶ logits
//	[B,H,W,C]   [B,n]          [B,m,v]            [B,m]            [B,n]        [B,H,W,C]
//
//	           n = Size   v               slots                      ẑ
//	hrr        d          d: retrievals   codes 0 … k−1, int32       Σ_i s_i ⊗ c_{j_i}
//	vqvae      m·d        d: parts of z   codes 0 … k−1, int32       the m entries, joined
//	qlae       m          1: z_i          codes 0 … k−1, int32       the m values of the slots' own codebooks
//	tripod     m          1: tanh z_i     codes 0 … k−1, int32       the m grid values of the codes
//	betavae    m          1: mean μ_i     means, float32             the means
//	betatcvae  m          1: mean μ_i     means, float32             the means
//	other VAEs the same
//	ae, bioae  m          1: z_i          z, float32                 z
//
// slots is what a representation is measured by: [B, m], int32 where Discrete, else float32. x lies in [0, 1]; logits are
// those of pixels, so Sigmoid gives the image. m and k are Config.M and Config.K. Noise on z is added between Latent and
// FromLatent, noise on retrievals between Retrieve and Represent, noise on ẑ between Bundle and Render; a VAE's z is its mean.
type Stages interface {
	// Discrete says whether a slot takes one of k codes; else it holds a real number.
	Discrete() bool
	// Size is n, the length of z and of ẑ.
	Size() int

	Latent(scope *context.Context, x *Node) *Node
	Retrieve(scope *context.Context, z *Node) *Node
	Represent(scope *context.Context, retrieved *Node) *Node
	Bundle(scope *context.Context, slots *Node) *Node
	Render(scope *context.Context, bundle *Node) *Node

	// Encode is Represent ∘ Retrieve ∘ Latent: images to slots, [B, m].
	Encode(scope *context.Context, x *Node) *Node
	// Decode is Render ∘ Bundle: slots to logits, [B, H, W, C].
	Decode(scope *context.Context, slots *Node) *Node
	// FromLatent is what becomes of a latent z, [B, n]: its slots and the logits of their image.
	FromLatent(scope *context.Context, z *Node) (slots, logits *Node)
}

// Learner is how a model is trained.
type Learner interface {
	// Noise is how many random numbers Losses takes per image: m for the VAEs, else 0.
	Noise() int
	// Draw fills out, [B, Noise()], with the random numbers of one batch: N(0, 1) unless the model says otherwise.
	Draw(rng *rand.Rand, out []float32)
	// Losses builds the objective of one batch.
	Losses(scope *context.Context, batch Batch) Objective
	// LRScale is the factor on the learning rate for one variable, for the codebook Config.CodebookLR, 0 for what stays frozen.
	LRScale(v *context.Variable) float64
	// Discriminates says whether a variable belongs to the second player, which minimizes Objective.Discriminator.
	Discriminates(v *context.Variable) bool
	// Decays says whether weight decay acts on a variable: on those of encoder and decoder alone.
	Decays(v *context.Variable) bool
}

// New returns the model that a configuration names; model.Invalid says what it cannot be built with. Whatever precision it was
// trained with, its stages compute in that of the engine.
func New(cfg model.Config, image Image) (Model, error) {
	cfg.Precision = ""
	return ForSteps(cfg, image)
}

// ForSteps is New for gradient steps: with precision model.BF16 the products of encoder and decoder have bfloat16 operands.
// Variables are the same.
func ForSteps(cfg model.Config, image Image) (Model, error) {
	bad := model.Invalid{}
	for field, why := range cfg.Validate() {
		if slices.Contains(shaping, field) {
			bad[field] = why
		}
	}
	if image.H < 32 || image.W < 32 || image.H%16 != 0 || image.W%16 != 0 || image.C < 1 {
		bad["image"] = fmt.Sprintf("%d×%d images with %d channels do not fit: height and width are multiples of 16 from 32 on",
			image.H, image.W, image.C)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	switch cfg.Model {
	case "vqvae":
		return newVQVAE(cfg, image), nil
	case "qlae":
		return newQLAE(cfg, image), nil
	case "betavae":
		return newBetaVAE(cfg, image), nil
	case "betatcvae":
		return newBetaTCVAE(cfg, image), nil
	case "factorvae":
		return newFactorVAE(cfg, image), nil
	case "annealedvae":
		return newAnnealedVAE(cfg, image), nil
	case "dipvae1", "dipvae2":
		return newDIPVAE(cfg, image), nil
	case "tripod":
		return newTripod(cfg, image), nil
	case "ae":
		return newPlain(cfg, image), nil
	case "bioae":
		return newBioAE(cfg, image), nil
	}
	return newHRR(cfg, image), nil
}

// shaping are the configuration's fields that decide which tensors a model has; a checkpoint opens whatever the others say.
var shaping = []string{"model", "widths", "fc", "d", "m", "k", "disc_width", "disc_layers", "ema_decay", "reset_below", "binding", "inverse", "symbol_init"}
