package verdict

import (
	"fmt"
	"math"
	"slices"

	"slotscope/model"
)

// Rule is one test of a run; When describes in a sentence when it holds.
type Rule struct {
	Key  string
	Kind Kind
	When string

	holds func(Progress) (why string, ok bool)
}

// Rules returns the rules in the order in which they are tried.
func Rules() []Rule { return slices.Clone(rules) }

// Limits of the rules.
const (
	firstSteps   = 200  // step from which loss and perplexity are judged
	lossFactor   = 1.5  // times the lowest tenth
	psnrDrop     = 3.0  // dB below the best
	fallen       = 0.5  // times the highest tenth
	leastShare   = 0.02 // perplexity / entries
	leastEntries = 2.0
	rankSteps    = 1000 // step from which the codebook's rank is judged
	leastRank    = 2.0
	qlaeFactor   = 1.2 // times m: with one code per slot, QLAE's perplexity is m
	earlierRuns  = 3   // minimum number of earlier runs to be behind
	earlierSD    = 2.0 // standard deviations below their mean
	plateauEvals = 9
	plateauRise  = 0.1 // dB over the last third of the evaluations
)

var rules = []Rule{
	{"no-points", None, "The run has no points yet.", noPoints},
	{"not-finite", Diverging, "The newest total loss is NaN or infinite.", notFinite},
	{"loss-rose", Diverging, "From step 200: the median total loss of the last tenth of the steps is more than 1.5 times that of the lowest earlier tenth.", lossRose},
	{"psnr-fell", Diverging, "The two newest PSNRs are more than 3 dB below the run's best; a single low value is common.", psnrFell},
	{"perplexity-fell", Collapsing, "From step 200: the median perplexity (window) of the last tenth of the steps is below half of the highest earlier tenth.", perplexityFell},
	{"perplexity-low", Collapsing, "From step 200 and after a tenth of the steps: perplexity (window) is below 2 or 2% of the codebook's entries, whichever is higher; for QLAE, below 1.2 times the number of slots.", perplexityLow},
	{"rank-low", Collapsing, "From step 1,000 and after a tenth of the steps: the two newest effective ranks of the codebook entries in use are below 2, so the entries lie nearly on a line; HRR only.", rankLow},
	{"latents-off", Collapsing, "From step 200: no latent of a VAE is active, or fewer than half as many as at the run's best.", latentsOff},
	{"early", Early, "The run has not ended, and has done fewer than 200 steps and less than a tenth of its steps.", early},
	{"behind", Behind, "PSNR or InfoM is below each of at least three earlier runs of the same configuration at the same step, and more than two standard deviations below their mean.", behind},
	{"plateau", Plateau, "The run has not ended and has at least nine evaluations; the best PSNR of the last third of them is less than 0.1 dB above the best before.", plateau},
	{"healthy", Healthy, "No other rule applies.", func(Progress) (string, bool) { return "", true }},
}

func noPoints(p Progress) (string, bool) { return "", p.last() == 0 }

func notFinite(p Progress) (string, bool) {
	s, ok := newest(p.Series[total])
	if !ok || finite(s.Value) {
		return "", false
	}
	return fmt.Sprintf("the total loss is %v at step %s", s.Value, count(s.Step)), true
}

func lossRose(p Progress) (string, bool) {
	now, low, high, ok := tenths(p.Series[total])
	if !ok || p.last() < firstSteps || now <= low+(lossFactor-1)*math.Abs(low) || now-low < 0.1*(high-low) {
		return "", false
	}
	return fmt.Sprintf("the total loss rose from %s to %s (limit %s)", number(low), number(now), number(low+(lossFactor-1)*math.Abs(low))), true
}

func psnrFell(p Progress) (string, bool) {
	s := finites(p.Series[psnr])
	if len(s) < 3 {
		return "", false
	}
	best := highest(s)
	now := s[len(s)-1]
	if max(now.Value, s[len(s)-2].Value) >= best.Value-psnrDrop {
		return "", false
	}
	return fmt.Sprintf("PSNR fell from %.1f dB at step %s to %.1f dB (limit %.1f dB)", best.Value, count(best.Step), now.Value, best.Value-psnrDrop), true
}

func perplexityFell(p Progress) (string, bool) {
	now, _, high, ok := tenths(p.Series[window])
	if !ok || p.last() < firstSteps || now >= fallen*high {
		return "", false
	}
	return fmt.Sprintf("perplexity fell from %s to %s (limit %s)", number(high), number(now), number(fallen*high)), true
}

