package model

import (
	"slices"
	"strings"
)

// recipe holds the published settings of a model that the paper does not study: its objective, its training and the hyperparameter that is
// tuned. All models share the paper's networks. Published training settings apply to the preset "paper"; small and tiny train like every
// other model of their width.
type recipe struct {
	source string // source of everything below, unless noted

	perFactor int // latents per ground-truth factor, or
	latents   int // latents regardless of factors

	steps, batch int
	lr           float64
	train        func(*Config) // sets clipping and weight decay, at every preset
	objective    func(*Config) // sets the weights that are the same on every dataset

	swept    string             // tuned hyperparameter
	values   []float64          // values tried
	valuesBy string             // source of values
	selected map[string]float64 // selected value by dataset prefix
	chosen   string             // source of selected
	fallback float64            // value for any other dataset
	guessed  string             // source of fallback

	narrow map[string]float64 // upper limits at small and tiny: with more, the narrow networks do not learn within their steps

	more map[string]map[string]float64 // further hyperparameters, by name, then by dataset prefix
}

const (
	lqCode     = "Hsu et al. 2023, latent_quantization"
	tripodCode = "Hsu et al. 2024, tripod"
	studyCode  = "Locatello et al. 2019, disentanglement_lib"
)

// recipes holds the recipe of each model.
var recipes = map[string]recipe{
	"ae": {
		source: lqCode, perFactor: 2, steps: 200_000, batch: 128, lr: 1e-3, train: clipNumbers,
		swept: "weight_decay", values: []float64{1e-4, 1e-3, 1e-2, 1e-1}, valuesBy: ours,
		selected: map[string]float64{"shapes3d": 1e-3, "mpi3d": 1e-3}, chosen: lqCode, fallback: 1e-3, guessed: "ours, after Shapes3D in " + lqCode,
	},
	"bioae": {
		source: lqCode, perFactor: 2, steps: 200_000, batch: 128, lr: 1e-3, train: clipNumbers,
		objective: func(c *Config) { c.LambdaNonneg, c.WeightDecay = 1, 1e-4 },
		swept:     "lambda_activity", values: []float64{1e-3, 1e-2, 1e-1, 1}, valuesBy: ours,
		selected: map[string]float64{"shapes3d": 0.01, "mpi3d": 0.01, "falcor3d": 0.01, "isaac3d": 0.1}, chosen: lqCode, fallback: 0.1, guessed: "default of " + lqCode,
	},
	"tripod": {
		source: tripodCode, perFactor: 2, steps: 250_000, batch: 64, lr: 2e-4, train: func(c *Config) {
			clipNumbers(c)
			c.Precision = Float32
		},
		objective: func(c *Config) { c.K, c.Probes, c.EpsilonNHP, c.LambdaKLM = 12, 2, 0.1, 1e-4 },
		swept:     "lambda_nhp", values: []float64{1e-8, 1e-6, 1e-4, 1e-2}, valuesBy: ours,
		selected: map[string]float64{"shapes3d": 1e-2, "mpi3d": 1e-4, "falcor3d": 1e-2, "isaac3d": 1e-8}, chosen: tripodCode, fallback: 1e-2,
		guessed: "ours, after Shapes3D in " + tripodCode, narrow: map[string]float64{"lambda_nhp": 1e-4},
		more: map[string]map[string]float64{"lambda_klm": {"shapes3d": 1e-4, "mpi3d": 1e-8, "falcor3d": 1e-10, "isaac3d": 1e-4}},
	},
	"factorvae": vaeRecipe("gamma_tc", []float64{10, 20, 30, 40, 50, 100}, 30, 128, func(c *Config) { // 64 for each half
		c.BetaKL, c.DiscWidth, c.DiscLayers, c.DiscLR, c.DiscBeta1, c.DiscBeta2 = 1, 1000, 6, 1, 0.5, 0.9
	}),
	"annealedvae": vaeRecipe("capacity", []float64{5, 10, 25, 50, 75, 100}, 25, 64, func(c *Config) {
		c.GammaKL, c.AnnealSteps = 1000, max(1, c.Steps/3)
	}),
	"dipvae1": vaeRecipe("lambda_od", []float64{1, 2, 5, 10, 20, 50}, 10, 64, func(c *Config) { c.BetaKL, c.LambdaD = 1, 100 }),
	"dipvae2": vaeRecipe("lambda_od", []float64{1, 2, 5, 10, 20, 50}, 10, 64, func(c *Config) { c.BetaKL, c.LambdaD = 1, 10 }),
}

