package theory

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"

	"slotscope/model"
	"slotscope/model/measure/figure"
	"slotscope/model/paper/theory"
	"slotscope/views"
)

// NewTheory returns the view of the page at sizes e. Entries in bad keep what was typed. sources are the checkpoints to choose from, points
// the chosen ones.
func NewTheory(e Sizes, bad model.Invalid, typed url.Values, rates []Rate, sources []Source, points []Point) TheoryView {
	v := TheoryView{Entries: entriesOf(e, bad, typed), Rates: rateLinks(e, rates), Sources: sourcesOf(e, sources)}
	for _, part := range []func(Sizes, []Point) TheoryPart{capacityPart, leastPart, retrievalPart, covariancePart, correlationPart} {
		p := part(e, points)
		for i, f := range p.Figures { // only the name is set
			p.Figures[i] = views.FigureOf(figures[f.Name](e, points), "/theory", e.Query())
		}
		v.Parts = append(v.Parts, p)
	}
	for _, p := range points {
		v.Points = append(v.Points, p.row(e))
	}
	return v
}

// entriesOf returns the fields of the form; invalid ones keep what was typed.
func entriesOf(e Sizes, bad model.Invalid, typed url.Values) []TheoryEntry {
	form := []TheoryEntry{
		{Name: "m", Label: "Slots", Symbol: "m", Step: "1"},
		{Name: "d", Label: "Dimension", Symbol: "d", Step: "1", Log: true},
		{Name: "k", Label: "Codebook entries", Symbol: "k", Step: "1", Log: true},
		{Name: "R", Label: "Rate to carry", Symbol: "R", Unit: "nats", Step: "any"},
		{Name: "var", Label: "Variance of values", Symbol: "d·Var v", Unit: "1 for HRR vectors", Step: "any", Log: true},
		{Name: "rho", Label: "Posterior floor", Symbol: "ρ = τ²·d/m", Unit: "1 is the retrieval noise", Step: "any", Log: true},
	}
	text := e.text()
	for i := range form {
		f := &form[i]
		limit := Limits[f.Name]
		f.Value, f.Min, f.Max = text[f.Name], plain(limit[0]), plain(limit[1])
		if f.Problem = bad[f.Name]; f.Problem != "" {
			f.Value = typed.Get(f.Name)
		}
	}
	return form
}

// rateLinks returns links to the rates that the images of datasets need; the links keep all other entries.
func rateLinks(e Sizes, rates []Rate) []TheoryLink {
	var links []TheoryLink
	for _, r := range rates {
		at := e
		at.Rate = r.Nats
		links = append(links, TheoryLink{Text: fmt.Sprintf("%s (%s)", plain(r.Nats), r.Dataset), Href: "/theory?" + at.Query().Encode(), Here: r.Nats == e.Rate})
	}
	return links
}

func sourcesOf(e Sizes, sources []Source) []TheorySource {
	var all []TheorySource
	for _, s := range sources {
		chosen := slices.ContainsFunc(e.Sources, func(name string) bool { return name == s.Key || s.Run != "" && name == s.Run })
		all = append(all, TheorySource{Key: s.Key, Text: fmt.Sprintf("%s, %s steps", cmp.Or(s.Title, s.Key), views.Count(s.Step)), Chosen: chosen})
	}
	return all
}

// nats formats an amount of information in nats and bits.
func nats(v float64) string {
	return fmt.Sprintf("%s nats, %s bits", rounded(v), rounded(v/theory.NatsPerBit))
}

// rounded rounds to three significant digits.
func rounded(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return figure.Number(v)
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return figure.Number(v)
	}
	return figure.Number(r)
}

func capacityPart(e Sizes, points []Point) TheoryPart {
	c := theory.CapacityOf(e.M, e.D, e.K)
	p := TheoryPart{
		ID: "capacity", Question: "How much information can the latent carry?",
		Formulas: []Formula{{Name: "capacity", Place: "Proposition 1, “Capacity of the HRR latent channel”, for the paper’s Gaussian model with cross-talk as independent noise"}},
		Facts: []TheoryFact{
			{Term: "Channel", Value: nats(c.Channel)}, {Term: "Codebook", Value: nats(c.Codebook)}, {Term: "Bound", Value: nats(c.Bound()), Good: true},
			{Term: "For large m", Value: fmt.Sprintf("the channel approaches d/2 = %s nats", rounded(float64(e.D)/2))},
		},
		Figures: []views.FigureView{{Name: "capacity"}},
	}
	if c.CodebookBinds() {
		p.Says = append(p.Says, fmt.Sprintf("The codebook limits the rate. More entries help, up to k ≈ %s.", rounded(math.Exp(c.Channel/float64(e.M)))))
	} else {
		p.Says = append(p.Says, "The channel limits the rate. More dimensions help; more entries do not.")
	}
	if c.Bound() >= e.Rate {
		p.Says = append(p.Says, fmt.Sprintf("R = %s nats fit %s times.", rounded(e.Rate), rounded(c.Bound()/math.Max(e.Rate, 1e-9))))
	} else {
		p.Says = append(p.Says, fmt.Sprintf("R = %s nats do not fit; they exceed the bound by %s.", rounded(e.Rate), rounded(e.Rate-c.Bound())))
	}
	p.Says = append(p.Says, "With frozen symbols, cross-talk is a function of the image x, not noise, and a deterministic encoder can use it as signal. A trained model may therefore carry more than the channel term; only m·log k limits it.")
	for _, point := range known(points) {
		if point.outside() {
			p.Facts = append(p.Facts, TheoryFact{Term: point.Label, Bad: true,
				Value: fmt.Sprintf("outside: its codes carry %s nats, above the channel term of %s", point.entropy(), rounded(point.Capacity.Channel))})
		}
	}
	return p
}

