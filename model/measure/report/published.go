package report

import "strconv"

// Published is one value from the paper's appendix, “Complete disentanglement results”, shown next to ours.
type Published struct {
	entry
	Images string // "other images" if ours differ from those that the paper's value was measured on; else empty
}

// entry is a mean and the half-width of its 95% interval over five seeds, as printed.
type entry struct {
	mean, half string
	Bold       bool
}

// Mean is the printed mean.
func (p entry) Mean() float64 { return number(p.mean) }

// Half is the printed half-width.
func (p entry) Half() float64 { return number(p.half) }

// String is the value as printed, marked if it is of other images.
func (p Published) String() string {
	if p.Images != "" {
		return p.mean + " ± " + p.half + " (" + p.Images + ")"
	}
	return p.mean + " ± " + p.half
}

func number(printed string) float64 {
	v, _ := strconv.ParseFloat(printed, 64)
	return v
}

// PublishedNotes explain the paper's values.
var PublishedNotes = []string{
	"Published values are from the paper's appendix: five seeds, the paper's model width, 125,000 steps.",
	"The paper's main table labels DCI “(D I C)” but lists the numbers in the order D, C, I, and its VAE rows differ from the appendix. Here the order is D, I, C and the source is the appendix.",
	"The paper specifies neither the classifier of its DCI nor where the HRR model adds noise. We use random forests over one-hot codes, and add noise to the encoder's z before unbinding.",
}

// rendered is the dataset re-rendered in the style of the published dataset original.
const rendered, original = "shapes3d-synthetic", "shapes3d"

// PublishedFor returns the paper's value of a metric; false if there is none. The re-rendered Shapes3D is compared with Shapes3D
// and marked "other images".
func PublishedFor(dataset, model, metric string) (Published, bool) {
	var p Published
	if dataset == rendered {
		dataset, p.Images = original, "other images"
	}
	row, ok := published[dataset][model]
	if !ok {
		return Published{}, false
	}
	for i, m := range columns {
		if m.Key == metric {
			p.entry = row[i]
			return p, true
		}
	}
	return Published{}, false
}

// published is InfoM, InfoE, InfoC, D, I, C and PSNR in dB by dataset and model.
var published = map[string]map[string][7]entry{
	"shapes3d": {
		"betavae":   {{"0.59", "0.04", false}, {"0.8", "0.1", false}, {"0.47", "0.04", false}, {"0.64", "0.09", false}, {"0.997", "0.005", true}, {"0.55", "0.06", true}, {"38.9", "0.3", true}},
		"betatcvae": {{"0.6", "0.1", false}, {"0.8", "0.1", false}, {"0.51", "0.04", false}, {"0.6", "0.2", false}, {"0.98", "0.03", true}, {"0.5", "0.2", true}, {"40.8", "0.8", true}},
		"vqvae":     {{"0.6", "0.1", false}, {"1.000", "0.005", true}, {"0.44", "0.06", false}, {"0.74", "0.07", false}, {"0.98", "0.01", true}, {"0.35", "0.02", false}, {"44.8", "0.3", true}},
		"qlae":      {{"0.8", "0.1", false}, {"0.998", "0.005", true}, {"0.52", "0.07", false}, {"0.76", "0.08", false}, {"0.993", "0.006", true}, {"0.35", "0.04", false}, {"36", "1", false}},
		"hrr":       {{"0.85", "0.05", true}, {"0.999", "0.005", true}, {"0.61", "0.04", true}, {"0.88", "0.02", true}, {"0.995", "0.007", true}, {"0.41", "0.02", true}, {"41", "4", true}},
	},
	"falcor3d": {
		"betavae":   {{"0.64", "0.03", true}, {"0.68", "0.02", false}, {"0.59", "0.07", true}, {"0.40", "0.04", false}, {"0.83", "0.01", false}, {"0.39", "0.04", true}, {"29.8", "0.2", false}},
		"betatcvae": {{"0.6", "0.2", true}, {"0.65", "0.02", false}, {"0.6", "0.2", true}, {"0.3", "0.2", false}, {"0.79", "0.06", false}, {"0.3", "0.2", true}, {"31.0", "0.1", false}},
		"vqvae":     {{"0.50", "0.07", true}, {"0.86", "0.03", true}, {"0.40", "0.03", false}, {"0.64", "0.04", true}, {"0.81", "0.02", false}, {"0.340", "0.007", true}, {"31.4", "0.2", true}},
		"qlae":      {{"0.61", "0.07", true}, {"0.79", "0.01", false}, {"0.46", "0.07", true}, {"0.50", "0.03", false}, {"0.84", "0.02", false}, {"0.28", "0.01", true}, {"28.3", "0.4", false}},
		"hrr":       {{"0.63", "0.05", true}, {"0.81", "0.01", false}, {"0.45", "0.07", true}, {"0.58", "0.05", false}, {"0.85", "0.02", true}, {"0.37", "0.01", true}, {"29.0", "0.6", false}},
	},
	"isaac3d": {
		"betavae":   {{"0.54", "0.06", false}, {"0.56", "0.03", false}, {"0.46", "0.06", false}, {"0.31", "0.05", false}, {"0.84", "0.03", false}, {"0.30", "0.04", false}, {"37.0", "0.4", false}},
		"betatcvae": {{"0.63", "0.06", false}, {"0.62", "0.06", false}, {"0.6", "0.1", true}, {"0.35", "0.04", false}, {"0.87", "0.01", true}, {"0.34", "0.04", false}, {"37.2", "0.4", false}},
		"vqvae":     {{"0.70", "0.05", false}, {"0.86", "0.08", true}, {"0.5", "0.1", false}, {"0.64", "0.09", true}, {"0.91", "0.07", true}, {"0.36", "0.06", true}, {"45", "2", true}},
		"qlae":      {{"0.66", "0.06", false}, {"0.81", "0.05", false}, {"0.49", "0.05", false}, {"0.59", "0.04", false}, {"0.92", "0.03", true}, {"0.31", "0.02", false}, {"38", "4", false}},
		"hrr":       {{"0.73", "0.06", true}, {"0.89", "0.02", true}, {"0.55", "0.05", true}, {"0.680", "0.006", true}, {"0.92", "0.02", true}, {"0.364", "0.005", true}, {"43.4", "0.7", true}},
	},
	"mpi3d-complex": {
		"betavae":   {{"0.37", "0.05", false}, {"0.23", "0.03", false}, {"0.29", "0.09", false}, {"0.08", "0.03", false}, {"0.57", "0.02", false}, {"0.10", "0.03", false}, {"29.5", "0.3", false}},
		"betatcvae": {{"0.41", "0.01", false}, {"0.42", "0.06", false}, {"0.39", "0.06", false}, {"0.27", "0.02", false}, {"0.75", "0.01", false}, {"0.26", "0.02", false}, {"35.9", "0.1", true}},
		"vqvae":     {{"0.5", "0.1", false}, {"0.82", "0.03", true}, {"0.53", "0.05", true}, {"0.49", "0.08", false}, {"0.73", "0.07", false}, {"0.34", "0.02", true}, {"34.9", "0.5", false}},
		"qlae":      {{"0.56", "0.05", true}, {"0.78", "0.04", false}, {"0.48", "0.02", false}, {"0.51", "0.04", false}, {"0.78", "0.03", true}, {"0.29", "0.02", false}, {"34.2", "0.3", false}},
		"hrr":       {{"0.5", "0.1", true}, {"0.83", "0.02", true}, {"0.53", "0.06", true}, {"0.55", "0.04", true}, {"0.769", "0.007", true}, {"0.34", "0.02", true}, {"37", "1", true}},
	},
}
