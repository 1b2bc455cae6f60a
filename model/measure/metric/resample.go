package metric

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"slotscope/model"
)

// Minimum half-widths of Spread.
const (
	voteFloor    = 0.01
	shuffleFloor = 0.001
	chanceFloor  = 0.002
)

// Seeds of NumPy's generator in the reference program; a measurement adds its own seed.
const (
	labelSeed      = 7
	redundancySeed = 8
	chanceSeed     = 9
)

// Purposes of the other random numbers of these scores.
const (
	forHalves = 1 + iota
	forBootstrap
	forVotes
	forVoteChance
	forUDR
	forCapacity
)

// stream returns an independent random generator for each purpose and repeat.
func stream(seed int64, purpose, repeat int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(seed), uint64(purpose)<<32|uint64(repeat)))
}

// spreadOf summarizes repeats. Two means of ten values from the same distribution differ by more than four standard errors once in
// 15,000 times.
//
//	band_one = max(floor, 4s √(1 + 1/r)),  band_ten = max(floor/2, 4s √(1/10 + 1/r))
func spreadOf(x []float64, floor float64) model.Spread {
	s, r := math.Sqrt(variance(x)), float64(len(x))
	return model.Spread{Mean: model.Score(mean(x)), Std: model.Score(s), SE: model.Score(s / math.Sqrt(r)), Repeats: len(x),
		BandOne: model.Score(max(floor, 4*s*math.Sqrt(1+1/r))), BandTen: model.Score(max(floor/2, 4*s*math.Sqrt(1.0/10+1/r)))}
}

// halves is the number of half-samples of an interval.
const halves = 40

// halfSample draws half of n rows without replacement.
func halfSample(n int, rng *rand.Rand) []int {
	rows := rng.Perm(n)[:n/2]
	slices.Sort(rows)
	return rows
}

// halvesInterval is the 95% interval of a score, computed from its values on half-samples.
//
//	θ ± 1.96 s,  s the standard deviation over half-samples            delete-half jackknife; Shao & Wu 1989
//
// A half-sample contains no row twice, because repeated rows of a bootstrap look like information. The interval is centred on the
// measured score and does not account for its bias. It is clipped to [least, most].
func halvesInterval(value model.Score, x []float64, least, most float64) (model.Interval, bool) {
	x = slices.DeleteFunc(slices.Clone(x), math.IsNaN)
	if !value.Defined() || len(x) < halves/2 {
		return model.Interval{}, false
	}
	half := distuv.UnitNormal.Quantile(0.975) * math.Sqrt(variance(x))
	return model.Interval{Value: value, Low: max(model.Score(least), value-model.Score(half)), High: min(model.Score(most), value+model.Score(half))}, true
}

// bootstrapInterval is the 95% interval between quantiles of bootstrap values.
func bootstrapInterval(value model.Score, x []float64) (model.Interval, bool) {
	x = slices.DeleteFunc(slices.Clone(x), math.IsNaN)
	if !value.Defined() || len(x) < bootstraps/2 {
		return model.Interval{}, false
	}
	slices.Sort(x)
	at := func(q float64) model.Score { return model.Score(x[int(math.Round(q*float64(len(x)-1)))]) }
	return model.Interval{Value: value, Low: min(value, at(0.025)), High: max(value, at(0.975))}, true
}

// meanInterval is the 95% interval of a mean over rows or runs.
//
//	x̄ ± t(0.975, n−1) · s/√n            s with Bessel's correction
func meanInterval(x []float64) (model.Interval, bool) {
	if len(x) < 2 {
		return model.Interval{}, false
	}
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(len(x) - 1)}.Quantile(0.975) * math.Sqrt(variance(x)/float64(len(x)))
	return model.Interval{Value: model.Score(mean(x)), Low: model.Score(max(0, mean(x)-half)), High: model.Score(min(1, mean(x)+half))}, true
}
