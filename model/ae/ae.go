// Package ae states the models of the paper as graph functions over a variable store, one file per model.
package ae

import (
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/checkpoint"
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

// Objective is what a model makes of one batch.
type Objective struct {
	Total  *Node    // scalar: Σ weight · value
	Terms  []Term   // every summand, also those of weight 0
	Codes  *Node    // [B, m] int32, or nil for models without a codebook
	Watch  []Series // further scalars for the run's page
	Logits *Node    // [B, H, W, C]
}

// Model is one of the paper's autoencoders. x is [B, H, W, C] in [0, 1]; codes are [B, m] int32.
type Model interface {
	// Init creates every variable in scope, drawn on the host from the configuration's seed: the same on every engine.
	Init(scope *context.Context) error
	// Losses builds the objective of one batch.
	Losses(scope *context.Context, x *Node) Objective
	// Encode returns the code that every slot takes.
	Encode(scope *context.Context, x *Node) *Node
	// Decode returns the logits [B, H, W, C] of the images that code tuples stand for.
	Decode(scope *context.Context, codes *Node) *Node
	// LRScale is the factor on the learning rate for one variable: 2 for the codebook, 0 for what stays frozen.
	LRScale(v *context.Variable) float64
	// Export copies the variables out under PyTorch's names and layouts; Import is its inverse, checks every shape and changes
	// nothing unless all fit. Frozen tensors are constants of the graphs above: build those after Init or Import.
	Export(scope *context.Context) (map[string]checkpoint.Tensor, error)
	Import(scope *context.Context, tensors map[string]checkpoint.Tensor) error
}

// New returns the model that a configuration names; model.Invalid says what it cannot be built with.
func New(cfg model.Config, image Image) (Model, error) {
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
	return newHRR(cfg, image), nil
}

// shaping are the configuration's fields that decide which tensors a model has; a checkpoint opens whatever the others say.
var shaping = []string{"model", "widths", "fc", "d", "m", "k", "inverse", "symbol_init"}