func perplexityLow(p Progress) (string, bool) {
	s, ok := newest(finites(p.Series[window]))
	if !ok || !p.Config.Discrete() || p.last() < firstSteps || 10*p.last() < p.Config.Steps {
		return "", false
	}
	least := math.Max(leastEntries, leastShare*float64(p.Config.Entries()))
	if p.Config.Model == "qlae" {
		least = qlaeFactor * float64(p.Config.M)
	}
	if s.Value >= least {
		return "", false
	}
	return fmt.Sprintf("perplexity is %s (limit %s of %s entries)", number(s.Value), number(least), count(p.Config.Entries())), true
}

func rankLow(p Progress) (string, bool) {
	s := finites(p.Series[rank])
	if len(s) < 2 || p.last() < rankSteps || 10*p.last() < p.Config.Steps {
		return "", false
	}
	now := s[len(s)-1]
	if max(now.Value, s[len(s)-2].Value) >= leastRank {
		return "", false
	}
	return fmt.Sprintf("the entries in use have rank %.1f at step %s (limit %g)", now.Value, count(now.Step), leastRank), true
}

func latentsOff(p Progress) (string, bool) {
	now, _, high, ok := tenths(p.Series[active])
	if !ok || p.last() < firstSteps || now > 0 && now >= fallen*high {
		return "", false
	}
	return fmt.Sprintf("%s of %s latents are active, after %s at best", number(now), count(p.Config.M), number(high)), true
}

func early(p Progress) (string, bool) {
	return "", p.last() < firstSteps && 10*p.last() < p.Config.Steps && !p.State.Ended()
}

func behind(p Progress) (string, bool) {
	for _, name := range Compared() {
		s, ok := newest(finites(p.Series[name]))
		if !ok {
			continue
		}
		others := p.others(name)
		if len(others) < earlierRuns {
			continue
		}
		mean, sd := moments(others)
		if least := slices.Min(others); s.Value < least && s.Value < mean-earlierSD*sd {
			return fmt.Sprintf("%s is %s; %d earlier runs had %s to %s at this step", label(name), amount(name, s.Value), len(others), amount(name, least), amount(name, slices.Max(others))), true
		}
	}
	return "", false
}

func plateau(p Progress) (string, bool) {
	s := finites(p.Series[psnr])
	if p.State.Ended() || len(s) < plateauEvals {
		return "", false
	}
	cut := len(s) - len(s)/3
	before, since := highest(s[:cut]), highest(s[cut:])
	if since.Value-before.Value >= plateauRise {
		return "", false
	}
	return fmt.Sprintf("the best PSNR is %.2f dB since step %s and was %.2f dB before", since.Value, count(s[cut].Step), before.Value), true
}

// others returns the finite values of a series in earlier runs.
func (p Progress) others(name string) (all []float64) {
	for _, e := range p.Earlier {
		if v, ok := e[name]; ok && finite(v) {
			all = append(all, v)
		}
	}
	return all
}

// tenths returns medians over ten equal spans of a series' steps: that of the last, and the lowest and highest of the nine before it.
func tenths(s []model.Sample) (now, low, high float64, ok bool) {
	s = finites(s)
	if len(s) < 10 {
		return 0, 0, 0, false
	}
	spans := make([][]float64, 10)
	first, length := s[0].Step, s[len(s)-1].Step-s[0].Step+1
	for _, x := range s {
		i := (x.Step - first) * 10 / length
		spans[i] = append(spans[i], x.Value)
	}
	low, high = math.Inf(1), math.Inf(-1)
	for _, span := range spans[:9] {
		if len(span) > 0 {
			m := median(span)
			low, high = min(low, m), max(high, m)
		}
	}
	return median(spans[9]), low, high, true // the last sample is in the last span, the first in the first
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func moments(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean) / float64(len(v)-1)
	}
	return mean, math.Sqrt(sd)
}

func newest(s []model.Sample) (model.Sample, bool) {
	if len(s) == 0 {
		return model.Sample{}, false
	}
	return s[len(s)-1], true
}

func highest(s []model.Sample) model.Sample {
	return slices.MaxFunc(s, func(a, b model.Sample) int {
		switch {
		case a.Value < b.Value:
			return -1
		case a.Value > b.Value:
			return 1
		}
		return 0
	})
}

func finites(s []model.Sample) (out []model.Sample) {
	for _, x := range s {
		if finite(x.Value) {
			out = append(out, x)
		}
	}
	return out
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
