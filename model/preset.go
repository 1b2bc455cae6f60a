package model

import (
	"cmp"
	"fmt"
	"strings"
)

// EngineNames returns the compute engines by name; "auto" selects one.
func EngineNames() []string { return []string{"auto", "cpu", "xla:cuda", "xla:cpu", "go"} }

// Precisions of matrix products. Parameters, distances, losses and sums are float32 with each of them.
const (
	TF32    = "tf32"    // a GPU rounds operands to a 10-bit mantissa
	Float32 = "float32" // 23 bits
	BF16    = "bf16"    // during training, products of the autoencoder's convolutions and linear layers and of their gradients have 7 bits
	BF16x3  = "bf16x3"  // during training, the CPU engine computes each product as three bf16 products: about 16 bits
)

// Computed returns the precision of training steps on an engine that does not choose it; TF32 applies to GPUs only.
func (c Config) Computed(engine string) string {
	switch {
	case c.Precision == "" && engine == "xla:cuda":
		return TF32
	case c.Precision == "":
		return Float32
	}
	return c.Precision
}

// Exact returns the precision for evaluation: float32 in place of BF16x3, which is for training only.
func (c Config) Exact() string {
	if c.Precision == BF16x3 {
		return Float32
	}
	return c.Precision
}

// PrecisionNames returns the available precisions, the default first.
func PrecisionNames() []string { return []string{TF32, Float32, BF16, BF16x3} }

// ModelNames returns the models: the paper's, then others from the literature.
func ModelNames() []string {
	return []string{"hrr", "vqvae", "qlae", "betavae", "betatcvae", "ae", "bioae", "factorvae", "annealedvae", "dipvae1", "dipvae2", "tripod"}
}

// External is the model of runs trained by another program. They have points but no checkpoints, or are adopted with a program that encodes
// and decodes for them.
const External = "external"

// ModelTitle returns a model's name as written in the literature.
func ModelTitle(name string) string {
	if title, ok := modelTitles[name]; ok {
		return title
	}
	return name
}

var modelTitles = map[string]string{"hrr": "HRR", "vqvae": "VQ-VAE", "qlae": "QLAE", "betavae": "β-VAE", "betatcvae": "β-TCVAE", "ae": "AE", "bioae": "BioAE",
	"factorvae": "FactorVAE", "annealedvae": "AnnealedVAE", "dipvae1": "DIP-VAE-I", "dipvae2": "DIP-VAE-II", "tripod": "Tripod"}

// Discrete reports whether the model's slots hold one of k codes; otherwise each holds a real number.
func (c Config) Discrete() bool { return c.Model == "hrr" || c.Model == "vqvae" || c.OwnCodebooks() }

// OwnCodebooks reports whether every slot has its own k codes; unless the model is External, they stand for numbers.
func (c Config) OwnCodebooks() bool {
	return c.Model == "qlae" || c.Model == "tripod" || c.Model == External && c.K > 0
}

// Grid returns the values of Tripod's codes, [k]: evenly spaced from −1 to 1.
func (c Config) Grid() []float32 {
	out := make([]float32, c.K)
	for j := range out {
		out[j] = float32(2*float64(j)/float64(c.K-1) - 1)
	}
	return out
}

// Variational reports whether the model's encoder outputs a posterior: the mean and log variance of every latent.
func (c Config) Variational() bool { return variational[c.Model] }

var variational = map[string]bool{"betavae": true, "betatcvae": true, "factorvae": true, "annealedvae": true, "dipvae1": true, "dipvae2": true}

// Entries returns the number of codebook entries: k, or m·k if every slot has its own codebook; 0 without a codebook.
func (c Config) Entries() int {
	if c.OwnCodebooks() {
		return c.M * c.K
	}
	return c.K
}

// Entry returns the index, from 0, of the codebook entry of a slot's code.
func (c Config) Entry(slot, code int) int {
	if c.OwnCodebooks() {
		return slot*c.K + code
	}
	return code
}

// PresetNames returns the presets, smallest network first.
func PresetNames() []string { return []string{"tiny", "small", "paper"} }

type preset struct {
	about       string
	widths      [4]int
	d, k, fc    int
	steps       int
	batch       int
	lr          float64
	schedule    string
	beta        float64
	sample, ckp int
}

var presets = map[string]preset{
	"paper": {"The paper's network: 15.4 M parameters in encoder and decoder; the paper trained it for slightly over an hour on an L40S GPU.",
		[4]int{64, 128, 256, 512}, 512, 512, 512, 125_000, 128, 3e-4, "", 0.6, 500, 1000},
	"small": {"A quarter of the width: half an hour on two cores.",
		[4]int{16, 32, 64, 128}, 256, 256, 128, 25_000, 32, 1e-3, WSD, 0.1, 200, 500},
	"tiny": {"An eighth of the width: minutes on two cores.",
		[4]int{8, 16, 32, 64}, 128, 128, 64, 20_000, 32, 1e-3, WSD, 0.1, 200, 500},
}

