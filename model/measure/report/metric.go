// Package report turns runs and their scores into citable results: tables with intervals next to the paper's values, figures, and
// files that contain all of it. The same runs produce the same bytes.
package report

import (
	"math"
	"slices"

	"slotscope/model"
)

// Metric is one column of a score table. Higher is better unless it is Neutral.
type Metric struct {
	Key      string // in files and URLs
	Label    string
	Unit     string
	Decimals int    // used if there is no interval to round to
	About    string // one sentence
	Range    [2]float64
	Neutral  bool // neither direction is better: never bold, no winner

	of     func(model.Scores) model.Score
	chance func(model.Scores) model.Score    // the score with the factors' rows shuffled; nil if not measured
	within func(model.Scores) model.Interval // 95% interval of one run's score; nil if it has none
}

// Of returns the metric's value in a run's scores; NaN if not measured or undefined.
func (m Metric) Of(s model.Scores) float64 {
	v := float64(m.of(s))
	if !finite(v) {
		return math.NaN()
	}
	return v
}

var (
	unit    = [2]float64{0, 1}
	columns = []Metric{
		{Key: "infom", Label: "InfoM", Decimals: 2, Range: unit, About: "Modularity: each slot encodes one factor.", of: metrics(func(m model.Metrics) model.Score { return m.InfoM })},
		{Key: "infoe", Label: "InfoE", Decimals: 2, Range: unit, About: "Explicitness: factors are linearly decodable. In-sample: near 1 for any large, evenly used codebook.", of: metrics(func(m model.Metrics) model.Score { return m.InfoE })},
		{Key: "infoc", Label: "InfoC", Decimals: 2, Range: unit, About: "Compactness: each factor is encoded in one slot.", of: metrics(func(m model.Metrics) model.Score { return m.InfoC })},
		{Key: "d", Label: "D", Decimals: 2, Range: unit, About: "DCI disentanglement, by random forests.", of: metrics(func(m model.Metrics) model.Score { return paperDCI(m).D })},
		{Key: "i", Label: "I", Decimals: 2, Range: unit, About: "DCI informativeness: accuracy on held-out rows.", of: metrics(func(m model.Metrics) model.Score { return paperDCI(m).I })},
		{Key: "c", Label: "C", Decimals: 2, Range: unit, About: "DCI completeness. Over one-hot codes, the paper's apparent choice, even a perfect code only reaches about 0.45.", of: metrics(func(m model.Metrics) model.Score { return paperDCI(m).C })},
		{Key: "psnr", Label: "PSNR", Unit: "dB", Decimals: 1, About: "PSNR of reconstructions, mean over images.", of: func(s model.Scores) model.Score { return model.Score(s.PSNR) }},
	}
	further = []Metric{
		{Key: "infoe_heldout", Label: "InfoE held out", Decimals: 2, Range: unit, About: "InfoE fitted on 90% of the rows and measured on the other 10%. Ours, not the paper's.", of: metrics(func(m model.Metrics) model.Score { return m.InfoEHeldOut })},
		{Key: "c_slots", Label: "C by slot", Decimals: 2, Range: unit, About: "DCI completeness with importances summed over each slot, so that 1 is attainable.", of: metrics(slotC)},
		{Key: "swap_exact", Label: "Exact swaps", Decimals: 2, Range: unit, About: "Share of single-slot swaps that change the slot's own factor and no other.", of: exactSwaps},
		{Key: "swap_truth_group", Label: "True group swaps", Decimals: 2, Range: unit, About: "Share of swaps of all slots of a factor whose result matches the dataset's image with A's factors and that one from B, within 3 dB of the reconstruction of A.", of: truth(func(s model.SwapTruth) model.Score { return s.Group.Value })},
		{Key: "swap_truth_single", Label: "True single swaps", Decimals: 2, Range: unit, About: "The same for swaps of single slots owned by a factor.", of: truth(func(s model.SwapTruth) model.Score { return s.Single.Value })},
		{Key: "coverage", Label: "Coverage", Decimals: 2, Range: unit, About: "Share of factors that own a slot: NMI of at least 0.5, and at least 0.2 above the slot's second factor.", of: metrics(coverage)},
	}
	// unlabelled are metrics of representations that need no factor labels.
	unlabelled = []Metric{
		{Key: "joint_entropy", Label: "H(c₁…c_m)", Unit: "nats", Decimals: 2, Neutral: true, About: "Joint entropy of the slots' codes, plug-in: a lower bound if most images have a unique combination of codes.", of: joint(func(j model.JointEntropy) float64 { return j.Nats })},
		{Key: "joint_coverage", Label: "Coverage of codes", Decimals: 2, Range: unit, Neutral: true, About: "Share of images that share their combination of codes with another image. Below 0.9 the joint entropy is a lower bound.", of: joint(func(j model.JointEntropy) float64 { return j.Coverage })},
		{Key: "redundancy_pairs", Label: "Redundancy of pairs", Unit: "nats", Decimals: 2, Neutral: true, About: "Mutual information of slot pairs beyond chance, summed. Lower means less repetition; also 0 if slots carry no information.", of: fieldScore("redundancy_pairs"), chance: fieldChance("redundancy_pairs")},
		{Key: "redundancy", Label: "Redundancy", Unit: "nats", Decimals: 2, Neutral: true, About: "Total correlation of the slots by the Chao–Shen entropy estimator; undefined if fewer than half of the images share their combination of codes.", of: determined},
		{Key: "retrieval_snr", Label: "SNR of ṽ", Decimals: 2, Neutral: true, About: "SNR of raw retrievals from the encoder's z: c²/(1 − c²), c their mean cosine with the chosen entries; 1/m for a true HRR.", of: faithfulness(retrievalSNR)},
	}
	// udr is a score of a run relative to the other runs of its group; Group.agree measures it.
	udr      = Metric{Key: UDRKey, Label: "UDR", Decimals: 2, Range: unit, About: "One-to-one agreement of slots between seeds: median over the other seeds of the group. Selects models without labels.", of: func(model.Scores) model.Score { return model.Undefined() }}
	faithful = []Metric{
		{Key: "cos_bundle", Label: "cos(z, ẑ)", Decimals: 2, About: "Cosine of the encoder's z and the bundle of its codes; near 1 for a true HRR.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.CosBundle })},
		{Key: "cos_retrieval", Label: "cos(ṽ, q)", Decimals: 2, About: "Cosine of raw retrievals and the chosen entries; 1/√(1+m) for a true HRR.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.CosRetrieval })},
		{Key: "cos_denoised", Label: "cos(v̄, q)", Decimals: 3, About: "Cosine of denoised retrievals and the chosen entries; near 1 for a true HRR.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.CosDenoised })},
		{Key: "reencode", Label: "Re-encoded", Decimals: 2, Range: unit, About: "Share of codes that the model's own retrieval recovers from ẑ; near 1 for a true HRR.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.Reencode })},
		{Key: "cleanup", Label: "Cleaned up", Decimals: 2, Range: unit, About: "The same with plain unbinding and the nearest entry, without denoiser; near 1 for a true HRR within capacity.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.Cleanup })},
		{Key: "energy", Label: "‖ẑ‖²", Decimals: 1, Neutral: true, About: "Mean energy of bundles; m for a true HRR.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.Energy })},
		{Key: "coherence", Label: "Coherence", Decimals: 2, Neutral: true, About: "Standard deviation of the cosines between entries in use; 1/√d for a true HRR.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.Coherence })},
		{Key: "rank_codebook", Label: "Rank C", Decimals: 1, About: "Effective rank of the entries in use, at most d.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.RankCodebook })},
		{Key: "rank_z", Label: "Rank z", Decimals: 1, About: "Effective rank of centred z, at most d.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.RankZ })},
		{Key: "rank_bundle", Label: "Rank ẑ", Decimals: 1, About: "Effective rank of centred ẑ, at most d.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.RankBundle })},
	}
	unseen = []Metric{
		{Key: "unseen_infom", Label: "Unseen InfoM", Decimals: 2, Range: unit, About: "InfoM on images held out of training.", of: leftOut(func(m model.Metrics) model.Score { return m.InfoM })},
		{Key: "unseen_infoe", Label: "Unseen InfoE", Decimals: 2, Range: unit, About: "InfoE on images held out of training; its classifiers are refitted on them.", of: leftOut(func(m model.Metrics) model.Score { return m.InfoE })},
		{Key: "unseen_infoc", Label: "Unseen InfoC", Decimals: 2, Range: unit, About: "InfoC on images held out of training.", of: leftOut(func(m model.Metrics) model.Score { return m.InfoC })},
		{Key: "unseen_psnr", Label: "Unseen PSNR", Unit: "dB", Decimals: 1, About: "PSNR on images held out of training.", of: unseenPSNR},
		{Key: "recombined", Label: "Recombined, unseen", Decimals: 2, Range: unit, About: "Share of held-out images produced by recombining the codes of two training images, within 3 dB of the reconstruction they start from. A factor without slots is a miss.", of: recombined(func(r model.Recombination) model.Score { return r.Unseen.Hits.Value }), within: recombinedWithin(func(r model.Recombination) model.Interval { return r.Unseen.Hits })},
		{Key: "recombined_seen", Label: "Recombined, seen", Decimals: 2, Range: unit, About: "The same for images seen in training: the cost of recombining when nothing is new.", of: recombined(func(r model.Recombination) model.Score { return r.Seen.Hits.Value }), within: recombinedWithin(func(r model.Recombination) model.Interval { return r.Seen.Hits })},
		{Key: "recombined_psnr", Label: "Recombined PSNR", Unit: "dB", Decimals: 1, About: "PSNR of decoded recombinations against the true held-out image, for factors that own slots.", of: recombined(func(r model.Recombination) model.Score { return r.Unseen.PSNR.Value })},
	}
)

// field are the metrics from other papers, with the keys of scores.json.
var field = fieldMetrics()

// fieldMetrics omits the metrics for which higher is not better.
func fieldMetrics() []Metric {
	var all []Metric
	for _, m := range model.FieldMetrics {
		if m.Name != "redundancy_pairs" && m.Name != "size" {
			all = append(all, Metric{Key: "field_" + m.Name, Label: m.Title, Decimals: 2, Range: unit, About: "Rewards: " + m.Asks + ".",
				of: fieldScore(m.Name), chance: fieldChance(m.Name), within: fieldInterval(m.Name)})
		}
	}
	return all
}

// fieldChance returns a reader of a metric's chance level: its value with the factors' rows shuffled.
func fieldChance(name string) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.Field == nil {
			return model.Undefined()
		}
		_, chance, _ := s.Field.Headline(name)
		return chance
	}
}

// fieldInterval returns a reader of a metric's interval over the rows or votes it was measured on.
func fieldInterval(name string) func(model.Scores) model.Interval {
	return func(s model.Scores) model.Interval {
		if s.Field == nil {
			return undefined()
		}
		_, _, interval := s.Field.Headline(name)
		return interval
	}
}

// fieldScore returns a reader of a metric from other papers, undefined before the evaluation.
func fieldScore(name string) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.Field == nil {
			return model.Undefined()
		}
		v, _, _ := s.Field.Headline(name)
		return v
	}
}

// Columns are the paper's metrics, in the order of its tables.
func Columns() []Metric { return columns }

// Further are metrics that the paper does not report.
func Further() []Metric { return further }

// every lists the metrics of a run: the paper's, ours, faithfulness to HRR, those on held-out images, those from other papers, and
// those without labels.
func every() []Metric { return slices.Concat(columns, further, faithful, unseen, field, unlabelled) }

// recorded lists the metrics of a run, including those relative to the other runs of its group.
func recorded() []Metric { return append(every(), udr) }

// AllMetrics lists the metrics of every kind, in the order of a record.
func AllMetrics() []Metric { return every() }

// StepKey is the key in Values of the step at which a run was scored.
const StepKey = "step"

// Values returns the defined metrics of a run's scores by key, and the step at which they were measured.
func Values(s model.Scores) model.Values {
	all := model.Values{StepKey: float64(s.Step)}
	for _, m := range every() {
		if v := m.Of(s); finite(v) {
			all[m.Key] = v
		}
	}
	return all
}

// MetricByKey finds a metric of any kind.
func MetricByKey(key string) (Metric, bool) {
	for _, m := range every() {
		if m.Key == key {
			return m, true
		}
	}
	return Metric{}, false
}

// metrics returns a reader of an InfoMEC or DCI score, undefined before the evaluation.
func metrics(read func(model.Metrics) model.Score) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.Metrics == nil {
			return model.Undefined()
		}
		return read(*s.Metrics)
	}
}

// leftOut returns a reader of an InfoMEC score on held-out images, undefined if there are none.
func leftOut(read func(model.Metrics) model.Score) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.HeldOut == nil || s.HeldOut.Metrics == nil {
			return model.Undefined()
		}
		return read(*s.HeldOut.Metrics)
	}
}

func unseenPSNR(s model.Scores) model.Score {
	if s.HeldOut == nil {
		return model.Undefined()
	}
	return s.HeldOut.PSNR.Value
}

// recombined returns a reader of a score of recombined training codes, undefined if not measured.
func recombined(read func(model.Recombination) model.Score) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.HeldOut == nil || s.HeldOut.Recombination == nil {
			return model.Undefined()
		}
		return read(*s.HeldOut.Recombination)
	}
}

