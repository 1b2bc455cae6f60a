// Package report turns runs and their scores into what one cites: tables with intervals, the paper's values beside them,
// figures, and files that carry all of it. The same runs give the same bytes.
package report

import (
	"math"
	"slices"

	"slotscope/model"
)

// Metric is one column of a table of scores. Higher is better unless it is Neutral.
type Metric struct {
	Key      string // in files and addresses
	Label    string
	Unit     string
	Decimals int    // where there is no interval to round to
	About    string // one sentence
	Range    [2]float64
	Neutral  bool // neither direction is better: never set in bold, and nothing wins by it

	of     func(model.Scores) model.Score
	chance func(model.Scores) model.Score    // the same score without the factors' order of rows; nil where it is not measured
	within func(model.Scores) model.Interval // 95% interval of one run's score; nil where it has none
}

// Of reads the metric from a run's scores; NaN where it was not measured or is undefined.
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
		{Key: "infom", Label: "InfoM", Decimals: 2, Range: unit, About: "Modularity: each slot tells of one factor.", of: metrics(func(m model.Metrics) model.Score { return m.InfoM })},
		{Key: "infoe", Label: "InfoE", Decimals: 2, Range: unit, About: "Explicitness: factors can be read off linearly. In-sample: near 1 for any large codebook in even use.", of: metrics(func(m model.Metrics) model.Score { return m.InfoE })},
		{Key: "infoc", Label: "InfoC", Decimals: 2, Range: unit, About: "Compactness: each factor lies in one slot.", of: metrics(func(m model.Metrics) model.Score { return m.InfoC })},
		{Key: "d", Label: "D", Decimals: 2, Range: unit, About: "DCI disentanglement, by random forests.", of: metrics(func(m model.Metrics) model.Score { return paperDCI(m).D })},
		{Key: "i", Label: "I", Decimals: 2, Range: unit, About: "DCI informativeness: accuracy on held-out rows.", of: metrics(func(m model.Metrics) model.Score { return paperDCI(m).I })},
		{Key: "c", Label: "C", Decimals: 2, Range: unit, About: "DCI completeness. Over one-hot codes, as the paper must have computed it, even a perfect code stays near 0.45.", of: metrics(func(m model.Metrics) model.Score { return paperDCI(m).C })},
		{Key: "psnr", Label: "PSNR", Unit: "dB", Decimals: 1, About: "Of reconstructions against the images, mean over images.", of: func(s model.Scores) model.Score { return model.Score(s.PSNR) }},
	}
	further = []Metric{
		{Key: "infoe_heldout", Label: "InfoE held out", Decimals: 2, Range: unit, About: "InfoE fitted on nine rows in ten and measured on the tenth. Ours, not the paper's.", of: metrics(func(m model.Metrics) model.Score { return m.InfoEHeldOut })},
		{Key: "c_slots", Label: "C by slot", Decimals: 2, Range: unit, About: "DCI completeness with importances summed over each slot: 1 is within reach.", of: metrics(slotC)},
		{Key: "swap_exact", Label: "Exact swaps", Decimals: 2, Range: unit, About: "Share of single-slot swaps that change the slot's own factor and no other.", of: exactSwaps},
		{Key: "swap_truth_group", Label: "True group swaps", Decimals: 2, Range: unit, About: "Share of swaps of all slots of a factor that give the picture which the dataset has of A's factors with that one from B, within 3 dB of the reconstruction of A.", of: truth(func(s model.SwapTruth) model.Score { return s.Group.Value })},
		{Key: "swap_truth_single", Label: "True single swaps", Decimals: 2, Range: unit, About: "The same of single slots that a factor owns.", of: truth(func(s model.SwapTruth) model.Score { return s.Single.Value })},
		{Key: "coverage", Label: "Coverage", Decimals: 2, Range: unit, About: "Share of factors that own a slot: NMI of at least 0.5, and 0.2 above the slot's second factor.", of: metrics(coverage)},
	}
	// unlabelled tell of representations without any label of a factor.
	unlabelled = []Metric{
		{Key: "joint_entropy", Label: "H(c₁…c_m)", Unit: "nats", Decimals: 2, Neutral: true, About: "Joint entropy of the slots' codes, plug-in: a lower bound where most images have a combination of codes of their own.", of: joint(func(j model.JointEntropy) float64 { return j.Nats })},
		{Key: "joint_coverage", Label: "Coverage of codes", Decimals: 2, Range: unit, Neutral: true, About: "Share of images whose combination of codes another image takes too. Below 0.9 the joint entropy is a lower bound.", of: joint(func(j model.JointEntropy) float64 { return j.Coverage })},
		{Key: "redundancy_pairs", Label: "Redundancy of pairs", Unit: "nats", Decimals: 2, Neutral: true, About: "Information that pairs of slots share beyond chance, summed. Lower repeats less; 0 also where slots say nothing.", of: fieldScore("redundancy_pairs"), chance: fieldChance("redundancy_pairs")},
		{Key: "redundancy", Label: "Redundancy", Unit: "nats", Decimals: 2, Neutral: true, About: "Total correlation of the slots by Chao and Shen's entropy; no value where fewer than half of the images share their combination of codes.", of: determined},
		{Key: "retrieval_snr", Label: "SNR of ṽ", Decimals: 2, Neutral: true, About: "Of raw retrievals from the encoder's z: c²/(1 − c²) for their mean cosine c with the entries taken; of a true HRR 1/m.", of: faithfulness(retrievalSNR)},
	}
	// udr is a score of a run among the runs of its group, which Group.Agree measures.
	udr      = Metric{Key: UDRKey, Label: "UDR", Decimals: 2, Range: unit, About: "Agreement of the slots of seeds with one another, one to one: median over the other seeds of the group. Chooses among models without labels.", of: func(model.Scores) model.Score { return model.Undefined() }}
	faithful = []Metric{
		{Key: "cos_bundle", Label: "cos(z, ẑ)", Decimals: 2, About: "Of the encoder's z and the bundle of its own codes; of a true HRR near 1.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.CosBundle })},
		{Key: "cos_retrieval", Label: "cos(ṽ, q)", Decimals: 2, About: "Of raw retrievals and the entries taken; of a true HRR 1/√(1+m).", of: faithfulness(func(f model.Faithfulness) model.Score { return f.CosRetrieval })},
		{Key: "cos_denoised", Label: "cos(v̄, q)", Decimals: 3, About: "Of denoised retrievals and the entries taken; of a true HRR near 1.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.CosDenoised })},
		{Key: "reencode", Label: "Re-encoded", Decimals: 2, Range: unit, About: "Share of codes that the model's own retrieval reads from ẑ again; of a true HRR near 1.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.Reencode })},
		{Key: "cleanup", Label: "Cleaned up", Decimals: 2, Range: unit, About: "The same by plain unbinding and the nearest entry, without denoiser; of a true HRR near 1 within capacity.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.Cleanup })},
		{Key: "energy", Label: "‖ẑ‖²", Decimals: 1, Neutral: true, About: "Mean energy of bundles; of a true HRR m.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.Energy })},
		{Key: "coherence", Label: "Coherence", Decimals: 2, Neutral: true, About: "Standard deviation of the cosines of entries in use; of a true HRR 1/√d.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.Coherence })},
		{Key: "rank_codebook", Label: "Rank C", Decimals: 1, About: "Effective rank of the entries in use, at most d.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.RankCodebook })},
		{Key: "rank_z", Label: "Rank z", Decimals: 1, About: "Effective rank of centred z, at most d.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.RankZ })},
		{Key: "rank_bundle", Label: "Rank ẑ", Decimals: 1, About: "Effective rank of centred ẑ, at most d.", of: faithfulness(func(f model.Faithfulness) model.Score { return f.RankBundle })},
	}
	unseen = []Metric{
		{Key: "unseen_infom", Label: "Unseen InfoM", Decimals: 2, Range: unit, About: "InfoM of images that the run's part of a dataset leaves out.", of: leftOut(func(m model.Metrics) model.Score { return m.InfoM })},
		{Key: "unseen_infoe", Label: "Unseen InfoE", Decimals: 2, Range: unit, About: "InfoE of images that training left out; its classifiers are fitted on them again.", of: leftOut(func(m model.Metrics) model.Score { return m.InfoE })},
		{Key: "unseen_infoc", Label: "Unseen InfoC", Decimals: 2, Range: unit, About: "InfoC of images that training left out.", of: leftOut(func(m model.Metrics) model.Score { return m.InfoC })},
		{Key: "unseen_psnr", Label: "Unseen PSNR", Unit: "dB", Decimals: 1, About: "PSNR of images that training left out.", of: unseenPSNR},
		{Key: "recombined", Label: "Recombined, unseen", Decimals: 2, Range: unit, About: "Share of pictures that training left out which codes of two of its own images give, put together: within 3 dB of the reconstruction that they start from. A factor without slots is a miss.", of: recombined(func(r model.Recombination) model.Score { return r.Unseen.Hits.Value }), within: recombinedWithin(func(r model.Recombination) model.Interval { return r.Unseen.Hits })},
		{Key: "recombined_seen", Label: "Recombined, seen", Decimals: 2, Range: unit, About: "The same of pictures that training showed: what putting together costs where nothing is new.", of: recombined(func(r model.Recombination) model.Score { return r.Seen.Hits.Value }), within: recombinedWithin(func(r model.Recombination) model.Interval { return r.Seen.Hits })},
		{Key: "recombined_psnr", Label: "Recombined PSNR", Unit: "dB", Decimals: 1, About: "Of decoded recombinations against the true picture that training left out, where the factor owns slots.", of: recombined(func(r model.Recombination) model.Score { return r.Unseen.PSNR.Value })},
	}
)

// field are the scores that other papers report, by the keys of scores.json.
var field = fieldMetrics()

// fieldMetrics leaves out those that are not better the higher they are.
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

// fieldChance reads what one of the field's scores is with the factors' rows shuffled.
func fieldChance(name string) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.Field == nil {
			return model.Undefined()
		}
		_, chance, _ := s.Field.Headline(name)
		return chance
	}
}

// fieldInterval reads the interval of one of the field's scores over the rows, or the votes, that it was measured on.
func fieldInterval(name string) func(model.Scores) model.Interval {
	return func(s model.Scores) model.Interval {
		if s.Field == nil {
			return undefined()
		}
		_, _, interval := s.Field.Headline(name)
		return interval
	}
}

// fieldScore reads one of the field's scores, undefined before the evaluation.
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

// every metric of a run: the paper's, ours, faithfulness to HRR, those of images that runs were not trained on, the field's, and those
// without labels.
func every() []Metric { return slices.Concat(columns, further, faithful, unseen, field, unlabelled) }

// recorded are the metrics of runs, and those that a run has among the others of its group.
func recorded() []Metric { return append(every(), udr) }

// AllMetrics are the metrics of every kind, in the order of a record.
func AllMetrics() []Metric { return every() }

// StepKey is what Values call the step at which a run was scored.
const StepKey = "step"

// Values are the metrics of a run's scores that are defined, by key, and the step at which they were measured.
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

// metrics reads one of InfoMEC and DCI, undefined before the evaluation.
func metrics(read func(model.Metrics) model.Score) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.Metrics == nil {
			return model.Undefined()
		}
		return read(*s.Metrics)
	}
}

// leftOut reads one of InfoMEC on what training left out, undefined where it left out nothing.
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

// recombined reads codes of training images put together, undefined where that was not measured.
func recombined(read func(model.Recombination) model.Score) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.HeldOut == nil || s.HeldOut.Recombination == nil {
			return model.Undefined()
		}
		return read(*s.HeldOut.Recombination)
	}
}

// recombinedWithin reads an interval over targets.
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

// paperDCI is the view of the latents that agrees with the paper's numbers: codes one-hot, numbers as they are.
func paperDCI(m model.Metrics) model.DCIScore {
	if m.Discrete {
		return m.DCI.OneHot
	}
	return m.DCI.Slots
}

// slotC is completeness per slot; for numbers a slot is one feature anyway.
func slotC(m model.Metrics) model.Score {
	if m.Discrete {
		return m.DCI.SlotSum.C
	}
	return m.DCI.Slots.C
}

// truth reads swaps against the truth, undefined where they were not measured.
func truth(read func(model.SwapTruth) model.Score) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.SwapTruth == nil {
			return model.Undefined()
		}
		return read(*s.SwapTruth)
	}
}

// faithfulness reads a figure of HRR models, undefined for baselines and where it was not measured.
func faithfulness(read func(model.Faithfulness) model.Score) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.Faithfulness == nil {
			return model.Undefined()
		}
		return read(*s.Faithfulness)
	}
}

// joint reads the joint entropy of codes, undefined for models without codes and where it was not measured.
func joint(read func(model.JointEntropy) float64) func(model.Scores) model.Score {
	return func(s model.Scores) model.Score {
		if s.Usage == nil || s.Usage.Joint == nil {
			return model.Undefined()
		}
		return model.Score(read(*s.Usage.Joint))
	}
}

// determined is the total redundancy where the evaluation set was large enough to tell.
func determined(s model.Scores) model.Score {
	if s.Field == nil || s.Field.Redundancy == nil || s.Field.Redundancy.Undetermined != "" {
		return model.Undefined()
	}
	return s.Field.Redundancy.ChaoShen.Redundancy
}

// retrievalSNR is signal by noise of retrievals whose mean cosine with the entries taken is known; 0 where they point away from them.
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