// PresetAbout returns a one-sentence description of a preset, for forms.
func PresetAbout(name string) string { return presets[name].about }

// Default returns the configuration of a model at a preset's width on a dataset; Field.SourceIn gives the source of each number.
// Steps, batch, learning rate, schedule and commitment cost of small and tiny are ours, found by measurement: with the
// paper's cost of 0.6 the narrow networks use only about ten codebook entries, and at a constant learning rate PSNR jumps
// between 25 and 31 dB from one evaluation to the next, whereas a decay over the last fifth of the steps reaches 34.6 dB.
// Hyperparameters that the model does not use are zero.
func Default(name, presetName, dataset string) (Config, error) {
	p, ok := presets[presetName]
	if !ok {
		return Config{}, Invalid{"preset": fmt.Sprintf("%q is not one of tiny, small, paper", presetName)}
	}
	c := Config{
		Dataset: dataset, Model: name, Preset: presetName, Engine: "auto", Steps: p.steps, Batch: p.batch,
		Widths: p.widths, FC: p.fc, LambdaRec: 1,
		LR: p.lr, LRSchedule: p.schedule, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Clip: 0.5,
		CheckpointEvery: p.ckp, SampleEvery: p.sample, EvalEvery: 5 * p.sample, EvalImages: 10_000,
	}
	c.Evaluate = Full
	if r, ok := recipes[name]; ok {
		r.fill(&c)
		return c, nil
	}
	if c.baseline() {
		if paper := presets["paper"].lr; c.WeightDecay > 0 && c.LR != paper {
			c.DecayLR = paper // keeps the decay per step that the paper selected
		}
		return c, nil
	}
	c.D, c.M, c.K = p.d, 9, p.k
	c.LambdaVQ, c.LambdaCommit, c.LambdaCB = 0.25, p.beta, 1e-3
	c.CodebookLR, c.Inverse, c.SymbolInit = 2, "involution", "gaussian"
	return c, nil
}

// baseline sets the paper's baseline hyperparameters apart from the shared network, and reports whether the model is a baseline.
func (c *Config) baseline() bool {
	swept, ok := Swept(c.Model, c.Dataset)
	if !ok {
		return false
	}
	known, _ := studyOf(c.Dataset)
	c.M = Latents(known.factors)
	switch c.Model {
	case "vqvae":
		c.K, c.D, c.LambdaVQ, c.LambdaCommit, c.CodebookLR = 512, 64, 1, 0.25, 1
		c.CodebookInit = UnitNorm
	case "qlae":
		c.K, c.LambdaVQ, c.LambdaCommit, c.CodebookLR = 10, 0.01, 0.01, 1
	}
	switch swept.Field {
	case "beta_kl":
		c.BetaKL = swept.Selected
	case "beta_tc":
		c.BetaTC = swept.Selected
	case "weight_decay":
		c.WeightDecay = swept.Selected
	}
	return true
}

// SourceIn returns the source of the field's default for c's model, preset and dataset: the field's source for the model, or "ours"
// with the published value if that differs.
func (f Field) SourceIn(c Config) string {
	source := f.sourceOf(c)
	r, published := recipes[c.Model]
	published = published && source == r.source
	paper, err := Default(c.Model, "paper", c.Dataset)
	if err != nil {
		return source
	}
	here, err := Default(c.Model, c.Preset, c.Dataset)
	if err != nil || !strings.HasPrefix(source, "paper") && !published || f.Get(here) == f.Get(paper) {
		return source
	}
	if published {
		return fmt.Sprintf("ours for %s; %s in %s", c.Preset, f.Get(paper), source)
	}
	return fmt.Sprintf("ours for %s, by measurement; %s in the %s", c.Preset, f.Get(paper), source)
}

// sourceOf returns the field's source for the model and dataset of c.
func (f Field) sourceOf(c Config) string {
	swept, baseline := Swept(c.Model, c.Dataset)
	if r, ok := recipes[c.Model]; ok {
		return cmp.Or(r.sourceOf(f, c.Dataset), f.Source)
	}
	switch {
	case !baseline:
		return f.Source
	case f.Name == swept.Field:
		return swept.Chosen
	case f.Name == "m":
		return latentRatio
	case f.baselines != "":
		return f.baselines
	}
	return f.Source
}
