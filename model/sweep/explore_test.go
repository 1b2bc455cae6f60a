package sweep

import (
	"slices"
	"testing"

	"slotscope/model"
)

// TestExplore: a varied field is a parameter if runs differ in it; many numbers are grouped, and a field that a model lacks has no level.
func TestExplore(t *testing.T) {
	p := Plan{Name: "p", Preset: "tiny", Steps: 50, Parts: []Part{{Name: "main", Models: []string{"betavae", "hrr"}, Datasets: []string{"shapes3d-synthetic"}, Seeds: upTo(2),
		Select: &Select{Seeds: []int64{100}, Axes: []Axis{{Field: "beta_kl", Values: []string{"1", "10"}, Models: []string{"betavae"}}}},
		Vary:   []Axis{{Field: "k", Values: []string{"64", "32"}, Models: []string{"hrr"}}, {Field: "batch", Values: []string{"8"}}}, Variants: []Variant{{Set: map[string]string{"clip": "0"}}}}}}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	l := lab{}
	for _, s := range p.Look(l.find).Items {
		if s.Selecting {
			l.finish(s.Item, s.Config.BetaKL)
		}
	}
	e := p.Look(l.find).Explore()
	var names []string
	for _, q := range e.Parameters {
		names = append(names, q.Name)
	}
	if !slices.Equal(names, []string{"model", "batch", "k", "clip"}) && !slices.Equal(names, []string{"model", "k", "batch", "clip"}) {
		t.Fatalf("parameters %v", names)
	}
	k, name := e.Index("k"), e.Index("model")
	if got := e.Parameters[k].Levels; !slices.IsSortedFunc(got, func(a, b string) int { return int(numberOf(a) - numberOf(b)) }) || len(got) < 2 {
		t.Errorf("levels of k: %v", got)
	}
	settings := map[int]int{}
	for _, row := range e.Rows {
		settings[row.Setting]++
		if row.Selecting {
			t.Errorf("%s only serves a choice", row.Name)
		}
		if f, _ := model.FieldByName("k"); !f.Of("betavae") && row.Values[name] == "betavae" && (row.Levels[k] != -1 || row.Values[k] != "–" || row.Numbers[k] != 31) {
			t.Errorf("a model without k: %q, level %d, number %v", row.Values[k], row.Levels[k], row.Numbers[k])
		}
	}
	for s, n := range settings {
		if n != 2 {
			t.Errorf("setting %d has %d seeds", s, n)
		}
	}
	if e.Index("beta_kl") >= 0 {
		t.Error("a selected hyperparameter has two values")
	}
}

func TestExploreSpans(t *testing.T) {
	e := wide(1).Look(lab{}.find).Explore()
	lr := e.Parameters[e.Index("lr")]
	if len(lr.Levels) != spans {
		t.Fatalf("levels %v", lr.Levels)
	}
	count := make([]int, spans)
	for _, row := range e.Rows {
		at := row.Levels[e.Index("lr")]
		count[at]++
		if row.Numbers[e.Index("lr")] != row.Config.LR {
			t.Errorf("number %v of rate %v", row.Numbers[e.Index("lr")], row.Config.LR)
		}
	}
	if slices.Min(count) < 5 || slices.Max(count) > 11 {
		t.Errorf("spans of %v runs", count)
	}
}
