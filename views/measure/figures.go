package measure

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"slotscope/model"
	"slotscope/model/measure/figure"
	"slotscope/model/measure/report"
)

// figures draws each figure of the page by name; false if the run lacks the data.
var figures = map[string]func(m Measured) (figure.Figure, bool){
	"infoe": infoEFigure, "nmi": nmiFigure, "importance": importanceFigure,
	"usage": usageFigure, "ranks": ranksFigure, "noise": noiseFigure, "flips": flipsFigure, "degraded": degradedFigure,
	"compose": composeFigure,
	"truth":   truthFigure, "truth-groups": truthGroupsFigure, "noise-energy": noiseEnergyFigure, "noise-accuracy": noiseAccuracyFigure,
	"purity": purityFigure, "leakage": leakageFigure,
	"mean": meanFigure, "variance-latent": latentVarianceFigure, "variance-codebook": codebookVarianceFigure, "perplexity": perplexityFigure,
}

func (m Measured) metrics() *model.Metrics {
	if m.Scores == nil {
		return nil
	}
	return m.Scores.Metrics
}

func rowsNote(n int) string { return fmt.Sprintf("%s images.", figure.Number(float64(n))) }

// slotNames returns the column headings and colours of the slots.
func slotNames(n int) (names []string, colors []int) {
	for i := range n {
		names, colors = append(names, fmt.Sprintf("slot %d", i)), append(colors, i)
	}
	return names, colors
}

func floats(scores []model.Score) []float64 {
	all := make([]float64, len(scores))
	for i, s := range scores {
		all[i] = float64(s)
	}
	return all
}

func matrix(scores [][]model.Score) [][]float64 {
	all := make([][]float64, len(scores))
	for i, row := range scores {
		all[i] = floats(row)
	}
	return all
}

func infoEFigure(m Measured) (figure.Figure, bool) {
	s := m.metrics()
	if s == nil {
		return figure.Figure{}, false
	}
	return figure.BarChart{
		Name: "infoe", Title: "Explicitness of each factor", Width: 480, Height: 170, Groups: plainNames(s.Factors), Y: figure.Axis{Label: "InfoE"},
		Bars: []figure.Bars{
			{Name: "same rows", Value: floats(s.InfoEFactors), Color: 0}, {Name: "held out", Value: floats(s.InfoEHeldOutFactors), Color: 2},
			{Name: "shuffled rows", Value: floats(s.InfoEShuffledFactors), Color: 7},
		},
		Note: rowsNote(s.Rows),
	}.Draw(), true
}

func nmiFigure(m Measured) (figure.Figure, bool) {
	s := m.metrics()
	if s == nil {
		return figure.Figure{}, false
	}
	slots, colors := slotNames(s.Latents)
	return figure.HeatMap{
		Name: "nmi", Title: "Information of each slot about each factor, I(factor; slot) / H(factor)", Corner: "factor",
		Rows: plainNames(s.Factors), Columns: slots, Colors: colors, Value: matrix(s.NMI), Range: [2]float64{0, 1},
		Marked: func(f, i int) bool { return s.Ownership != nil && slices.Contains(s.Ownership.Slots[i].Factors, f) },
		Muted:  func(_, i int) bool { return !active(s, i) },
		Note:   rowsNote(s.Rows) + " Outlined: the factors that the slot is named after. Grey: slots with a single code.",
	}.Draw(), true
}

func active(s *model.Metrics, latent int) bool {
	return latent >= len(s.ActiveLatents) || s.ActiveLatents[latent]
}

// importances returns the importances by slot and factor; for discrete latents, summed over a slot's codes.
func importances(s *model.Metrics) [][]model.Score {
	if s == nil {
		return nil
	}
	if s.Discrete {
		return s.DCI.SlotSum.Importance
	}
	return s.DCI.Slots.Importance
}

func importanceFigure(m Measured) (figure.Figure, bool) {
	s := m.metrics()
	R := importances(s)
	if len(R) == 0 {
		return figure.Figure{}, false
	}
	slots, colors := slotNames(s.Latents)
	value := make([][]float64, len(s.Factors))
	for f := range s.Factors {
		for i := range R {
			v := math.NaN()
			if f < len(R[i]) {
				v = float64(R[i][f])
			}
			value[f] = append(value[f], v)
		}
	}
	return figure.HeatMap{
		Name: "importance", Title: "How much a random forest uses each slot to predict each factor", Corner: "factor",
		Rows: plainNames(s.Factors), Columns: slots, Colors: colors, Value: value, Range: [2]float64{0, 1},
		Note: fmt.Sprintf("Importances of %d trees; they sum to 1 per factor.", s.DCI.Trees),
	}.Draw(), true
}

func (m Measured) usage() *model.Usage {
	if m.Scores == nil {
		return nil
	}
	return m.Scores.Usage
}

