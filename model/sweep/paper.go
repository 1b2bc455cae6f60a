package sweep

import (
	"slices"
	"strconv"

	"slotscope/model"
)

// PaperDatasets returns the datasets of the paper's tables.
func PaperDatasets() []string { return []string{"shapes3d", "falcor3d", "isaac3d", "mpi3d-complex"} }

// Names of the parts of the paper's protocol.
const (
	MainPart      = "Main results"
	GridPart      = "Latent dimension and codebook size"
	AblationsPart = "Ablations"
	RemediesPart  = "Against collapse"
	RatioPart     = "Slots and dimension"
	FieldPart     = "Models of the field"
	SplitsPart    = "Splits"
	TunedPart     = "Models of the field, tuned"
)

// Scale selects how much of a protocol to run.
type Scale struct {
	Preset   string
	Steps    int      // 0 for the preset's
	Seeds    int      // per result; 0 for the paper's five
	Datasets []string // empty for the protocol's
	Models   []string // empty for all
	Parts    []string // for Paper: "main", "grid", "ablations", "ratio", by default all but the last; for Field: "models", "tuned", "ratio", "splits", by default "models"
}

// selectionSeeds is the first seed of selection runs, above all seeds of results: the paper selects with two seeds, then runs five others.
const selectionSeeds = 1000

// Paper returns the paper's protocol: each baseline's hyperparameter selected by InfoM over two seeds, then every model over five seeds;
// HRR over three latent dimensions and three codebook sizes; HRR with each design choice undone.
func Paper(s Scale) (Plan, error) {
	preset, err := s.settle(PaperDatasets())
	if err != nil {
		return Plan{}, err
	}
	if len(s.Models) == 0 {
		s.Models = []string{"betavae", "betatcvae", "vqvae", "qlae", "hrr"}
	}
	p := Plan{Name: "paper", Preset: s.Preset, Steps: s.Steps}
	seeds := upTo(s.Seeds)
	for _, name := range partNames(s.Parts) {
		switch name {
		case "main":
			p.Parts = append(p.Parts, Part{Name: MainPart, About: "Every model with its hyperparameter as chosen.", Models: s.Models, Datasets: s.Datasets, Seeds: seeds, Select: paperSelect(s)})
		case "grid":
			p.Parts = append(p.Parts, Part{Name: GridPart, About: "HRR with less of either; the paper does not print its nine combinations, so these are ours.", Models: []string{"hrr"}, Datasets: s.Datasets, Seeds: seeds,
				Vary: []Axis{{Field: "d", Values: fractions(preset.D)}, {Field: "k", Values: fractions(preset.K)}}})
		case "ablations":
			p.Parts = append(p.Parts, Part{Name: AblationsPart, About: "HRR with one design choice undone at a time, as in the paper's negative results.", Models: []string{"hrr"}, Datasets: s.Datasets, Seeds: seeds, Variants: ablations()})
			p.Parts = append(p.Parts, Part{Name: RemediesPart, About: "VQ-VAE with one remedy of the literature at a time.", Models: []string{"vqvae"}, Datasets: s.Datasets, Seeds: seeds, Variants: remedies()})
		case "ratio":
			p.Parts = append(p.Parts, ratio(s, preset, seeds))
		default:
			return Plan{}, model.Invalid{"parts": strconv.Quote(name) + " is not one of main, grid, ablations, ratio"}
		}
	}
	return p, p.Validate()
}

// Field returns one protocol for all models: each with its published hyperparameters over five seeds; on request each with its
// hyperparameter selected as the paper does for its baselines, HRR over numbers of slots and dimensions, and all models on splits.
func Field(s Scale) (Plan, error) {
	preset, err := s.settle([]string{"shapes3d"})
	if err != nil {
		return Plan{}, err
	}
	if len(s.Models) == 0 {
		s.Models = model.ModelNames()
	}
	if len(s.Parts) == 0 {
		s.Parts = []string{"models"}
	}
	p, seeds := Plan{Name: "field", Preset: s.Preset, Steps: s.Steps}, upTo(s.Seeds)
	for _, name := range s.Parts {
		switch name {
		case "models":
			p.Parts = append(p.Parts, Part{Name: FieldPart, About: "Every model with the hyperparameters that its source selects, or ours where it selects none.", Models: s.Models, Datasets: s.Datasets, Seeds: seeds})
		case "tuned":
			p.Parts = append(p.Parts, Part{Name: TunedPart, About: "Every model with the hyperparameter of the highest InfoM over two seeds.", Models: s.Models, Datasets: s.Datasets, Seeds: seeds, Select: paperSelect(s)})
		case "ratio":
			p.Parts = append(p.Parts, ratio(s, preset, seeds))
		case "splits":
			p.Parts = append(p.Parts, Part{Name: SplitsPart, About: "Every model trained on the training part of four splits, and measured on what each leaves out.", Models: s.Models, Datasets: splits(s.Datasets), Seeds: seeds})
		default:
			return Plan{}, model.Invalid{"parts": strconv.Quote(name) + " is not one of models, tuned, ratio, splits"}
		}
	}
	return p, p.Validate()
}

