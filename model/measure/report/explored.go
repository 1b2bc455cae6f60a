package report

import (
	"cmp"
	"math"
	"slices"

	"slotscope/model/measure/importance"
	"slotscope/model/sweep"
)

// Explored is the runs of a sweep with one score.
type Explored struct {
	sweep.Exploration
	Metric Metric
	Scores []float64 // of each row; NaN if missing
}

// Explore adds a score to the runs of a sweep.
func Explore(e sweep.Exploration, m Metric) Explored {
	out := Explored{Exploration: e, Metric: m}
	for _, r := range e.Rows {
		v := math.NaN()
		if r.Scores != nil {
			v = m.Of(*r.Scores)
		}
		out.Scores = append(out.Scores, v)
	}
	return out
}

// Measured returns the metrics that at least one run has.
func (e Explored) Measured() []Metric {
	return slices.DeleteFunc(slices.Clone(AllMetrics()), func(m Metric) bool {
		return !slices.ContainsFunc(e.Rows, func(r sweep.Row) bool { return r.Scores != nil && !math.IsNaN(m.Of(*r.Scores)) })
	})
}

// Scored counts the runs with the score.
func (e Explored) Scored() int { return len(e.values(func(sweep.Row) bool { return true })) }

func (e Explored) values(of func(sweep.Row) bool) (v []float64) {
	for k, r := range e.Rows {
		if of(r) && !math.IsNaN(e.Scores[k]) {
			v = append(v, e.Scores[k])
		}
	}
	return v
}

// At returns the scores of the runs with a level of a parameter, over all other parameters.
func (e Explored) At(parameter, level int) []float64 {
	return e.values(func(r sweep.Row) bool { return r.Levels[parameter] == level })
}

// Range returns the lowest and highest score; low > high if no run has one.
func (e Explored) Range() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range e.values(func(sweep.Row) bool { return true }) {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// Order returns the indices of the rows, highest score first, those without one last.
func (e Explored) Order() []int {
	order := make([]int, len(e.Rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := e.Scores[a], e.Scores[b]
		if math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Compare(map[bool]int{true: 1}[math.IsNaN(x)], map[bool]int{true: 1}[math.IsNaN(y)])
		}
		return cmp.Compare(y, x)
	})
	return order
}

// Importances returns the share of the score's variance that each parameter alone explains; the last element is that of the seed, which
// is chance. ok is false if too few runs have a score or nothing differs.
func (e Explored) Importances() (all []importance.Input, ok bool) {
	var x [][]float64
	var y []float64
	var group []int
	for k, r := range e.Rows {
		if !math.IsNaN(e.Scores[k]) {
			x, y, group = append(x, append(slices.Clone(r.Numbers), float64(r.Config.Seed))), append(y, e.Scores[k]), append(group, r.Setting)
		}
	}
	if len(e.Parameters) == 0 {
		return nil, false
	}
	return importance.Of(x, y, group, 0)
}
