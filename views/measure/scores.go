package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/figure"
	"slotscope/views"
)

func (m Measured) said() string {
	s := m.Scores
	parts := []string{fmt.Sprintf("%s at step %s on %s random images (seed %d)", measuredHow(s.Effort), views.Count(s.Step), views.Count(s.Images), s.Seed)}
	if s.Seconds > 0 {
		parts = append(parts, fmt.Sprintf("in %s s", figure.Number(s.Seconds)))
	}
	if s.Engine != "" {
		parts = append(parts, "on "+s.Engine)
	}
	if s.Revision != "" {
		parts = append(parts, "with revision "+s.Revision)
	}
	return strings.Join(parts, " ") + "."
}

func (m Measured) stale() string {
	if m.Scores.Step >= m.Run.Checkpoint {
		return ""
	}
	return fmt.Sprintf("These scores are of step %[2]s; the newest checkpoint is at step %[1]s.", views.Count(m.Run.Checkpoint), views.Count(m.Scores.Step))
}

// score formats a score with three decimals.
func score(s model.Score) string {
	if !s.Defined() {
		return "–"
	}
	return strings.Replace(fmt.Sprintf("%.3f", float64(s)), "-", "−", 1)
}

func interval(i *model.Interval, digits int) string {
	if i == nil || !i.Low.Defined() || !i.High.Defined() {
		return ""
	}
	return fmt.Sprintf("%.*f to %.*f", digits, float64(i.Low), digits, float64(i.High))
}

func (m Measured) groups() []MeasuredGroup {
	s := m.Scores
	groups := []MeasuredGroup{{Title: "Reconstruction", Rows: []MeasuredScore{
		{Name: "PSNR", Value: fmt.Sprintf("%.2f dB", s.PSNR), Interval: interval(s.PSNRInterval, 2), Main: true, Note: "Reconstructions against images, mean over images; capped at 100 dB per image."},
	}}}
	if s.Metrics != nil {
		groups = append(groups, infoMEC(s.Metrics), dci(s.Metrics))
	}
	if s.Swap != nil {
		groups = append(groups, swaps(s.Swap))
	}
	if s.SwapTruth != nil {
		groups = append(groups, trueSwaps(s.SwapTruth))
	}
	return groups
}

func infoMEC(s *model.Metrics) MeasuredGroup {
	g := MeasuredGroup{Title: fmt.Sprintf("InfoMEC, %s rows, %d latents, %d factors", views.Count(s.Rows), s.Latents, len(s.KeptFactors))}
	g.Rows = []MeasuredScore{
		{Name: "InfoM", Value: score(s.InfoM), Main: true, Note: "Modularity: does each slot carry information about one factor only? 1 is yes; independent codes score 0 up to sampling noise."},
		{Name: "InfoC", Value: score(s.InfoC), Main: true, Note: "Compactness: is each factor carried by one slot only?"},
		{Name: "InfoE", Value: score(s.InfoE), Main: true, Note: "Explicitness: can a linear model read the factors? As published, it is fitted and measured on the same rows, so large codebooks score near 1 regardless of their content; compare the next two."},
		{Name: "InfoE, held out", Value: score(s.InfoEHeldOut), Note: "Fitted on 90% of the rows and measured on the rest; below 0 is worse than a constant prediction. Not in the paper."},
		{Name: "InfoE, shuffled", Value: score(s.InfoEShuffled), Note: "Chance level: InfoE of the same latents with shuffled rows."},
	}
	return g
}

func dci(s *model.Metrics) MeasuredGroup {
	g := MeasuredGroup{Title: fmt.Sprintf("DCI, forests of %d trees", s.DCI.Trees)}
	add := func(name, note string, v model.DCIScore, main bool) {
		if v.D.Defined() || v.I.Defined() || v.C.Defined() {
			g.Rows = append(g.Rows, MeasuredScore{Name: name, Value: score(v.D) + "  " + score(v.I) + "  " + score(v.C), Main: main, Note: note})
		}
	}
	add("D I C, each code a feature", "Probably the paper’s variant: disentanglement, informativeness (accuracy on held-out rows), completeness. C cannot approach 1, because a factor’s importance is spread over a slot’s codes.", s.DCI.OneHot, s.Discrete)
	add("D I C, summed over slots", "The same forests, importances summed over each slot’s codes, so that completeness can reach 1.", s.DCI.SlotSum, false)
	add("D I C, each slot a number", slotsNote(s.Discrete), s.DCI.Slots, !s.Discrete)
	return g
}

