// Package ae implements the paper's model and others from the literature as graph functions over a variable store, one file per model.
package ae

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// Image is the image shape that a model is built for.
type Image struct{ H, W, C int }

// Term is one term of an objective; Value is a scalar in the paper's units, before weighting.
type Term struct {
	Name   string
	Weight float64
	Value  *Node
}

// Series is a monitored scalar that is not part of the objective, such as "latent/var".
type Series struct {
	Name  string
	Value *Node
}

// Batch is the input of one training step.
type Batch struct {
	Images *Node // x, [B, H, W, C] in [0, 1]
	Draws  *Node // [B, Noise()], filled by Draw; nil if Noise() is 0
	Step   *Node // step number, from 1, a scalar; nil for the state after annealing
}

// Objective holds a model's objective and outputs for one batch.
type Objective struct {
	Total  *Node    // scalar: Σ weight · value; encoder, bottleneck and decoder minimize it
	Terms  []Term   // every term, including most of weight 0
	Codes  *Node    // [B, m] int32, or nil if Discrete is false
	Watch  []Series // further scalars for the run's page
	Logits *Node    // [B, H, W, C]; fewer images if a model decodes only part of the batch

	// Discriminator is the scalar that the discriminator's variables minimize; nil if the model has none.
	Discriminator *Node
	// Follow updates variables that follow the data instead of a gradient; call it once the optimizers' updates are in the graph. It is nil
	// if there are none.
	Follow func()
}

// Model is an autoencoder: its stages, its training and its variables.
type Model interface {
	Stages
	Learner
	// Parameters returns the number of learned parameters: all, and those of encoder and decoder.
	Parameters() (all, networks int)
	// Init creates every variable in scope, drawn on the host from the configuration's seed, so they are the same on every engine: in the memory of the engine
	// that computes with them, if it shares the host's, or anywhere if engine is nil.
	Init(scope *context.Context, engine backends.Backend) error
	// Export copies the variables out under PyTorch's names and layouts. Import is its inverse; it checks every shape and changes
	// nothing unless all match. Frozen tensors are constants of the graphs above, so build those after Init or Import.
	Export(scope *context.Context) (map[string]checkpoint.Tensor, error)
	Import(scope *context.Context, tensors map[string]checkpoint.Tensor) error
}

// Stages splits an autoencoder into five stages, the same for every model. All are graph functions.
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
//	other VAEs as betavae
//	ae, bioae  m          1: z_i          z, float32                 z
//
// slots is the representation that metrics measure: [B, m], int32 if Discrete, otherwise float32. x lies in [0, 1]; Sigmoid of the
// logits is the image. m and k are Config.M and Config.K. Noise on z is added between Latent and FromLatent, noise on retrievals between
// Retrieve and Represent, noise on ẑ between Bundle and Render; a VAE's z is its mean.
type Stages interface {
	// Discrete reports whether a slot holds one of k codes; otherwise it holds a real number.
	Discrete() bool
	// Size returns n, the length of z and ẑ.
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
	// Fixed returns what Decode computes from the weights only, and DecodeFixed is Decode, given that; see Decoder.
	Fixed(scope *context.Context, g *Graph) []*Node
	DecodeFixed(scope *context.Context, fixed []*Node, slots *Node) *Node
	// FromLatent returns the slots of a latent z, [B, n], and the logits of their image.
	FromLatent(scope *context.Context, z *Node) (slots, logits *Node)
}

// Learner defines how a model is trained.
type Learner interface {
	// Noise returns the number of random numbers per image that Losses needs: m for most VAEs, 2·m for FactorVAE, 2·p·m for Tripod, otherwise 0.
	Noise() int
	// Draw fills out, [B, Noise()], with the random numbers of one batch: N(0, 1) unless the model overrides it.
	Draw(rng *rand.Rand, out []float32)
	// Losses builds the objective of one batch.
	Losses(scope *context.Context, batch Batch) Objective
	// LRScale returns a variable's factor on the learning rate: Config.CodebookLR for the codebook, 0 for frozen variables.
	LRScale(v *context.Variable) float64
	// Discriminates reports whether a variable belongs to the discriminator, which minimizes Objective.Discriminator.
	Discriminates(v *context.Variable) bool
	// Decays reports whether weight decay applies to a variable; it applies to encoder and decoder only.
	Decays(v *context.Variable) bool
}

// New returns the configured model, or a model.Invalid if it cannot be built. Its stages compute in the engine's precision,
// regardless of the precision it was trained with.
func New(cfg model.Config, image Image) (Model, error) {
	cfg.Precision = ""
	return ForSteps(cfg, image)
}

// ForSteps returns the model for training: with precision model.BF16, convolutions and linear layers, except those of
// FactorVAE's discriminator, have bfloat16 operands.
// Its variables are those of New.
func ForSteps(cfg model.Config, image Image) (Model, error) {
	bad := model.Invalid{}
	for field, why := range cfg.Validate() {
		if slices.Contains(shaping, field) {
			bad[field] = why
		}
	}
	if image.H < 32 || image.W < 32 || image.H%16 != 0 || image.W%16 != 0 || image.C < 1 {
		bad["image"] = fmt.Sprintf("%d×%d images with %d channels are not supported; height and width must be multiples of 16 and at least 32, with at least 1 channel",
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

// shaping lists the configuration's fields that determine a model's tensors; invalid values of other fields do not prevent opening a checkpoint.
var shaping = []string{"model", "widths", "fc", "d", "m", "k", "disc_width", "disc_layers", "ema_decay", "reset_below", "binding", "inverse", "symbol_init"}