// recombinedWithin returns a reader of a recombination score's interval over targets.
func recombinedWithin(read func(model.Recombination) model.Interval) func(model.Scores) model.Interval {
	return func(s model.Scores) model.Interval {
		if s.HeldOut == nil || s.HeldOut.Recombination == nil {
			return undefined()
		}
		return read(*s.HeldOut.Recombination)
	}
}

func undefined() model.Interval {
	return model.Interval{Value: model.Undefined(), Low: model.Undefined(), High: model.Undefined()}
}

// paperDCI is the view of the latents that agrees with the paper's numbers: one-hot for codes, unchanged for numbers.
func paperDCI(m model.Metrics) model.DCIScore {
	if m.Discrete {
		return m.DCI.OneHot
	}
	return m.DCI.Slots
}

// slotC is the completeness per slot; for numbers, a slot is a single feature anyway.
func slotC(m model.Metrics) model.Score {
	if m.Discrete {
		return m.DCI.SlotSum.C
	}
	return m.DCI.Slots.C
}

// truth returns a reader of swaps compared with the true images, undefined if not measured.
func truth(read func(model.SwapTruth) model.Score) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.SwapTruth == nil {
			return model.Undefined()
		}
		return read(*s.SwapTruth)
	}
}

// faithfulness returns a reader of a score of HRR models, undefined for baselines and if not measured.
func faithfulness(read func(model.Faithfulness) model.Score) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.Faithfulness == nil {
			return model.Undefined()
		}
		return read(*s.Faithfulness)
	}
}

// joint returns a reader of the joint entropy of codes, undefined for models without codes and if not measured.
func joint(read func(model.JointEntropy) float64) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.Usage == nil || s.Usage.Joint == nil {
			return model.Undefined()
		}
		return model.Score(read(*s.Usage.Joint))
	}
}

// determined is the total redundancy, undefined if the evaluation set was too small to estimate it.
func determined(s model.Scores) model.Score {
	if s.Field == nil || s.Field.Redundancy == nil || s.Field.Redundancy.Undetermined != "" {
		return model.Undefined()
	}
	return s.Field.Redundancy.ChaoShen.Redundancy
}

// retrievalSNR is the signal-to-noise ratio of retrievals with a known mean cosine to the chosen entries; 0 if the cosine is negative.
func retrievalSNR(f model.Faithfulness) model.Score {
	c := max(0, f.CosRetrieval)
	return c * c / (1 - c*c)
}

func coverage(m model.Metrics) model.Score {
	if m.Ownership == nil {
		return model.Undefined()
	}
	return m.Ownership.Coverage
}

func exactSwaps(s model.Scores) model.Score {
	if s.Swap == nil {
		return model.Undefined()
	}
	return s.Swap.Exact.Value
}