func leastPart(e Sizes, _ []Point) TheoryPart {
	d, k := theory.LeastD(e.Rate, e.M), theory.LeastK(e.Rate, e.M)
	return TheoryPart{
		ID: "least", Question: "How large must d and k be for a rate?",
		Formulas: []Formula{
			{Name: "least-d", Place: "“Design corollary”, proof of Proposition 1"},
			{Name: "least-k", Place: "“Design corollary”"},
		},
		Facts: []TheoryFact{
			{Term: "Minimum d", Value: figure.Number(d), Good: float64(e.D) >= d, Bad: float64(e.D) < d},
			{Term: "Minimum k", Value: figure.Number(k), Good: float64(e.K) >= k, Bad: float64(e.K) < k},
		},
		Says:    []string{fmt.Sprintf("For R = %s nats through m = %d slots. More slots lower the required k quickly but barely lower d: for large m, d ≳ 2R.", rounded(e.Rate), e.M)},
		Figures: []views.FigureView{{Name: "least-d"}, {Name: "least-k"}},
	}
}

func retrievalPart(e Sizes, _ []Point) TheoryPart {
	s := sampleSNR(e.M, e.D, e.Variance)
	return TheoryPart{
		ID: "retrieval", Question: "How noisy is a retrieval?",
		Formulas: []Formula{
			{Name: "retrieval", Place: "“Capacity of the HRR latent channel”; the sum is the cross-talk of the other slots"},
			{Name: "snr", Place: "“Distribution of a retrieval”"},
		},
		Facts: []TheoryFact{
			{Term: "SNR", Value: fmt.Sprintf("%s, %s dB", rounded(theory.SNR(e.M)), rounded(10*math.Log10(theory.SNR(e.M))))},
			{Term: "Sampled", Value: fmt.Sprintf("%s over %d retrievals", rounded(s.SNR), s.Slots)},
			{Term: "Signal per component", Value: fmt.Sprintf("%s, sampled %s", rounded(e.Variance/float64(e.D)), rounded(s.Signal))},
			{Term: "Noise per component", Value: fmt.Sprintf("%s, exactly %s, sampled %s", rounded(e.Variance*float64(e.M)/float64(e.D)), figure.Number(e.Variance*theory.NoisePower(e.M, e.D)), rounded(s.Noise))},
		},
		Says:    []string{"The variance of the values scales signal and noise equally, so it does not change the SNR.", "Each additional slot lowers the SNR of the others. The dimension does not change the SNR per component, only the number of components."},
		Figures: []views.FigureView{{Name: "snr"}},
	}
}

func covariancePart(e Sizes, _ []Point) TheoryPart {
	p := theory.SamplePairs(max(e.M, 2), e.D, 1, 1)
	return TheoryPart{
		ID: "covariance", Question: "How correlated are two retrievals?",
		Formulas: []Formula{
			{Name: "block", Place: "“Off-Diagonal Blocks”"},
			{Name: "frobenius", Place: "“Off-Diagonal Blocks”; about 1/d"},
			{Name: "operator", Place: "“Sharpened Off-Diagonal Operator Norm”; over frequencies; O(log d / d)"},
		},
		Facts: []TheoryFact{
			{Term: "Frobenius norm", Value: fmt.Sprintf("%s; 1/√d = %s", rounded(math.Sqrt(p.Frobenius2)), rounded(1/math.Sqrt(float64(e.D))))},
			{Term: "Operator norm", Value: fmt.Sprintf("%s; log d / d = %s", rounded(p.Operator), rounded(math.Log(float64(e.D))/float64(e.D)))},
		},
		Figures: []views.FigureView{{Name: "covariance"}},
	}
}