// splits returns the training parts of every split of the datasets.
func splits(datasets []string) (all []string) {
	for _, d := range datasets {
		for _, kind := range []string{"random", "composition", "interpolation", "extrapolation"} {
			all = append(all, d+"[split="+kind+"]")
		}
	}
	return all
}

// settle fills in defaults of a scale, and returns HRR's configuration at its preset.
func (s *Scale) settle(datasets []string) (preset model.Config, err error) {
	if preset, err = model.Default("hrr", s.Preset, ""); err != nil {
		return preset, err
	}
	if s.Seeds == 0 {
		s.Seeds = 5
	}
	if s.Seeds < 0 || s.Seeds >= selectionSeeds {
		return preset, model.Invalid{"seeds": "the number of seeds must be 1 to " + strconv.Itoa(selectionSeeds-1)}
	}
	if len(s.Datasets) == 0 {
		s.Datasets = datasets
	}
	return preset, nil
}

// ratio returns a part with HRR over every pair of slot number and dimension.
func ratio(s Scale, preset model.Config, seeds []int64) Part {
	return Part{Name: RatioPart, About: "HRR over numbers of slots m and dimensions d; retrieval noise is about m/d per component.", Models: []string{"hrr"}, Datasets: s.Datasets, Seeds: seeds,
		Vary: []Axis{{Field: "m", Values: []string{"4", "6", "9", "14", "20"}}, {Field: "d", Values: fractions(preset.D)}}}
}

func partNames(names []string) []string {
	if len(names) == 0 {
		return []string{"main", "grid", "ablations"}
	}
	return names
}

func upTo(n int) []int64 {
	seeds := make([]int64, n)
	for i := range seeds {
		seeds[i] = int64(i)
	}
	return seeds
}

// fractions returns a quarter, a half and the whole of a width.
func fractions(n int) []string {
	return []string{strconv.Itoa(n / 4), strconv.Itoa(n / 2), strconv.Itoa(n)}
}

// paperSelect returns the selection of tuned hyperparameters; nil if no model of the scale has one.
func paperSelect(s Scale) *Select {
	out := &Select{Seeds: []int64{selectionSeeds, selectionSeeds + 1}}
	for _, name := range s.Models {
		swept, ok := model.Swept(name, s.Datasets[0])
		if !ok {
			continue
		}
		a := Axis{Field: swept.Field, Models: []string{name}}
		for _, v := range swept.Values {
			a.Values = append(a.Values, strconv.FormatFloat(v, 'g', -1, 64))
		}
		out.Axes = append(out.Axes, a)
	}
	if len(out.Axes) == 0 {
		return nil
	}
	return out
}

// ablations returns the paper's negative results, in its order, and our controls: remedies against collapse, other bindings, and additional
// terms of the objective.
func ablations() []Variant {
	return []Variant{
		{map[string]string{"symbol_init": "unit"}},
		{map[string]string{"static_codebook": "true"}},
		{map[string]string{"learn_symbols": "true"}},
		{map[string]string{"no_denoiser": "true"}},
		{map[string]string{"free_codebook": "true"}},
		{map[string]string{"free_codebook": "true", "ema_decay": "0.99"}},
		{map[string]string{"free_codebook": "true", "reset_below": "0.1"}},
		{map[string]string{"binding": "random"}},
		{map[string]string{"binding": "permutation"}},
		{map[string]string{"binding": "concat"}},
		{map[string]string{"lambda_tie": "0.01"}},
		{map[string]string{"lambda_coherence": "0.01"}},
		{map[string]string{"lambda_orth": "0.01"}},
		{map[string]string{"vq_gradient": "rotation"}},
	}
}

// remedies returns the literature's remedies for a VQ-VAE that uses few codebook entries.
func remedies() []Variant {
	return []Variant{
		{map[string]string{"ema_decay": "0.99"}},
		{map[string]string{"reset_below": "0.1"}},
		{map[string]string{"vq_gradient": "rotation"}},
		{map[string]string{"lambda_orth": "0.01"}},
	}
}

// Available returns the datasets that can be opened and those that cannot. If Shapes3D is missing, shapes3d-synthetic replaces it.
func Available(datasets []string, here func(name string) bool) (kept, missing []string) {
	for _, d := range datasets {
		switch {
		case here(d):
			kept = append(kept, d)
		case d == "shapes3d" && here("shapes3d-synthetic") && !slices.Contains(datasets, "shapes3d-synthetic"):
			kept = append(kept, "shapes3d-synthetic")
			missing = append(missing, d)
		default:
			missing = append(missing, d)
		}
	}
	return kept, missing
}
