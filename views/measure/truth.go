package measure

import (
	"fmt"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/figure"
	"slotscope/model/measure/metric"
	"slotscope/views"
)

// faithfulness returns the panel that compares the model with a true HRR; nil for baselines.
func (m Measured) faithfulness() *HRRPanel {
	f := m.Scores.Faithfulness
	if !m.hrr() {
		return nil
	}
	if f == nil {
		return &HRRPanel{Says: []string{"Not measured. Evaluate the run to measure it."}}
	}
	p := &HRRPanel{Says: []string{
		fmt.Sprintf("The paper’s objective does not tie the encoder’s z to the bundle ẑ of its own codes. Measured on %s images; the chance level of re-encoding is %s.", views.Count(f.Images), score(f.Chance)),
	}}
	add := func(name string, v model.Score, digits int, of, note string) {
		value := "–"
		if v.Defined() {
			value = strings.Replace(fmt.Sprintf("%.*f", digits, float64(v)), "-", "−", 1)
		}
		p.Rows = append(p.Rows, HRRFigure{Name: name, Value: value, True: of, Note: note})
	}
	t := f.True
	upTo := fmt.Sprintf("up to %.0f", t.Rank)
	add("cos(z, ẑ)", f.CosBundle, 2, "near 1", "Between the encoder’s vector and the bundle of its codes.")
	add("cos(ṽ, q)", f.CosRetrieval, 2, fmt.Sprintf("%.2f", t.CosRetrieval), "Between raw retrievals and their entries; cross-talk of m slots leaves 1/√(1+m).")
	add("cos(v̄, q)", f.CosDenoised, 3, "near 1", "Between denoised retrievals and their entries.")
	add("Re-encoded", f.Reencode, 3, "near 1", "Share of codes that the model’s own retrieval recovers from ẑ.")
	add("Cleaned up", f.Cleanup, 3, "near 1", "The same with plain unbinding and the nearest entry, without the denoiser.")
	add("Energy ‖ẑ‖²", f.Energy, 1, fmt.Sprintf("%.0f", t.Energy), "Of bundles; m if entries have norm 1.")
	add("Coherence", f.Coherence, 3, fmt.Sprintf("%.3f", t.Coherence), fmt.Sprintf("Standard deviation of the cosines of the %s entries in use; 1/√d if independent.", views.Count(f.Entries)))
	add("Rank of the codebook", f.RankCodebook, 1, upTo, "Effective number of directions of the entries in use.")
	add("Rank of z", f.RankZ, 1, upTo, "Effective number of directions in which the encoder’s vectors vary.")
	add("Rank of ẑ", f.RankBundle, 1, upTo, "Effective number of directions in which bundles vary.")
	return p
}

// owners returns the factors each slot is named after, with a bar per factor.
func (m Measured) owners() (rows []OwnerRow) {
	s := m.metrics()
	if s == nil || s.Ownership == nil {
		return nil
	}
	factors := plainNames(s.Factors)
	for j, o := range s.Ownership.Slots {
		row := OwnerRow{Slot: j, Name: metric.OwnerName(o, s.Factors), Called: m.Called.Slots[j]}
		var text []string
		for f, name := range factors {
			v := s.Ownership.NMI[f][j]
			if !v.Defined() {
				v = 0
			}
			row.Shares = append(row.Shares, views.FactorShare{Factor: name, Share: float64(v)})
			text = append(text, fmt.Sprintf("%s %.2f", name, float64(v)))
		}
		row.Text = strings.Join(text, ", ")
		rows = append(rows, row)
	}
	return rows
}

// missing lists the scores that a current evaluation has and these lack; empty if none.
func (m Measured) missing() string {
	s := m.Scores
	if !s.Evaluated() {
		return ""
	}
	var lack []string
	if m.hrr() && s.Faithfulness == nil {
		lack = append(lack, "faithfulness to HRR")
	}
	if s.Metrics != nil && s.Metrics.Ownership == nil {
		lack = append(lack, "slot names")
	}
	if s.Swap != nil && s.SwapTruth == nil && s.NoTruth == "" {
		lack = append(lack, "swaps against the truth")
	}
	if s.Noise != nil && len(s.Noise.BundleRaw) == 0 && m.Run.Config.Model != model.External { // its bundle is not accessible
		lack = append(lack, "noise on ẑ")
	}
	if len(lack) == 0 {
		return ""
	}
	return "Not measured: " + strings.Join(lack, ", ") + ". These scores are from an earlier version; all other scores are below."
}