func usageFigure(m Measured) (figure.Figure, bool) {
	u := m.usage()
	if u == nil {
		return figure.Figure{}, false
	}
	slots, _ := slotNames(len(u.Counts))
	used := make([]float64, len(u.Used))
	for i, n := range u.Used {
		used[i] = float64(n)
	}
	return figure.BarChart{
		Name: "usage", Title: "Codes used by each slot", Width: 480, Height: 170, Groups: slots, Y: figure.Axis{Label: "entries"},
		Bars: []figure.Bars{{Name: "used at least once", Value: used, Color: 7}, {Name: "effectively used (perplexity)", Value: u.Perplexity, Color: 0}},
		Note: fmt.Sprintf("%s A slot can use up to k = %d.", rowsNote(m.Scores.Images), m.Run.Config.K),
	}.Draw(), true
}

func ranksFigure(m Measured) (figure.Figure, bool) {
	u := m.usage()
	if u == nil {
		return figure.Figure{}, false
	}
	var lines []figure.Line
	for i, counts := range u.Counts {
		sorted := slices.Clone(counts)
		slices.SortFunc(sorted, func(a, b int) int { return b - a })
		l := figure.Line{Name: fmt.Sprintf("slot %d", i), Color: i}
		for rank, n := range sorted {
			if n > 0 {
				l.X, l.Y = append(l.X, float64(rank+1)), append(l.Y, float64(n)/float64(m.Scores.Images))
			}
		}
		lines = append(lines, l)
	}
	return figure.LineChart{
		Name: "ranks", Title: "How evenly codes are used", Lines: lines, Width: 420,
		X: figure.Axis{Label: "codes of the slot, most used first", Log: true}, Y: figure.Axis{Label: "share of images", Log: true},
	}.Draw(), true
}

func (m Measured) noise() *model.Noise {
	if m.Scores == nil || m.Scores.Noise == nil || len(m.Scores.Noise.Curve) == 0 {
		return nil
	}
	return m.Scores.Noise
}

// noiseLines returns a line per place where noise was added, by SNR per component or by energy per image.
func (m Measured) noiseLines(energy bool, value func(model.NoisePoint) model.Interval) (lines []figure.Line) {
	n := m.noise()
	if n == nil || energy && n.Components == 0 {
		return nil
	}
	for i, place := range []struct {
		name   string
		points []model.NoisePoint
	}{{"noise on z", n.Curve}, {"on ẑ, decoded directly", n.BundleRaw}, {"on ẑ, cleaned up", n.BundleClean}} {
		l := figure.Line{Name: place.name, Color: []int{0, 2, 5}[i], Markers: true}
		for _, p := range place.points {
			x, y := p.SNR, value(p)
			if energy {
				x = p.EsN0
			}
			if y.Value.Defined() {
				l.X, l.Y = append(l.X, x), append(l.Y, float64(y.Value))
				l.Low, l.High = append(l.Low, float64(y.Low)), append(l.High, float64(y.High))
			}
		}
		if len(l.X) > 0 {
			lines = append(lines, l)
		}
	}
	return lines
}

const energyAxis = "E_s/N_0 per image, dB"

func psnrUnder(p model.NoisePoint) model.Interval { return p.PSNR }

func noiseFigure(m Measured) (figure.Figure, bool) {
	return m.noiseChart("noise", "Reconstruction under noise", "SNR per component, dB", m.noiseLines(false, psnrUnder))
}

func noiseEnergyFigure(m Measured) (figure.Figure, bool) {
	return m.noiseChart("noise-energy", "Reconstruction under noise, at equal energy", energyAxis, m.noiseLines(true, psnrUnder))
}

func (m Measured) noiseChart(name, title, axis string, lines []figure.Line) (figure.Figure, bool) {
	if len(lines) == 0 {
		return figure.Figure{}, false
	}
	return figure.LineChart{
		Name: name, Title: title, Lines: lines, X: figure.Axis{Label: axis}, Y: figure.Axis{Label: "PSNR against the input, dB"},
		References: []figure.Reference{{At: m.Scores.PSNR, Label: "without noise"}},
		Note:       rowsNote(m.noise().Images) + " Bands are 95% intervals of the mean over images.",
	}.Draw(), true
}

func noiseAccuracyFigure(m Measured) (figure.Figure, bool) {
	lines := m.noiseLines(true, func(p model.NoisePoint) model.Interval {
		v := model.Score(averageOf(p.Accuracy))
		return model.Interval{Value: v, Low: v, High: v}
	})
	if len(lines) == 0 {
		return figure.Figure{}, false
	}
	return figure.LineChart{
		Name: "noise-accuracy", Title: "Accuracy of a probe under noise", Lines: lines, X: figure.Axis{Label: energyAxis},
		Y:          figure.Axis{Label: "accuracy, mean over factors", Range: [2]float64{0, 1}},
		References: []figure.Reference{{At: averageOf(m.noise().Accuracy), Label: "without noise"}}, Note: rowsNote(m.noise().Images),
	}.Draw(), true
}

