package report

import (
	"slices"
	"strings"

	"slotscope/model/measure/figure"
)

// splitsOf groups the section's datasets that are training parts of splits by the dataset they split, in the order of the section.
func (s Section) splitsOf() (wholes []string, parts map[string][]string) {
	parts = map[string][]string{}
	for _, d := range s.Datasets() {
		whole, kind, ok := splitOf(d)
		if !ok {
			continue
		}
		if parts[whole] == nil {
			wholes = append(wholes, whole)
		}
		parts[whole] = append(parts[whole], kind)
	}
	return wholes, parts
}

// splitOf parses "set[split=kind]".
func splitOf(dataset string) (whole, kind string, ok bool) {
	whole, rest, ok := strings.Cut(dataset, "[split=")
	kind, closed := strings.CutSuffix(rest, "]")
	return whole, kind, ok && closed && !strings.ContainsAny(kind, ";[")
}

// SplitFigures draws how well models generalize to combinations held out of training, if a section has at least two splits of a dataset:
// PSNR of held-out images, and the share of held-out images that recombined codes produce.
func (s Section) SplitFigures(prefix string) []figure.Figure {
	var all []figure.Figure
	wholes, parts := s.splitsOf()
	for _, whole := range wholes {
		if len(parts[whole]) < 2 {
			continue
		}
		for _, f := range []struct {
			key, title, label, note string
			bounds                  [2]float64
		}{
			{"unseen_psnr", "PSNR of held-out images", "PSNR, dB", "", [2]float64{}},
			{"recombined", "Held-out images recombined from codes of training images", "share of images", " Splits that hold out whole values have nothing to recombine.", unit},
		} {
			chart := figure.BarChart{Name: slug(prefix, whole, "splits", f.key), Title: f.title + " · " + DatasetLabel(whole), Width: chartWidth, Height: chartHeight,
				Y: figure.Axis{Label: f.label, Range: f.bounds}, Groups: parts[whole], Note: "Bars: means over seeds with 95% intervals. Open points: individual seeds." + f.note}
			some := false
			for place, label := range s.Labels() {
				b, measured := s.acrossSplits(whole, parts[whole], label, f.key)
				b.Color = place
				if some = some || measured; measured {
					chart.Bars = append(chart.Bars, b)
				}
			}
			if some {
				all = append(all, chart.Draw())
			}
		}
	}
	return all
}

// acrossSplits returns a row's score on each split of a dataset; false if it has none.
func (s Section) acrossSplits(whole string, kinds []string, label, key string) (b figure.Bars, some bool) {
	b.Name = label
	for _, kind := range kinds {
		score := Scored{Summary: Summarise(nil)}
		if i := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Dataset == whole+"[split="+kind+"]" && g.Label == label }); i >= 0 {
			score = s.Groups[i].Score(key)
		}
		some = some || score.N > 0
		b.Value, b.Low, b.High, b.Each = append(b.Value, score.Mean), append(b.Low, score.Lo), append(b.High, score.Hi), append(b.Each, score.Values)
	}
	return b, some
}