func trueSwaps(s *model.SwapTruth) MeasuredGroup {
	return MeasuredGroup{Title: fmt.Sprintf("Swaps against the truth, %s pairs", views.Count(s.Pairs)), Rows: []MeasuredScore{
		{Name: "Groups", Value: shareText(s.Group), Interval: shareSpan(s.Group), Main: true, Note: "Swaps of all slots of a factor that match the dataset’s image of A with that factor from B, at most 3 dB worse than A’s reconstruction. Interval over pairs."},
		{Name: "Single slots", Value: shareText(s.Single), Interval: shareSpan(s.Single), Main: true, Note: "The same for single slots owned by a factor; if several slots share a factor, one alone rarely suffices."},
		{Name: "Coverage", Value: shareText(model.Interval{Value: s.Coverage, Low: model.Undefined(), High: model.Undefined()}), Note: "Factors that own a slot. The others have no swaps to measure."},
	}}
}

func (m Measured) truth() *model.SwapTruth {
	if m.Scores == nil {
		return nil
	}
	return m.Scores.SwapTruth
}

// truthSaid explains hits and lists the leaks.
func (m Measured) truthSaid() []string {
	s, metrics := m.truth(), m.metrics()
	if s == nil || metrics == nil {
		return nil
	}
	said := []string{fmt.Sprintf("Slots of B are swapped into A, and the result is compared with the dataset’s image of A with that factor from B. A hit has at least the PSNR of A’s reconstruction minus %s dB, and is closer to that image than A’s reconstruction is.", figure.Number(s.Tolerance))}
	names := plainNames(metrics.Factors)
	var leaks []string
	for _, g := range s.Groups {
		if g.LeaksMost >= 0 && g.LeaksMost < len(names) && g.LeaksMost < len(g.Leak) {
			leaks = append(leaks, fmt.Sprintf("%s changes %s in %.0f%% of pairs", names[g.Factor], names[g.LeaksMost], 100*float64(g.Leak[g.LeaksMost])))
		}
	}
	if len(leaks) > 0 {
		said = append(said, "Leaks, according to the probe: "+strings.Join(leaks, "; ")+".")
	}
	return said
}

func truthFigure(m Measured) (figure.Figure, bool) {
	s := m.truth()
	if s == nil {
		return figure.Figure{}, false
	}
	names, colors := slotNames(len(s.Slots))
	return truthChart("truth", "Single slots that give the right image", s.Pairs, names, colors, s.Slots)
}

func truthGroupsFigure(m Measured) (figure.Figure, bool) {
	s, metrics := m.truth(), m.metrics()
	if s == nil || metrics == nil || len(s.Groups) == 0 {
		return figure.Figure{}, false
	}
	var names []string
	var colors []int
	for _, g := range s.Groups {
		names, colors = append(names, plainNames(metrics.Factors)[g.Factor]), append(colors, g.Slots[0])
	}
	return truthChart("truth-groups", "Groups of slots that give the right image", s.Pairs, names, colors, s.Groups)
}

func truthChart(name, title string, pairs int, groups []string, colors []int, shares []model.TruthShare) (figure.Figure, bool) {
	bars := figure.Bars{Name: "hits", Colors: colors}
	for _, s := range shares {
		bars.Value, bars.Low, bars.High = append(bars.Value, float64(s.Hits.Value)), append(bars.Low, float64(s.Hits.Low)), append(bars.High, float64(s.Hits.High))
	}
	return figure.BarChart{
		Name: name, Title: title, Width: 480, Height: 170, Groups: groups, Bars: []figure.Bars{bars}, Y: figure.Axis{Label: "share of pairs", Range: [2]float64{0, 1}},
		Note:  fmt.Sprintf("%s pairs; lines are 95%% intervals over pairs.", figure.Number(float64(pairs))),
		Empty: "No factor owns a slot.",
	}.Draw(), true
}

// blurSaid reports the probe's accuracy on reconstructions: its errors there come from blur, not impurity.
func (m Measured) blurSaid() string {
	s, metrics := m.swap(), m.metrics()
	if len(s.ProbeReconstructions) != len(metrics.Factors) {
		return ""
	}
	parts, names := make([]string, len(s.ProbeReconstructions)), plainNames(metrics.Factors)
	for f, a := range s.ProbeReconstructions {
		parts[f] = fmt.Sprintf("%s %.1f%%", names[f], 100*a)
	}
	return " On reconstructions: " + strings.Join(parts, ", ") + "; errors there are due to blur."
}
