package sweep

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Race is successive halving whose budget is seeds: every setting runs with Least seeds, then after each further seed the worse half of the
// settings at most is out, and of those only the ones that are worse than the best beyond doubt. A setting that is out gets no more
// seeds. What a run measures is its final InfoM, so that no setting is judged by a shortened training.
type Race struct {
	Least int `json:"least"`
}

const leastRaced = 2 // seeds for an interval

// race looks at the settings of one model on one dataset, seed by seed. A seed's runs begin once those of the seeds before it have ended.
func (l *looker) race(i int, part Part, dataset, name string, settings []map[string]string) {
	scores := make([][]float64, len(settings))
	left := slices.Repeat([]bool{true}, len(settings))
	ended, closed := true, false
	for j, seed := range part.Seeds {
		if j >= part.Race.Least && !closed && slices.Index(left, true) != last(left) { // one alone has nobody to race with
			if closed = !ended; !closed {
				drop(scores, left)
			}
		}
		for s, set := range settings {
			item, err := l.plan.Item(i, name, dataset, seed, set)
			if err != nil {
				continue
			}
			found := l.add(item)
			if !left[s] {
				continue
			}
			l.wants(item.ID, !closed)
			ended = ended && found.Ended()
			if v := infoM(found.Found); !math.IsNaN(v) {
				scores[s] = append(scores[s], v)
			}
		}
	}
}

// drop takes out of the race at most half of the settings left, the worst first: those for which Welch's 95% interval of the best's lead
// lies above 0.
func drop(scores [][]float64, left []bool) {
	type mean struct {
		setting int
		value   float64
	}
	var ranked []mean
	for s, in := range left {
		if in && len(scores[s]) >= leastRaced {
			ranked = append(ranked, mean{s, stat.Mean(scores[s], nil)})
		}
	}
	slices.SortStableFunc(ranked, func(a, b mean) int { return cmp.Compare(b.value, a.value) })
	for i := len(ranked) - 1; i >= (len(ranked)+1)/2; i-- {
		if lead(scores[ranked[0].setting], scores[ranked[i].setting]) > 0 {
			left[ranked[i].setting] = false
		}
	}
}

// last is where the last setting stands that is left.
func last(left []bool) int {
	for i := len(left) - 1; i >= 0; i-- {
		if left[i] {
			return i
		}
	}
	return -1
}

// lead is the lower end of Welch's 95% interval of the difference of two means.
//
//	(x̄ − ȳ) − t(0.975, ν)·√(s²ₓ/n + s²ᵧ/m),  ν by Welch and Satterthwaite
func lead(x, y []float64) float64 {
	meanX, varX := stat.MeanVariance(x, nil)
	meanY, varY := stat.MeanVariance(y, nil)
	a, b := varX/float64(len(x)), varY/float64(len(y))
	if a+b == 0 {
		return meanX - meanY
	}
	nu := (a + b) * (a + b) / (a*a/float64(len(x)-1) + b*b/float64(len(y)-1))
	return meanX - meanY - distuv.StudentsT{Mu: 0, Sigma: 1, Nu: nu}.Quantile(0.975)*math.Sqrt(a+b)
}
