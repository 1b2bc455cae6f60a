package model

import "fmt"

// Engines by name; "auto" chooses.
func EngineNames() []string { return []string{"auto", "cpu", "xla:cuda", "xla:cpu", "go"} }

// ModelNames are the paper's models.
func ModelNames() []string { return []string{"hrr", "vqvae", "qlae", "betavae", "betatcvae"} }

// PresetNames are the widths of network on offer, smallest first.
func PresetNames() []string { return []string{"tiny", "small", "paper"} }

type preset struct {
	about       string
	widths      [4]int
	d, k, fc    int
	steps       int
	batch       int
	lr          float64
	sample, ckp int
}

var presets = map[string]preset{
	"paper": {"The paper's network: 15.4 M parameters in encoder and decoder; an hour on a GPU.",
		[4]int{64, 128, 256, 512}, 512, 512, 512, 125_000, 128, 3e-4, 500, 1000},
	"small": {"A quarter of the width: an evening on two cores.",
		[4]int{16, 32, 64, 128}, 256, 256, 128, 20_000, 64, 1e-3, 200, 500},
	"tiny": {"An eighth of the width: minutes on two cores.",
		[4]int{8, 16, 32, 64}, 128, 128, 64, 10_000, 64, 2e-3, 100, 250},
}

// PresetAbout is one sentence on a preset, for forms.
func PresetAbout(name string) string { return presets[name].about }

// Default is the configuration of a model at a preset's width on a dataset; the source of each number is its Field's.
// Steps, batch and learning rate of small and tiny are ours, found by measurement.
func Default(name, presetName, dataset string) (Config, error) {
	p, ok := presets[presetName]
	if !ok {
		return Config{}, Invalid{"preset": fmt.Sprintf("%q is not one of tiny, small, paper", presetName)}
	}
	return Config{
		Dataset: dataset, Model: name, Preset: presetName, Engine: "auto", Steps: p.steps, Batch: p.batch,
		Widths: p.widths, FC: p.fc, D: p.d, M: 9, K: p.k,
		LambdaRec: 1, LambdaVQ: 0.25, LambdaCommit: 0.6, LambdaCB: 1e-3,
		LR: p.lr, CodebookLR: 2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Clip: 0.5,
		Inverse: "involution", SymbolInit: "gaussian",
		CheckpointEvery: p.ckp, SampleEvery: p.sample, EvalEvery: 4 * p.sample, EvalImages: 10_000,
	}, nil
}
