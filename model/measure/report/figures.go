package report

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"regexp"
	"slices"
	"strings"

	"slotscope/model/measure/figure"
)

// Sizes of figures, in pixels.
const (
	chartWidth   = 520
	chartHeight  = 240
	chartColumns = 250 // number of spans a curve is thinned to
)

// charted are the series that a report plots over training.
var charted = []struct {
	series, title, y string
	log              bool
}{
	{"psnr/eval", "PSNR on a small fixed sample", "PSNR, dB", false},
	{"total", "Total loss", "weighted sum of loss terms", true},
	{"recon", "Reconstruction term", "nats per pixel and channel", true},
	{"perplexity/window", "Codebook perplexity over a window of batches", "entries", false},
}

// Figures draws the section's figures: scores by seed, curves over training, PSNR under noise, swaps and interpolation of a pair, and
// AcrossFigures. prefix starts the figures' names.
func (s Section) Figures(prefix string) ([]figure.Figure, error) {
	var all []figure.Figure
	for _, d := range s.Datasets() {
		all = append(all, s.ScoreFigures(prefix, d)...)
		charts, err := s.charts(prefix, d)
		if err != nil {
			return nil, err
		}
		all = append(all, charts...)
		noisy, err := s.NoiseFigures(prefix, d)
		if err != nil {
			return nil, err
		}
		all = append(all, noisy...)
		pictures, err := s.ownPair(prefix, d)
		if err != nil {
			return nil, err
		}
		all = append(all, pictures...)
	}
	return append(all, s.AcrossFigures(prefix)...), nil
}

// AcrossFigures draws figures over several settings or datasets: grids of two hyperparameters, splits, and the correlation of metrics.
func (s Section) AcrossFigures(prefix string) []figure.Figure {
	return slices.Concat(s.GridFigures(prefix), s.SplitFigures(prefix), s.CorrelationFigures(prefix))
}

// Of lists the section's groups on one dataset.
func (s Section) Of(dataset string) []Group {
	return slices.DeleteFunc(slices.Clone(s.Groups), func(g Group) bool { return g.Dataset != dataset })
}

// charts draws the charted series of every group on a dataset; series that no group has are omitted.
func (s Section) charts(prefix, dataset string) ([]figure.Figure, error) {
	names := make([]string, len(charted))
	charts := make([]figure.LineChart, len(charted))
	points := make([]int, len(charted))
	for i, c := range charted {
		names[i] = c.series
		charts[i] = figure.LineChart{Name: slug(prefix, dataset, c.series), Title: c.title + " · " + DatasetLabel(dataset), Width: chartWidth, Height: chartHeight,
			X: figure.Axis{Label: "step"}, Y: figure.Axis{Label: c.y, Log: c.log}}
	}
	for _, g := range s.Of(dataset) {
		curves, err := g.CurvesOf(names, 0)
		if err != nil {
			return nil, err
		}
		for i, name := range names {
			if c := curves[name]; len(c.Steps) > 0 {
				points[i] += c.Points
				charts[i].Lines = append(charts[i].Lines, c.Thin(chartColumns).line(s.Place(g.Label)))
				charts[i].Scatter = append(charts[i].Scatter, c.seeds(s.Place(g.Label)))
			}
		}
	}
	var drawn []figure.Figure
	for i, chart := range charts {
		if points[i] > 0 {
			chart.Y.Range = inView(chart.Lines, charted[i].log)
			chart.Note = fmt.Sprintf("Mean over seeds with its 95%% interval, from %s points; drawn as the minimum, maximum and last value of each of %d spans. Open points: last values of individual seeds.", grouped(points[i]), chartColumns)
			drawn = append(drawn, chart.Draw())
		}
	}
	return drawn, nil
}

// inView is the range of the means extended by half on either side, because the interval of two seeds can be wide enough to flatten the
// curves. Intervals inside that range narrow it; equal ends let the chart choose.
func inView(lines []figure.Line, log bool) [2]float64 {
	low, high, bandLow, bandHigh := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	stretch := func(v float64, from, to *float64) {
		if finite(v) && (!log || v > 0) {
			*from, *to = min(*from, v), max(*to, v)
		}
	}
	for _, l := range lines {
		for i, v := range l.Y {
			stretch(v, &low, &high)
			stretch(v, &bandLow, &bandHigh)
			if l.Low != nil {
				stretch(l.Low[i], &bandLow, &bandHigh)
				stretch(l.High[i], &bandLow, &bandHigh)
			}
		}
	}
	if !(low < high) {
		return [2]float64{}
	}
	if log {
		room := math.Sqrt(high / low)
		return [2]float64{max(low/room, bandLow), min(high*room, bandHigh)}
	}
	room, floor := (high-low)/2, math.Inf(-1)
	if low >= 0 {
		floor = 0 // a series without negative values, e.g. a perplexity, gets no negative axis
	}
	return [2]float64{max(low-room, bandLow, floor), min(high+room, bandHigh)}
}

func (c Curve) line(color int) figure.Line {
	l := figure.Line{Name: c.Label, Y: c.Mean, Color: color, Markers: len(c.Steps) < 3}
	for _, s := range c.Steps {
		l.X = append(l.X, float64(s))
	}
	if slices.ContainsFunc(c.Low, finite) {
		l.Low, l.High = c.Low, c.High
	}
	return l
}