func correlationPart(e Sizes, _ []Point) TheoryPart {
	values, tau2 := theory.Draw(e.M, e.D, 1), theory.Tau2(e.M, e.D, e.Ratio)
	exact, channel := theory.TotalCorrelation(values, tau2), theory.ChannelAt(e.M, e.D, e.Ratio)
	delta := theory.DeltaOf(values)
	_, operator := delta.Norms(tau2)
	bound := "trivial at these sizes: ‖M‖_op may be " + rounded(operator)
	if b := delta.Bound(tau2); !math.IsInf(b, 0) {
		bound = nats(b)
	}
	return TheoryPart{
		ID: "correlation", Question: "How dependent are the retrievals?",
		Formulas: []Formula{
			{Name: "exact", Place: "“Reduction to the Log-Determinant”"},
			{Name: "bound", Place: "Proposition 2 and “Bounding the Total Correlation”"},
		},
		Facts: []TheoryFact{
			{Term: "Floor", Value: fmt.Sprintf("ρ = %s, τ = %s", rounded(e.Ratio), rounded(math.Sqrt(tau2)))},
			{Term: "Total correlation", Value: nats(exact)},
			{Term: "Channel with this noise", Value: nats(channel)},
			{Term: "Share of the channel", Value: rounded(100*exact/channel) + "%"},
			{Term: "Bound", Value: bound},
			{Term: "Order m²/(τ⁴d)", Value: rounded(theory.Order(e.M, e.D, tau2)) + " nats"},
			{Term: "Bound applies from", Value: fmt.Sprintf("ρ = %s", rounded(theory.Ratio(e.M, e.D, delta.Operator)))},
		},
		Says: []string{
			atNoise(e.M, e.D, values),
			atOne(e.M, e.D, values),
			"All retrievals come from one bundle, so a smaller floor increases their dependence; without a floor they are fully dependent.",
			"The exact value is for the paper’s Gaussian model; it is computed frequency by frequency, at any size.",
		},
		Figures: []views.FigureView{{Name: "correlation"}},
	}
}

// atNoise describes the total correlation at ρ = 1, where the floor equals the retrieval noise.
func atNoise(m, d int, values [][]float64) string {
	tc, channel := theory.TotalCorrelation(values, theory.Tau2(m, d, 1)), theory.ChannelAt(m, d, 1)
	return fmt.Sprintf("At ρ = 1 (the retrieval noise), total correlation is %s nats, %s%% of the channel’s %s nats. The percentage is constant in d, so the nats grow with d.",
		rounded(tc), rounded(100*tc/channel), rounded(channel))
}

// atOne describes both quantities at τ = 1, the standard deviation of a unit Gaussian.
func atOne(m, d int, values [][]float64) string {
	return fmt.Sprintf("At τ = 1, where ρ = d/m = %s, total correlation vanishes (%s nats), but so does the channel (%s nats).",
		rounded(theory.Ratio(m, d, 1)), rounded(theory.TotalCorrelation(values, 1)), rounded(theory.ChannelAt(m, d, theory.Ratio(m, d, 1))))
}

// row returns a model's table row.
func (p Point) row(e Sizes) TheoryPoint {
	at := e
	at.M, at.D, at.K = p.Config.M, p.Config.D, p.Config.K
	v := TheoryPoint{Label: p.Label, Href: "/theory?" + at.Query().Encode(), Why: p.Why}
	v.Cells = []string{strconv.Itoa(p.Config.M), strconv.Itoa(p.Config.D), strconv.Itoa(p.Config.K), rounded(p.Capacity.Bound())}
	if p.Why != "" {
		return v
	}
	d, m := float64(p.Config.D), float64(p.Config.M)
	redundancy := "not measured"
	if p.Joint != nil {
		if redundancy = rounded(p.Joint.Redundancy); p.Joint.LowerBound {
			redundancy = "≤ " + redundancy
		}
	}
	again := spread(p.Trained.SNR, m, "exact inverse")
	v.Cells = append(v.Cells, p.entropy(), redundancy, fromZ(p.Cosine, m), again, rounded(p.Trained.Pair.Frobenius2*d), rounded(p.Trained.Pair.Operator*d), rounded(p.Trained.TotalCorrelation), figure.Number(p.Trained.Bound))
	return v
}

// fromZ formats m times the SNR of retrievals from the encoder's z, which is c²/(1 − c²) for their mean cosine c with their entries.
func fromZ(cosine *float64, m float64) string {
	switch {
	case cosine == nil:
		return "not evaluated"
	case *cosine <= 0:
		return fmt.Sprintf("0 (cosine %s)", rounded(*cosine))
	}
	c2 := *cosine * *cosine
	return rounded(m * c2 / (1 - c2))
}

// spread formats the mean, minimum and maximum of the SNRs times m, or returns otherwise if there are none.
func spread(snr []float64, m float64, otherwise string) string {
	if len(snr) == 0 {
		return otherwise
	}
	return fmt.Sprintf("%s (%s to %s)", rounded(mean(snr)*m), rounded(slices.Min(snr)*m), rounded(slices.Max(snr)*m))
}
