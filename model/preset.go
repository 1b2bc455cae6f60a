package model

import (
	"fmt"
	"strings"
)

// Engines by name; "auto" chooses.
func EngineNames() []string { return []string{"auto", "cpu", "xla:cuda", "xla:cpu", "go"} }

// ModelNames are the paper's models.
func ModelNames() []string { return []string{"hrr", "vqvae", "qlae", "betavae", "betatcvae"} }

// Discrete says whether the model's slots take codes, k to choose from; else each holds a real number.
func (c Config) Discrete() bool { return c.Model == "hrr" || c.Model == "vqvae" || c.Model == "qlae" }

// PresetNames are the widths of network on offer, smallest first.
func PresetNames() []string { return []string{"tiny", "small", "paper"} }

type preset struct {
	about       string
	widths      [4]int
	d, k, fc    int
	steps       int
	batch       int
	lr, beta    float64
	sample, ckp int
}

var presets = map[string]preset{
	"paper": {"The paper's network: 15.4 M parameters in encoder and decoder; an hour on a GPU.",
		[4]int{64, 128, 256, 512}, 512, 512, 512, 125_000, 128, 3e-4, 0.6, 500, 1000},
	"small": {"A quarter of the width: an evening on two cores.",
		[4]int{16, 32, 64, 128}, 256, 256, 128, 20_000, 32, 1e-3, 0.1, 200, 500},
	"tiny": {"An eighth of the width: minutes on two cores.",
		[4]int{8, 16, 32, 64}, 128, 128, 64, 20_000, 32, 1e-3, 0.1, 200, 500},
}

// PresetAbout is one sentence on a preset, for forms.
func PresetAbout(name string) string { return presets[name].about }

// Default is the configuration of a model at a preset's width on a dataset; the source of each number is its Field's.
// Steps, batch, learning rate and commitment cost of small and tiny are ours, found by measurement: with the paper's cost of
// 0.6 the narrow networks settle on about ten of their codebook's entries.
func Default(name, presetName, dataset string) (Config, error) {
	p, ok := presets[presetName]
	if !ok {
		return Config{}, Invalid{"preset": fmt.Sprintf("%q is not one of tiny, small, paper", presetName)}
	}
	return Config{
		Dataset: dataset, Model: name, Preset: presetName, Engine: "auto", Steps: p.steps, Batch: p.batch,
		Widths: p.widths, FC: p.fc, D: p.d, M: 9, K: p.k,
		LambdaRec: 1, LambdaVQ: 0.25, LambdaCommit: p.beta, LambdaCB: 1e-3,
		LR: p.lr, CodebookLR: 2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Clip: 0.5,
		Inverse: "involution", SymbolInit: "gaussian",
		CheckpointEvery: p.ckp, SampleEvery: p.sample, EvalEvery: 4 * p.sample, EvalImages: 10_000,
	}, nil
}

// SourceIn is where the default at a preset's width comes from: the field's source, or us where the paper has another number.
func (f Field) SourceIn(presetName string) string {
	paper, err := Default("hrr", "paper", "")
	if err != nil {
		return f.Source
	}
	here, err := Default("hrr", presetName, "")
	if err != nil || !strings.HasPrefix(f.Source, "paper") || f.Get(here) == f.Get(paper) {
		return f.Source
	}
	return fmt.Sprintf("ours for %s, by measurement; %s in the %s", presetName, f.Get(paper), f.Source)
}