// seeds are the last points of the individual runs.
func (c Curve) seeds(color int) figure.Scatter {
	s := figure.Scatter{Name: c.Label, Color: color}
	for _, e := range c.Ends {
		s.X, s.Y = append(s.X, float64(e.Step)), append(s.Y, e.Value)
	}
	return s
}

// ScoreFigures draws the paper's metrics of a dataset's groups: the mean as a bar with its 95% interval, every seed as a point.
// It returns none if nothing is scored.
func (s Section) ScoreFigures(prefix, dataset string) []figure.Figure {
	var all []figure.Figure
	for _, f := range []struct {
		name, title, label string
		keys               []string
		bounds             [2]float64
	}{
		{"scores", "Scores", "score", []string{"infom", "infoe", "infoc", "d", "i", "c"}, unit},
		{"psnr", "PSNR", "PSNR, dB", []string{"psnr"}, [2]float64{}},
	} {
		chart := figure.BarChart{Name: slug(prefix, dataset, f.name), Title: f.title + " by seed · " + DatasetLabel(dataset), Width: chartWidth, Height: chartHeight,
			Y: figure.Axis{Label: f.label, Range: f.bounds}, Note: "Bars: means over seeds with 95% intervals. Open points: individual seeds."}
		metrics := Section{Groups: s.Of(dataset)}.Measured(metricsOf(f.keys))
		for _, m := range metrics {
			chart.Groups = append(chart.Groups, m.Label)
		}
		for _, g := range s.Of(dataset) {
			if len(g.Entries) > 0 {
				chart.Bars = append(chart.Bars, g.bars(metrics, s.Place(g.Label)))
			}
		}
		if len(metrics) > 0 {
			all = append(all, chart.Draw())
		}
	}
	return all
}

// bars are a group's means of metrics, with intervals and values by seed.
func (g Group) bars(metrics []Metric, color int) figure.Bars {
	b := figure.Bars{Name: g.Label, Color: color}
	for _, m := range metrics {
		s := g.Score(m.Key)
		b.Value, b.Low, b.High, b.Each = append(b.Value, s.Mean), append(b.Low, s.Lo), append(b.High, s.Hi), append(b.Each, s.Values)
	}
	return b
}

// gridKeys are the metrics drawn over a grid, by its row field. Grids over codebook size k show the paper's metrics; grids over the
// number of slots m also show metrics that need no labels and whether the bundle still holds its codes.
var gridKeys = map[string][]string{
	"k": {"infom", "infoe", "infoc", "psnr"},
	"m": {"infom", UDRKey, "redundancy_pairs", "joint_entropy", "retrieval_snr", "cos_bundle", "reencode", "psnr"},
}

// GridFigures draws metrics over latent dimension and either codebook size or number of slots, if the section varies both.
func (s Section) GridFigures(prefix string) []figure.Figure {
	var all []figure.Figure
	for _, g := range s.Grids(recorded()) {
		if !slices.Contains(gridKeys[g.RowField.Name], g.Metric.Key) {
			continue
		}
		h := figure.HeatMap{Name: slug(prefix, g.Dataset, g.Model, g.Metric.Key, "grid"), Title: fmt.Sprintf("%s of %s · %s", g.Metric.Label, ModelLabel(g.Model), DatasetLabel(g.Dataset)),
			Rows: g.Rows, Columns: g.Columns, Range: g.Metric.Range, Corner: g.RowField.Symbol + " / " + g.ColumnField.Symbol,
			Note:   g.RowField.Label + " " + g.RowField.Symbol + " in rows, " + strings.ToLower(g.ColumnField.Label) + " d in columns; mean over " + g.seeds() + ".",
			Format: func(v float64) string { return fixed(v, g.Metric.Decimals) }}
		for _, row := range g.Cells {
			var values []float64
			for _, c := range row {
				v := c.Mean
				if c.N == 0 {
					v = Summarise(nil).Mean
				}
				values = append(values, v)
			}
			h.Value = append(h.Value, values)
		}
		all = append(all, h.Draw())
	}
	return all
}

// Sheet is the reconstructions of a group's best run.
type Sheet struct {
	Label string
	Seed  int64
	PNG   []byte
}

// Sheets are the reconstructions of the best run of each group; groups without any are skipped.
func (s Section) Sheets(dataset string) ([]Sheet, error) {
	var all []Sheet
	for _, g := range s.Of(dataset) {
		best := g.Best()
		if best == nil || best.Sheet == nil {
			continue
		}
		raw, err := best.Sheet()
		if err != nil {
			return nil, fmt.Errorf("reconstructions of run %s: %w", best.Run.ID, err)
		}
		if len(raw) == 0 {
			continue
		}
		if _, err := png.DecodeConfig(bytes.NewReader(raw)); err != nil {
			return nil, fmt.Errorf("reconstructions of run %s: %w", best.Run.ID, err)
		}
		all = append(all, Sheet{g.Label, best.Run.Config.Seed, raw})
	}
	return all, nil
}

// Size is the width and height of the image in pixels.
func (s Sheet) Size() image.Point {
	c, err := png.DecodeConfig(bytes.NewReader(s.PNG))
	if err != nil {
		return image.Point{}
	}
	return image.Pt(c.Width, c.Height)
}

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// slug joins words into a figure's name.
func slug(words ...string) string {
	return strings.Trim(notWord.ReplaceAllString(strings.ToLower(strings.Join(words, "-")), "-"), "-")
}