// averageOf returns the mean of v; NaN if empty.
func averageOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func flipsFigure(m Measured) (figure.Figure, bool) {
	n := m.noise()
	if n == nil || len(n.Curve[0].Flipped) == 0 {
		return figure.Figure{}, false
	}
	slots, colors := slotNames(len(n.Curve[0].Flipped))
	h := figure.HeatMap{
		Name: "flips", Title: "Codes changed by noise", Corner: "SNR of z", Columns: slots, Colors: colors, Range: [2]float64{0, 1}, Format: percent,
		Note: "Share of images whose code in the slot changes under noise.",
	}
	for _, p := range n.Curve {
		h.Rows, h.Value = append(h.Rows, figure.Number(p.SNR)+" dB"), append(h.Value, p.Flipped)
	}
	return h.Draw(), true
}

// degradedFigure splits the sheet of images into its cells; false if the sheet does not match these scores.
func degradedFigure(m Measured) (figure.Figure, bool) {
	n := m.noise()
	if n == nil || m.Noisy == nil || len(n.Shown) == 0 {
		return figure.Figure{}, false
	}
	g := figure.ImageGrid{
		Name: "degraded", Title: "Reconstructions under noise on z", Columns: report.NoiseColumns(*n),
		Note: "SNR of z in dB above each column. Rows: images of the dataset by index.",
	}
	for _, index := range n.Shown {
		g.Rows = append(g.Rows, "#"+strconv.Itoa(index))
	}
	g.Images = figure.Cut(m.Noisy, len(g.Rows), len(g.Columns))
	return g.Draw(), g.Images != nil
}

func percent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

func (m Measured) swap() *model.Swap {
	if m.Scores == nil {
		return nil
	}
	return m.Scores.Swap
}

func purityFigure(m Measured) (figure.Figure, bool) {
	s := m.swap()
	if s == nil {
		return figure.Figure{}, false
	}
	bars := []figure.Bars{{Name: "own factor only", Color: 2}, {Name: "nothing", Color: 7}, {Name: "another factor", Color: 5}}
	for _, slot := range s.Slots {
		for i, v := range []model.Interval{slot.Exact, slot.None, slot.Others} {
			bars[i].Value = append(bars[i].Value, float64(v.Value))
			bars[i].Low, bars[i].High = append(bars[i].Low, float64(v.Low)), append(bars[i].High, float64(v.High))
		}
	}
	slots, _ := slotNames(len(s.Slots))
	return figure.BarChart{
		Name: "purity", Title: "What changes when a slot is swapped", Width: 560, Height: 180, Groups: slots, Bars: bars, Y: figure.Axis{Label: "share of edits", Range: [2]float64{0, 1}},
		Note: fmt.Sprintf("%s edits of %s pairs; lines are 95%% intervals.", figure.Number(float64(s.Edits)), figure.Number(float64(s.Pairs))),
	}.Draw(), true
}

func leakageFigure(m Measured) (figure.Figure, bool) {
	s, metrics := m.swap(), m.metrics()
	if s == nil || metrics == nil {
		return figure.Figure{}, false
	}
	slots, colors := slotNames(len(s.Slots))
	value := make([][]float64, len(metrics.Factors))
	for f := range value {
		for _, slot := range s.Slots {
			v := math.NaN()
			if f < len(slot.Leakage) {
				v = float64(slot.Leakage[f].Value)
			}
			value[f] = append(value[f], v)
		}
	}
	return figure.HeatMap{
		Name: "leakage", Title: "Which factors a swap changes", Corner: "factor", Rows: plainNames(metrics.Factors), Columns: slots, Colors: colors, Value: value, Range: [2]float64{0, 1}, Format: percent,
		Marked: func(f, i int) bool { return s.Slots[i].Factor == f },
		Note:   "Share of edits. Outlined: the slot’s own factor, the only one that should change.",
	}.Draw(), true
}

func (m Measured) heldOut() *model.HeldOut {
	if m.Scores == nil {
		return nil
	}
	return m.Scores.HeldOut
}