func slotsNote(discrete bool) string {
	if discrete {
		return "Treats code indices as numbers although they are categories; even perfect codes score low."
	}
	return "Disentanglement, informativeness (accuracy on held-out rows), completeness."
}

func swaps(s *model.Swap) MeasuredGroup {
	share, span := shareText, shareSpan
	return MeasuredGroup{Title: fmt.Sprintf("Swaps, %s edits of %s pairs", views.Count(s.Edits), views.Count(s.Pairs)), Rows: []MeasuredScore{
		{Name: "Exact", Value: share(s.Exact), Interval: span(s.Exact), Main: true, Note: "Edits after which a probe reads a new value of the slot’s own factor in the decoded image, and no other change."},
		{Name: "None", Value: share(s.None), Interval: span(s.None), Note: "Edits after which the probe reads no change."},
		{Name: "Others", Value: share(s.Others), Interval: span(s.Others), Note: "Edits that change another factor: leakage."},
	}}
}

// shareText formats a share in percent.
func shareText(i model.Interval) string {
	if !i.Value.Defined() {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(i.Value))
}

// shareSpan formats its interval; empty if there is none.
func shareSpan(i model.Interval) string {
	if !i.Low.Defined() || !i.High.Defined() {
		return ""
	}
	return fmt.Sprintf("%.1f to %.1f%%", 100*float64(i.Low), 100*float64(i.High))
}

// parts returns the sections of the page that have at least one figure.
func (m Measured) parts() []MeasurePart {
	var all []MeasurePart
	add := func(p MeasurePart, figures ...string) {
		if p.Figures = m.figureOf(figures...); len(p.Figures) > 0 {
			all = append(all, p)
		}
	}
	add(MeasurePart{ID: "holds", Question: "Which slot holds which factor?"}, "nmi", "importance", "infoe")
	add(MeasurePart{ID: "codes", Question: "Which codes do slots use?", Says: m.codesSaid()}, "usage", "ranks")
	add(MeasurePart{ID: "swaps", Question: "Does a swap change one thing?", Says: m.probeSaid()}, "purity", "leakage")
	add(MeasurePart{ID: "truth", Question: "Does a swap give the right image?", Says: m.truthSaid()}, "truth", "truth-groups")
	add(MeasurePart{ID: "robust", Question: "How robust is it to noise?", Says: m.noiseSaid()}, "noise", "noise-energy", "noise-accuracy", "flips", "degraded")
	add(MeasurePart{ID: "training", Question: "How did the vectors change in training?", Says: m.trainingSaid()}, "mean", "variance-latent", "variance-codebook", "perplexity")
	return all
}

// partsCompared compares the scores on held-out combinations with those on the training part; nil if nothing was held out.
func (m Measured) partsCompared() *PartsCompared {
	h := m.heldOut()
	if h == nil {
		return nil
	}
	s := m.Scores
	p := &PartsCompared{Trained: m.Run.Config.Dataset, HeldOut: h.Dataset, NoFactors: h.NoFactors, Figures: m.figureOf("compose")}
	add := func(name, trained, left, difference, note string) {
		p.Rows = append(p.Rows, ComparedScore{Name: name, Trained: trained, HeldOut: left, Difference: difference, Note: note})
	}
	add("Images", views.Count(s.Images), views.Count(h.Images), "", "Drawn at random. With few rows, InfoE approaches 1 and InfoM drops slightly by chance.")
	trained := model.Interval{Value: model.Score(s.PSNR), Low: model.Undefined(), High: model.Undefined()}
	if s.PSNRInterval != nil {
		trained = *s.PSNRInterval
	}
	add("PSNR, dB", withInterval(trained), withInterval(h.PSNR), signed(float64(h.PSNR.Value-trained.Value), 2), "Of reconstructions, mean over images with 95% interval.")
	if s.Metrics != nil && h.Metrics != nil {
		left := partScores(h.Metrics)
		for i, seen := range partScores(s.Metrics) {
			add(seen.name, score(seen.value), score(left[i].value), signed(float64(left[i].value-seen.value), 3), seen.note)
		}
		p.Says = append(p.Says, m.factorsLeft()...)
	}
	if s.Usage != nil && h.Usage != nil {
		add("Codes in use", views.Count(s.Usage.Entries), views.Count(h.Usage.Entries), "", "Entries used by at least one slot.")
	}
	if r := h.Recombination; r != nil {
		add("Recombined codes", withShare(r.Seen.Hits), withShare(r.Unseen.Hits), signed(100*float64(r.Unseen.Hits.Value-r.Seen.Hits.Value), 1),
			"Share of images recombined from the codes of two training images that are within 3 dB of the reconstruction they start from, with 95% interval over images. A factor without slots is a miss.")
	} else if h.NoRecombination != "" {
		p.Says = append(p.Says, h.NoRecombination)
	}
	return p
}

