package model

import "strings"

// study holds the paper's settings for one of its datasets.
type study struct {
	factors  int                // number of ground-truth factors
	selected map[string]float64 // by model, the selected value of its swept hyperparameter
}

// studies is keyed by the prefix of a dataset's name: a rendering of the same scenes uses the original's settings.
var studies = map[string]study{
	"shapes3d": {6, map[string]float64{"betavae": 10, "betatcvae": 3, "vqvae": 0.001, "qlae": 1}},
	"falcor3d": {7, map[string]float64{"betavae": 10, "betatcvae": 3, "vqvae": 0.01, "qlae": 1}},
	"isaac3d":  {9, map[string]float64{"betavae": 3, "betatcvae": 3, "vqvae": 0.001, "qlae": 1}},
	"mpi3d":    {7, map[string]float64{"betavae": 10, "betatcvae": 3, "vqvae": 1, "qlae": 1}},
}

// studyOf returns the study of a dataset, or of the dataset that it is a selection of. For any other dataset it returns the study of
// Shapes3D, and known is false.
func studyOf(dataset string) (s study, known bool) {
	dataset, _, _ = strings.Cut(dataset, "[")
	for prefix, s := range studies {
		if dataset == prefix || strings.HasPrefix(dataset, prefix+"-") {
			return s, true
		}
	}
	return studies["shapes3d"], false
}

// Studied reports whether the paper gives hyperparameters of its baselines for a dataset.
func Studied(dataset string) bool {
	_, known := studyOf(dataset)
	return known
}

const (
	tabSwept    = "paper, Table “Regularization hyperparameter tuning”"
	tabSelected = "paper, Table “Selected regularization hyperparameters”"
	latentRatio = "paper, “Experiments”: 1.5 latents per factor"
)

// Sweep describes the one hyperparameter that is swept for a model.
type Sweep struct {
	Field    string    // name of the Field
	Values   []float64 // values tried, ascending
	Selected float64   // value selected for the dataset
	Known    bool      // the paper studies this dataset, which fixes the number of latents
	Source   string    // source of Values
	Chosen   string    // source of Selected
}

// Swept returns the hyperparameter that the paper (or the literature, for models that the paper does not study) sweeps for a model, and the
// value selected for a dataset; ok is false for hrr, which is not swept.
func Swept(modelName, dataset string) (s Sweep, ok bool) {
	if r, ok := recipes[modelName]; ok {
		_, known := studyOf(dataset)
		value, chosen := r.choice(dataset)
		return Sweep{Field: r.swept, Values: r.values, Selected: value, Known: known, Source: r.valuesBy, Chosen: chosen}, true
	}
	field, ok := sweptField[modelName]
	if !ok {
		return Sweep{}, false
	}
	values := []float64{0.1, 0.3, 1, 3, 10}
	if field == "weight_decay" {
		values = []float64{0.001, 0.01, 0.1, 1}
	}
	study, known := studyOf(dataset)
	s = Sweep{Field: field, Values: values, Selected: study.selected[modelName], Known: known, Source: tabSwept, Chosen: tabSelected}
	if !known {
		s.Chosen = "ours, after Shapes3D in the " + tabSelected
	}
	return s, true
}

var sweptField = map[string]string{"betavae": "beta_kl", "betatcvae": "beta_tc", "vqvae": "weight_decay", "qlae": "weight_decay"}

// WithFactors sets a baseline's number of latents from a dataset's number of factors, unless the paper fixes it.
func (c Config) WithFactors(factors int) Config {
	if s, baseline := Swept(c.Model, c.Dataset); baseline && !s.Known && factors > 0 {
		c.M = min(latentsOf(c.Model, factors), 64)
	}
	return c
}

func latentsOf(name string, factors int) int {
	if r, ok := recipes[name]; ok {
		return r.slots(factors)
	}
	return Latents(factors)
}

// Latents returns the number of latents of the paper's baselines for a number of factors: ⌈1.5·F⌉.
func Latents(factors int) int { return (3*factors + 1) / 2 }
