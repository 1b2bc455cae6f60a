package report

// ModelLabel is a model's name as the paper writes it.
func ModelLabel(name string) string {
	if n, ok := modelNames[name]; ok {
		return n.label
	}
	return name
}

// DatasetLabel is a dataset's name as the paper writes it.
func DatasetLabel(name string) string {
	if label, ok := datasetNames[name]; ok {
		return label
	}
	return name
}

var modelNames = map[string]struct{ label, tex string }{
	"betavae":     {"β-VAE", `$\beta$-VAE`},
	"betatcvae":   {"β-TCVAE", `$\beta$-TCVAE`},
	"vqvae":       {"VQ-VAE", "VQ-VAE"},
	"qlae":        {"QLAE", "QLAE"},
	"hrr":         {"HRR", "HRR"},
	"ae":          {"AE", "AE"},
	"bioae":       {"BioAE", "BioAE"},
	"factorvae":   {"FactorVAE", "FactorVAE"},
	"annealedvae": {"AnnealedVAE", "AnnealedVAE"},
	"dipvae1":     {"DIP-VAE-I", "DIP-VAE-I"},
	"dipvae2":     {"DIP-VAE-II", "DIP-VAE-II"},
	"tripod":      {"Tripod", "Tripod"},
}

var datasetNames = map[string]string{
	"shapes3d": "Shapes3D", "shapes3d-synthetic": "Shapes3D, synthetic", "falcor3d": "Falcor3D", "isaac3d": "Isaac3D", "mpi3d-complex": "MPI3D-C",
	"dsprites": "dSprites", "dsprites-synthetic": "dSprites, synthetic",
}

// modelOrder and datasetOrder are the order of rows and columns: the paper's first, then others by name.
var (
	modelOrder   = []string{"ae", "bioae", "betavae", "annealedvae", "betatcvae", "factorvae", "dipvae1", "dipvae2", "vqvae", "qlae", "tripod", "hrr"}
	datasetOrder = []string{"shapes3d", "shapes3d-synthetic", "falcor3d", "isaac3d", "mpi3d-complex"}
)