// vaeRecipe returns the recipe of a model in Locatello et al.'s study, which tunes one hyperparameter on every dataset and selects none.
func vaeRecipe(swept string, values []float64, fallback float64, batch int, objective func(*Config)) recipe {
	return recipe{
		source: studyCode, latents: 10, steps: 300_000, batch: batch, lr: 1e-4, train: func(c *Config) { c.Clip = 0 }, objective: objective,
		swept: swept, values: values, valuesBy: studyCode, fallback: fallback, guessed: "ours, within the range swept by " + studyCode,
	}
}

// clipNumbers clips each gradient component to ±1, as optax.clip(1), and limits weight decay to kernels and matrices.
func clipNumbers(c *Config) { c.Clip, c.ClipBy, c.NoBiasDecay = 1, "value", true }

// recipeFields lists the fields that a recipe sets besides those of its objective and the tuned one.
var recipeFields = []string{"steps", "batch", "lr", "clip", "clip_by", "no_bias_decay", "weight_decay", "beta1", "beta2", "epsilon"}

// fill sets the recipe's defaults for the dataset of c; steps, batch and learning rate change only at the preset "paper".
func (r recipe) fill(c *Config) {
	if c.Preset == "paper" {
		c.Steps, c.Batch, c.LR = r.steps, r.batch, r.lr
	}
	known, _ := studyOf(c.Dataset)
	c.M = r.slots(known.factors)
	if r.train != nil {
		r.train(c)
	}
	if r.objective != nil {
		r.objective(c)
	}
	value, _ := r.choice(c.Dataset)
	r.set(c, r.swept, value)
	for name, by := range r.more {
		if value, ok := ofDataset(by, c.Dataset); ok {
			r.set(c, name, value)
		}
	}
	for name, most := range r.narrow {
		if f, _ := FieldByName(name); c.Preset != "paper" {
			r.set(c, name, min(most, *f.at(c).(*float64)))
		}
	}
}

// set assigns a number; TestRecipes checks that the field exists and is a float64.
func (r recipe) set(c *Config, name string, value float64) {
	f, _ := FieldByName(name)
	*f.at(c).(*float64) = value
}

// slots returns the number of latents for a number of factors.
func (r recipe) slots(factors int) int {
	if r.latents > 0 {
		return r.latents
	}
	return r.perFactor * factors
}

// choice returns the value of the tuned hyperparameter on a dataset, and its source.
func (r recipe) choice(dataset string) (value float64, source string) {
	if value, ok := ofDataset(r.selected, dataset); ok {
		return value, r.chosen
	}
	return r.fallback, r.guessed
}

// ofDataset looks up a dataset in a table by prefix; a selection or rendering of a dataset has that dataset's value.
func ofDataset(by map[string]float64, dataset string) (value float64, ok bool) {
	dataset, _, _ = strings.Cut(dataset, "[")
	for prefix, v := range by {
		if dataset == prefix || strings.HasPrefix(dataset, prefix+"-") {
			return v, true
		}
	}
	return 0, false
}

// sourceOf returns the source of the recipe's default for a field; empty if the field's own source applies.
func (r recipe) sourceOf(f Field, dataset string) string {
	if by, ok := r.more[f.Name]; ok {
		if _, ok := ofDataset(by, dataset); ok {
			return r.source
		}
		return r.guessed
	}
	switch {
	case f.Name == r.swept:
		_, source := r.choice(dataset)
		return source
	case f.Name == "layers_nhp":
		return ""
	case f.Name == "m", f.Name == "k":
		return r.source
	case slices.Contains(recipeFields, f.Name), f.Group == "objective" && len(f.Models) > 0:
		return r.source
	}
	return ""
}
