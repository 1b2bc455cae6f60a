package report

import (
	"math"
	"strings"
	"testing"

	"slotscope/model"
)

// TestCorrelationFigures: metrics with the same order of runs have ρ 1, opposite ones −1; metrics missing from a run are omitted.
func TestCorrelationFigures(t *testing.T) {
	w := &world{}
	for i := range 5 {
		v := 0.5 + 0.1*float64(i)
		e := w.add("hrr", "shapes3d", int64(i), v, 30, nil)
		e.Scores.Field = &model.FieldScores{Scores: map[string]model.Score{"mig": model.Score(1 - v), "sap": model.Score(v * v)}}
		if i > 0 {
			e.Scores.Field.Scores["irs"] = model.Score(v)
		}
	}
	s := reportOf(t, w).Sections[0]
	metrics, values := s.correlated("shapes3d")
	at := map[string]int{}
	for i, m := range metrics {
		at[m.Key] = i
	}
	if _, there := at["field_irs"]; there || len(values[0]) != 5 {
		t.Fatalf("metrics %v of %d runs", at, len(values[0]))
	}
	for other, want := range map[string]float64{"field_mig": -1, "field_sap": 1, "infoc": 1} {
		if got := rankCorrelation(values[at["infom"]], values[at[other]]); math.Abs(got-want) > 1e-12 {
			t.Errorf("InfoM and %s: %v, want %v", other, got, want)
		}
	}
	figures := s.CorrelationFigures("s1")
	if len(figures) != 1 || !strings.Contains(string(figures[0].SVG()), "Over 5 runs") || !strings.Contains(string(figures[0].SVG()), ">MIG<") {
		t.Errorf("%d figures", len(figures))
	}
	if tables := s.FieldTables(); len(tables) != 1 || tables[0].Metrics[0].Label != "MIG" || tables[0].Rows[0].Cells[0].N != 5 {
		t.Errorf("tables of other metrics: %+v", tables)
	}
	s.Groups[0].Entries = s.Groups[0].Entries[:4]
	if figures := s.CorrelationFigures("s1"); len(figures) != 0 {
		t.Error("a matrix was drawn for four runs")
	}
	if got := rankCorrelation([]float64{1, 1, 2}, []float64{3, 3, 9}); math.Abs(got-1) > 1e-12 {
		t.Errorf("ties: %v", got)
	}
}
