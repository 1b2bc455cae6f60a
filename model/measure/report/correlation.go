package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"slotscope/model/measure/figure"
	"slotscope/model/measure/metric"
)

// leastCorrelated is the minimum number of runs for a correlation of metrics.
const leastCorrelated = 5

// CorrelationFigures draws, for each dataset, Spearman's rank correlation of each pair of metrics over all runs: how far they agree on
// which runs are better. It skips datasets with fewer than five scored runs or fewer than two metrics that vary.
func (s Section) CorrelationFigures(prefix string) []figure.Figure {
	var all []figure.Figure
	for _, d := range s.Datasets() {
		metrics, values := s.correlated(d)
		if len(metrics) < 2 {
			continue
		}
		h := figure.HeatMap{Name: slug(prefix, d, "correlation"), Title: "Rank correlation of metrics · " + DatasetLabel(d), Range: [2]float64{-1, 1}, Signed: true, Corner: "Spearman's ρ",
			Note: fmt.Sprintf("Over %d runs. 1: both metrics rank the runs in the same order; 0: the rankings are unrelated; −1: one is the reverse of the other.", len(values[0]))}
		for i, m := range metrics {
			h.Rows, h.Columns = append(h.Rows, m.Label), append(h.Columns, m.Label)
			row := make([]float64, len(metrics))
			for j := range metrics {
				row[j] = rankCorrelation(values[i], values[j])
			}
			h.Value = append(h.Value, row)
		}
		all = append(all, h.Draw())
	}
	return all
}

// correlated returns the metrics that all scored runs on a dataset have and that vary, with their values by run.
func (s Section) correlated(dataset string) (metrics []Metric, values [][]float64) {
	var entries []Entry
	for _, g := range s.Of(dataset) {
		for _, e := range g.Entries {
			if e.Scores != nil && (e.Scores.Metrics != nil || e.Scores.Field != nil) {
				entries = append(entries, e)
			}
		}
	}
	if len(entries) < leastCorrelated {
		return nil, nil
	}
	for _, m := range slices.Concat(columns, field) {
		var x []float64
		for _, e := range entries {
			x = append(x, m.Of(*e.Scores))
		}
		if !slices.ContainsFunc(x, math.IsNaN) && slices.Min(x) < slices.Max(x) {
			metrics, values = append(metrics, m), append(values, x)
		}
	}
	return metrics, values
}

// rankCorrelation is Pearson's correlation of mid-ranks: Spearman's ρ.
func rankCorrelation(x, y []float64) float64 {
	return stat.Correlation(metric.MidRanks(x), metric.MidRanks(y), nil)
}
