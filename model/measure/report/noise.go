package report

import (
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"slices"

	"slotscope/model"
	"slotscope/model/measure/figure"
)

// NoiseFigures draws the effect of noise on the models of a dataset: PSNR by strength, and reconstructions; none if nothing was
// measured.
func (s Section) NoiseFigures(prefix, dataset string) ([]figure.Figure, error) {
	var all []figure.Figure
	for _, v := range noiseViews {
		if f, ok := s.noiseCurves(prefix, dataset, v); ok {
			all = append(all, f)
		}
	}
	f, ok, err := s.noiseGrid(prefix, dataset)
	if ok {
		all = append(all, f)
	}
	return all, err
}

// noiseCurves plots a value against the strength of noise; false if nothing was measured.
func (s Section) noiseCurves(prefix, dataset string, v noiseView) (figure.Figure, bool) {
	chart := figure.LineChart{Name: slug(prefix, dataset, v.name), Title: v.title + " · " + DatasetLabel(dataset), Width: chartWidth, Height: chartHeight,
		X: figure.Axis{Label: v.axis()}, Y: figure.Axis{Label: v.y}, Note: "Mean over seeds with 95% interval. Open points: individual seeds."}
	for _, g := range s.Of(dataset) {
		n := g.noiseOf(v)
		if len(n.SNR) == 0 {
			continue
		}
		l := figure.Line{Name: g.Label, X: n.SNR, Color: s.Place(g.Label), Markers: true}
		for _, p := range n.PSNR {
			l.Y, l.Low, l.High = append(l.Y, p.Mean), append(l.Low, p.Lo), append(l.High, p.Hi)
		}
		if !slices.ContainsFunc(l.Low, finite) {
			l.Low, l.High = nil, nil
		}
		chart.Lines = append(chart.Lines, l)
		seeds := figure.Scatter{Name: g.Label, Color: l.Color}
		for i, values := range n.Seeds {
			for _, v := range values {
				seeds.X, seeds.Y = append(seeds.X, n.SNR[i]), append(seeds.Y, v)
			}
		}
		chart.Scatter = append(chart.Scatter, seeds)
	}
	return chart.Draw(), len(chart.Lines) > 0
}

// noiseGrid shows, for the best run of each model, an image and its reconstructions from low to high noise, like the paper; false if
// no run kept any.
func (s Section) noiseGrid(prefix, dataset string) (figure.Figure, bool, error) {
	g := figure.ImageGrid{Name: slug(prefix, dataset, "degraded"), Title: "Reconstructions under noise on z · " + DatasetLabel(dataset),
		Note: "First image of the evaluation set, by the best run of each model; columns are the SNR of z." + s.notShown(dataset)}
	for _, group := range s.Of(dataset) {
		best := group.Best()
		if best == nil || best.Noisy == nil || best.Scores.Noise == nil || len(g.Rows) == mostShown {
			continue
		}
		sheet, err := best.Noisy()
		if err != nil {
			return figure.Figure{}, false, fmt.Errorf("images under noise of run %s: %w", best.Run.ID, err)
		}
		columns := NoiseColumns(*best.Scores.Noise)
		if cells := figure.Cut(sheet, len(best.Scores.Noise.Shown), len(columns)); cells != nil && (g.Columns == nil || slices.Equal(g.Columns, columns)) {
			g.Columns, g.Rows, g.Images = columns, append(g.Rows, group.Label), append(g.Images, cells[0])
		}
	}
	return g.Draw(), len(g.Rows) > 0, nil
}

// NoiseColumns are the column headings of a run's sheet of images under noise.
func NoiseColumns(n model.Noise) []string {
	columns := []string{"image", "no noise"}
	for _, p := range n.Curve {
		columns = append(columns, figure.Number(p.SNR)+" dB")
	}
	return columns
}

// OpenSheet reads a run's sheet of images under noise, given the path and error of the lookup; nil if it does not exist.
func OpenSheet(path string, err error) (image.Image, error) {
	if errors.Is(err, model.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return png.Decode(file)
}
