package model

import "strings"

// study is what the paper settled for one of its datasets.
type study struct {
	factors  int                // number of ground-truth factors
	selected map[string]float64 // by model, the value of the hyperparameter that it swept
}

// studies are by the prefix of a dataset's name: a rendering of the same scenes is studied as the original.
var studies = map[string]study{
	"shapes3d": {6, map[string]float64{"betavae": 10, "betatcvae": 3, "vqvae": 0.001, "qlae": 1}},
	"falcor3d": {7, map[string]float64{"betavae": 10, "betatcvae": 3, "vqvae": 0.01, "qlae": 1}},
	"isaac3d":  {9, map[string]float64{"betavae": 3, "betatcvae": 3, "vqvae": 0.001, "qlae": 1}},
	"mpi3d":    {7, map[string]float64{"betavae": 10, "betatcvae": 3, "vqvae": 1, "qlae": 1}},
}

// studyOf finds a dataset's, or that of the dataset which it is a part of; of any other dataset we take what was settled for Shapes3D, and known is false.
func studyOf(dataset string) (s study, known bool) {
	dataset, _, _ = strings.Cut(dataset, "[")
	for prefix, s := range studies {
		if dataset == prefix || strings.HasPrefix(dataset, prefix+"-") {
			return s, true
		}
	}
	return studies["shapes3d"], false
}

// Studied says whether the paper settles the hyperparameters of its baselines on a dataset.
func Studied(dataset string) bool {
	_, known := studyOf(dataset)
	return known
}

const (
	tabSwept    = "paper, Table “Regularization hyperparameter tuning”"
	tabSelected = "paper, Table “Selected regularization hyperparameters”"
	latentRatio = "paper, “Experiments”: 1.5 latents for every factor"
)

// Sweep is the one hyperparameter that is varied for a baseline.
type Sweep struct {
	Field    string    // name of the Field
	Values   []float64 // what was tried, ascending
	Selected float64   // what was chosen for the dataset
	Known    bool      // the paper studies this dataset, so that the number of latents is settled
	Source   string    // where Values come from
	Chosen   string    // where Selected comes from
}

// Swept is what the paper, or for models that it does not study the literature, sweeps for a model, and what is selected for a dataset; ok is
// false for hrr, which is not swept.
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

// WithFactors gives a baseline its latents by a dataset's number of factors, where the paper does not settle them.
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

// Latents is how many latents a baseline of the paper has for a number of factors: ⌈1.5·F⌉.
func Latents(factors int) int { return (3*factors + 1) / 2 }
