package sweep

import (
	"slices"
	"strconv"

	"slotscope/model"
)

// PaperDatasets are the datasets of the paper's tables.
func PaperDatasets() []string { return []string{"shapes3d", "falcor3d", "isaac3d", "mpi3d-complex"} }

// Names of the parts of the paper's protocol.
const (
	MainPart      = "Main results"
	GridPart      = "Latent dimension and codebook size"
	AblationsPart = "Ablations"
)

// Scale says how much of the paper's protocol to do.
type Scale struct {
	Preset   string
	Steps    int      // 0 for the preset's
	Seeds    int      // of each result; 0 for the paper's five
	Datasets []string // empty for the paper's
	Models   []string // empty for all
	Parts    []string // "main", "grid" and "ablations"; empty for all
}

// selectionSeeds begin where results' seeds never come: the paper chooses over two seeds, then runs five anew.
const selectionSeeds = 1000

// Paper is the paper's protocol: each baseline's hyperparameter chosen over two seeds by InfoM, then every model over five
// seeds; HRR over three latent dimensions and three codebook sizes; HRR with each of its design choices undone.
func Paper(s Scale) (Plan, error) {
	preset, err := model.Default("hrr", s.Preset, "")
	if err != nil {
		return Plan{}, err
	}
	if s.Seeds == 0 {
		s.Seeds = 5
	}
	if s.Seeds < 0 || s.Seeds >= selectionSeeds {
		return Plan{}, model.Invalid{"seeds": "the number of seeds lies between 1 and " + strconv.Itoa(selectionSeeds-1)}
	}
	if len(s.Datasets) == 0 {
		s.Datasets = PaperDatasets()
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
		default:
			return Plan{}, model.Invalid{"parts": strconv.Quote(name) + " is not one of main, grid, ablations"}
		}
	}
	return p, p.Validate()
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

// fractions of a width: a quarter, a half, the whole.
func fractions(n int) []string {
	return []string{strconv.Itoa(n / 4), strconv.Itoa(n / 2), strconv.Itoa(n)}
}

// paperSelect is the table of hyperparameters that the paper tunes; nil where no model of the scale has one.
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

// ablations are the paper's negative results, in its order.
func ablations() []Variant {
	return []Variant{
		{map[string]string{"symbol_init": "unit"}},
		{map[string]string{"static_codebook": "true"}},
		{map[string]string{"learn_symbols": "true"}},
		{map[string]string{"no_denoiser": "true"}},
		{map[string]string{"free_codebook": "true"}},
	}
}

// Available keeps the datasets that can be opened. Where Shapes3D cannot, its scenes rendered anew take its place.
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