// composeFigure compares the scores between 0 and 1 of both parts.
func composeFigure(m Measured) (figure.Figure, bool) {
	h, s := m.heldOut(), m.metrics()
	if h == nil || h.Metrics == nil || s == nil {
		return figure.Figure{}, false
	}
	trained, left := partScores(s), partScores(h.Metrics)
	b := figure.BarChart{
		Name: "compose", Title: "Scores on trained and held-out combinations", Width: 480, Height: 170, Y: figure.Axis{Label: "score", Range: [2]float64{0, 1}},
		Bars: []figure.Bars{{Name: "trained on", Color: 0}, {Name: "held out", Color: 2}},
		Note: fmt.Sprintf("%s and %s images.", figure.Number(float64(s.Rows)), figure.Number(float64(h.Metrics.Rows))),
	}
	for i := range trained {
		b.Groups = append(b.Groups, trained[i].name)
		b.Bars[0].Value, b.Bars[1].Value = append(b.Bars[0].Value, float64(trained[i].value)), append(b.Bars[1].Value, float64(left[i].value))
	}
	return b.Draw(), true
}

// namedScore is a score compared between parts of a dataset.
type namedScore struct {
	name, note string
	value      model.Score
}

// partScores returns the InfoMEC and DCI scores, the latter with importances summed over slots.
func partScores(s *model.Metrics) []namedScore {
	d := s.DCI.Slots
	if s.Discrete {
		d = s.DCI.SlotSum
	}
	return []namedScore{
		{"InfoM", "Modularity.", s.InfoM}, {"InfoE", "Explicitness, refitted on the rows of each part.", s.InfoE}, {"InfoC", "Compactness.", s.InfoC},
		{"D", "DCI disentanglement, importances summed over slots.", d.D}, {"I", "DCI informativeness.", d.I}, {"C", "DCI completeness, importances summed over slots.", d.C},
	}
}

// OverTraining are the series that the paper plots over training, thinned to at most TrainingColumns columns.
var OverTraining = []string{"latent/mean", "latent/var", "codebook/mean", "codebook/var", "perplexity/batch", "perplexity/window"}

const TrainingColumns = 160

func stepAxis() figure.Axis { return figure.Axis{Label: "step"} }

// line returns a series of points; false if the run has none.
func (m Measured) line(name, label string, color int) (figure.Line, bool) {
	l := figure.Line{Name: label, Color: color}
	for _, s := range m.Series[name] {
		l.X, l.Y = append(l.X, float64(s.Step)), append(l.Y, s.Value)
	}
	return l, len(l.X) > 1
}

// overSteps draws series over training with the regularizers' targets; false if there are none.
func (m Measured) overSteps(c figure.LineChart, names, labels []string, targets ...figure.Reference) (figure.Figure, bool) {
	for i, name := range names {
		if l, ok := m.line(name, labels[i], i*5); ok {
			c.Lines = append(c.Lines, l)
		}
	}
	c.X, c.References, c.Height = stepAxis(), targets, 150
	return c.Draw(), len(c.Lines) > 0
}

func (m Measured) hrr() bool { return m.Run.Config.Model == "hrr" }

func meanFigure(m Measured) (figure.Figure, bool) {
	c := figure.LineChart{Name: "mean", Title: "Mean of latents and codebook", Y: figure.Axis{Label: "mean per component"}}
	if !m.hrr() {
		return figure.Figure{}, false
	}
	return m.overSteps(c, []string{"latent/mean", "codebook/mean"}, []string{"latent z", "codebook"}, figure.Reference{At: 0, Label: "HRR: 0"})
}

func latentVarianceFigure(m Measured) (figure.Figure, bool) {
	cfg := m.Run.Config
	if !m.hrr() || cfg.D == 0 {
		return figure.Figure{}, false
	}
	c := figure.LineChart{Name: "variance-latent", Title: "Variance of the latent z", Y: figure.Axis{Label: "variance per component", Log: true}}
	return m.overSteps(c, []string{"latent/var"}, []string{"latent z"}, figure.Reference{At: float64(cfg.M) / float64(cfg.D), Label: "HRR: m/d"})
}

func codebookVarianceFigure(m Measured) (figure.Figure, bool) {
	if !m.hrr() || m.Run.Config.D == 0 {
		return figure.Figure{}, false
	}
	c := figure.LineChart{Name: "variance-codebook", Title: "Variance of the codebook", Y: figure.Axis{Label: "variance per component", Log: true}}
	return m.overSteps(c, []string{"codebook/var"}, []string{"codebook"}, figure.Reference{At: 1 / float64(m.Run.Config.D), Label: "HRR: 1/d"})
}

func perplexityFigure(m Measured) (figure.Figure, bool) {
	c := figure.LineChart{Name: "perplexity", Title: "Effective number of entries in use", Y: figure.Axis{Label: "perplexity"}}
	var targets []figure.Reference
	if k := m.Run.Config.Entries(); k > 0 && k <= 1<<12 {
		targets = append(targets, figure.Reference{At: float64(k), Label: "k"})
	}
	return m.overSteps(c, []string{"perplexity/batch", "perplexity/window"}, []string{"per batch", "per window"}, targets...)
}