// withShare formats a share with its interval, in percent.
func withShare(i model.Interval) string {
	text := shareText(i)
	if span := shareSpan(i); span != "" {
		text += " (" + span + ")"
	}
	return text
}

// factorsLeft names the factors that are constant in the held-out part and so have no scores; nil if all vary.
func (m Measured) factorsLeft() []string {
	h := m.heldOut().Metrics
	var fixed []string
	for i, name := range plainNames(h.Factors) {
		if !slices.Contains(h.KeptFactors, i) {
			fixed = append(fixed, name)
		}
	}
	if len(fixed) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("All held-out images have the same value of %s, so the held-out scores exclude it.", strings.Join(fixed, ", and the same value of "))}
}

func withInterval(i model.Interval) string {
	text := fmt.Sprintf("%.2f", float64(i.Value))
	if span := interval(&i, 2); span != "" {
		text += " (" + span + ")"
	}
	return text
}

// signed formats a difference with its sign; empty if undefined.
func signed(v float64, digits int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strings.Replace(fmt.Sprintf("%+.*f", digits, v), "-", "−", 1)
}

func (m Measured) codesSaid() []string {
	u := m.usage()
	if u == nil {
		return nil
	}
	return []string{fmt.Sprintf("Slots use %s of %s entries; the perplexity over all slots is %s.", views.Count(u.Entries), views.Count(m.Run.Config.Entries()), figure.Number(u.Codebook))}
}

func (m Measured) probeSaid() []string {
	s, metrics := m.swap(), m.metrics()
	if s == nil || metrics == nil || len(s.ProbeAccuracy) != len(metrics.Factors) {
		return nil
	}
	parts, factors := make([]string, len(s.ProbeAccuracy)), plainNames(metrics.Factors)
	for f, a := range s.ProbeAccuracy {
		parts[f] = fmt.Sprintf("%s %.1f%%", factors[f], 100*a)
	}
	return []string{fmt.Sprintf("A probe trained on %s images predicts the factors of decoded images. Its accuracy on unseen images: %s.", views.Count(s.ProbeImages), strings.Join(parts, ", ")) + m.blurSaid()}
}

func (m Measured) noiseSaid() []string {
	n := m.noise()
	if n == nil {
		return nil
	}
	said := []string{fmt.Sprintf("Gaussian noise is added to the encoder’s z before unbinding or quantizing. Its variance is %s (the mean square of z over the images) divided by 10^(SNR/10).", figure.Number(n.Power))}
	if len(n.BundleRaw) > 0 {
		said = append(said, fmt.Sprintf("Noise is also added to ẑ (mean square %s), which is then decoded directly, or after clean-up (plain unbinding, nearest entries, binding again). SNR per component favours models with more components; the energy per image, E_s/N_0 = ‖z‖²/σ², is a fair comparison. This model has %s components.", figure.Number(n.BundlePower), views.Count(n.Components)))
	}
	return said
}

func (m Measured) trainingSaid() []string {
	if !m.hrr() {
		return nil
	}
	return []string{"Dotted: the values of HRR vectors, which are the regularizers’ targets. The SNR of a retrieval does not depend on the variance, so models can settle elsewhere."}
}
