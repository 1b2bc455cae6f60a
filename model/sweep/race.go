package sweep

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Race is successive halving with seeds as the budget: every setting runs with Least seeds; before each further seed, at most the worse half
// of the settings drops out, and only those that are significantly worse than the best. A setting that is out gets no more seeds. Settings
// are compared by the final InfoM of their runs, so none is judged by a shortened training.
type Race struct {
	Least int `json:"least"`
}

const leastRaced = 2 // seeds needed for an interval

// race adds the settings of one model on one dataset, seed by seed. A seed's runs begin once those of previous seeds have ended.
func (l *looker) race(i int, part Part, dataset, name string, settings []map[string]string) {
	scores := make([][]float64, len(settings))
	left := slices.Repeat([]bool{true}, len(settings))
	ended, closed := true, false
	for j, seed := range part.Seeds {
		if j >= part.Race.Least && !closed && slices.Index(left, true) != last(left) { // skip if only one setting is left
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

// drop removes at most half of the remaining settings from the race: those for which Welch's 95% interval of the best setting's lead lies
// above 0.
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

// last returns the index of the last remaining setting.
func last(left []bool) int {
	for i := len(left) - 1; i >= 0; i-- {
		if left[i] {
			return i
		}
	}
	return -1
}

// lead returns the lower end of Welch's 95% interval of the difference of two means.
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
