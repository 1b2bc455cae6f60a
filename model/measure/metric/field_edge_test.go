package metric

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model"
)

func fieldOf(t *testing.T, table Table, extra Extra, o Options) model.FieldScores {
	t.Helper()
	f, err := Field(t.Context(), table, extra, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// drawn has two latents that encode two factors, and a third latent of noise.
func drawn(n int, discrete bool) Table {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	t := Table{Factors: make([][]int, 2)}
	columns := make([][]float64, 3)
	for range n {
		a, b := rng.IntN(4), rng.IntN(3)
		t.Factors[0], t.Factors[1] = append(t.Factors[0], a), append(t.Factors[1], b)
		for j, v := range []float64{float64(a), float64(b), float64(rng.IntN(5))} {
			columns[j] = append(columns[j], v+map[bool]float64{true: 0, false: 0.1 * rng.NormFloat64()}[discrete])
		}
	}
	if !discrete {
		t.Values = columns
		return t
	}
	for _, c := range columns {
		codes := make([]int, n)
		for r, v := range c {
			codes[r] = int(v)
		}
		t.Codes = append(t.Codes, codes)
	}
	return t
}

// TestFieldDegenerate: for degenerate tables, each score has a definite value, or is undefined with a sentence.
func TestFieldDegenerate(t *testing.T) {
	nan := math.NaN()
	constant := func(v float64) func(Table) Table {
		return func(t Table) Table {
			for j := range t.Codes {
				clear(t.Codes[j])
			}
			for j := range t.Values {
				for r := range t.Values[j] {
					t.Values[j][r] = v
				}
			}
			return t
		}
	}
	wide := drawn(200, false)
	wide.Values[2][7] = -1e300
	classes := drawn(9000, true)
	for r := range classes.Factors[0] {
		classes.Factors[0][r] = r
	}
	oneFactor := drawn(60, true)
	oneFactor.Factors = oneFactor.Factors[:1]
	dead := drawn(60, true)
	for i := range dead.Factors {
		clear(dead.Factors[i])
	}
	for _, c := range []struct {
		name     string
		table    Table
		scores   map[string]float64 // NaN for undefined
		problems map[string]string  // part of the sentence
	}{
		{"constant codes", constant(0)(drawn(60, true)), map[string]float64{"mig": 0, "mig_mm": 0, "dcimig": 0, "modularity": 0, "modularity_active": 0,
			"infom_plugin": 0, "infoc_plugin": 0, "infom_adj": 0, "infoc_adj": 0, "sap": 0, "factorvae_limit": 0, "factorvae": 0, "irs": nan, "explicitness": 0.5},
			map[string]string{"low_label": "the table has 60 rows"}},
		{"constant numbers", constant(0.1)(drawn(60, false)), map[string]float64{"mig": 0, "sap": 0, "sap_std": 0, "irs": 0, "irs_max": 0,
			"factorvae": 0, "infom_mm": 0, "explicitness": 0.5}, nil},
		{"constant factors", dead, map[string]float64{"mig": nan, "sap": nan, "modularity": nan, "explicitness": nan, "factorvae": nan, "betavae": nan,
			"size": nan, "infom_adj": nan, "dci_es": nan}, map[string]string{"factors": "single value"}},
		{"one factor", oneFactor, map[string]float64{"modularity": nan, "modularity_active": nan, "factorvae": nan, "factorvae_limit": nan, "infom_adj": nan,
			"mig": 1 - 0, "size": 1.0 / 3}, nil},
		{"ten rows", drawn(10, true), map[string]float64{"low_label_100": nan, "low_label_1000": nan, "size": 2.0 / 3}, map[string]string{"low_label": "10 rows"}},
		{"two rows", Table{Codes: [][]int{{0, 1}}, Factors: [][]int{{0, 1}, {1, 0}}}, map[string]float64{"mig": 1, "sap": nan, "explicitness": nan},
			map[string]string{"sap": "3 rows", "explicitness": "3 rows"}},
		{"huge numbers", wide, map[string]float64{"sap": nan, "irs": nan, "factorvae": nan}, map[string]string{"numbers": "Latent 2 of row 7 is -1e+300"}},
		{"classes without end", classes, map[string]float64{"explicitness": nan, "low_label_100": nan, "dci_es": nan}, map[string]string{"explicitness": "9000 values"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fieldOf(t, c.table, Extra{}, Options{})
			for name, want := range c.scores {
				got, there := f.Scores[name]
				if tol := map[bool]float64{true: 0.1, false: 1e-9}[c.name == "one factor" && name == "mig"]; !there {
					t.Errorf("%s is missing", name)
				} else {
					closeTo(t, name, got, model.Score(want), tol)
				}
			}
			for name, part := range c.problems {
				if !strings.Contains(f.Problems[name], part) {
					t.Errorf("problem of %s is %q, want %q", name, f.Problems[name], part)
				}
			}
		})
	}
}

func TestFieldRefuses(t *testing.T) {
	bad := drawn(20, false)
	bad.Values[1][3] = math.NaN()
	infinite := drawn(20, false)
	infinite.Values[0][0] = math.Inf(1)
	for _, c := range []struct {
		table Table
		want  string
	}{
		{bad, "latent 1 of row 3 is NaN"},
		{infinite, "latent 0 of row 0 is +Inf"},
		{Table{Codes: [][]int{make([]int, MaxRows+1)}, Factors: [][]int{make([]int, MaxRows+1)}}, "1000001 rows"},
		{Table{Codes: [][]int{{1}}, Factors: [][]int{{1}}}, "at least two"},
	} {
		if _, err := Field(t.Context(), c.table, Extra{}, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Field(ctx, drawn(30, true), Extra{}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancelling: %v", err)
	}
}

// TestRedundancyOfManyLatents: with too many latents, only the redundancy of pairs is omitted.
func TestRedundancyOfManyLatents(t *testing.T) {
	w := newWorld(drawn(24, true))
	for len(w.codes) <= maxLatents {
		w.codes = append(w.codes, w.codes[0])
	}
	if r := w.redundancy(0); r.PairSum.Defined() || r.Pairs != nil || !r.Plugin.Redundancy.Defined() {
		t.Errorf("pairs of %d latents: %v", len(w.codes), r.PairSum)
	}
}

// TestFieldKeepsOthers: invalid optional content gets a sentence in Problems and does not affect other scores.
func TestFieldKeepsOthers(t *testing.T) {
	f := fieldOf(t, drawn(60, true), Extra{
		Models:     []Model{{Codes: [][]int{{0, 1, 1}}}, {Codes: [][]int{{0, 1}}}},
		Curves:     []Curve{{Capacity: []float64{1}, Loss: []float64{0.5}, Baseline: 0.5}, {Capacity: []float64{1, 2}, Loss: []float64{0.5, 0}, Baseline: 0}},
		Selections: []Selection{{Latents: []int{9}, Factors: []int{0}}, {Latents: []int{0}, Factors: []int{0}}, {}},
	}, Options{})
	for name, part := range map[string]string{"udr": "model 1 has a latent with 2 rows", "selection 0": "no latent 9; choose 0 to 2", "selection 2": "at least one latent"} {
		if !strings.Contains(f.Problems[name], part) {
			t.Errorf("%s: %q, want %q", name, f.Problems[name], part)
		}
	}
	if !f.Scores["mig"].Defined() || f.Selections[0] != nil || !f.Selections[1]["mig"].Defined() {
		t.Errorf("MIG %v, selections %v", f.Scores["mig"], f.Selections)
	}
	for _, e := range f.CurveExplicitness {
		if e.Defined() {
			t.Errorf("curves without an area: %v", f.CurveExplicitness)
		}
	}
	if err := guarded(t.Context(), func(context.Context) error { panic("boom") }); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("a panic became %v", err)
	}
}

// TestFieldSameOnAnyCores: the result does not depend on the number of workers or on repeated calls.
func TestFieldSameOnAnyCores(t *testing.T) {
	one := fieldOf(t, drawn(150, false), Extra{}, Options{Workers: 1, Seed: 5})
	four := fieldOf(t, drawn(150, false), Extra{}, Options{Workers: 4, Seed: 5})
	texts := [2][]byte{}
	for k, f := range []model.FieldScores{one, four} {
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[k] = text
	}
	if d := cmp.Diff(string(texts[0]), string(texts[1])); d != "" {
		t.Error(d)
	}
}

// TestHalvesInterval: intervals from half-samples are as wide as the spread of the score over new tables.
func TestHalvesInterval(t *testing.T) {
	const tables, n = 60, 400
	var values []float64
	width := 0.0
	for k := range tables {
		rng := rand.New(rand.NewPCG(8, uint64(k)))
		table := Table{Factors: make([][]int, 2), Codes: make([][]int, 2)}
		for range n {
			a, b := rng.IntN(4), rng.IntN(4)
			table.Factors[0], table.Factors[1] = append(table.Factors[0], a), append(table.Factors[1], b)
			if rng.IntN(3) == 0 {
				a = rng.IntN(4)
			}
			if rng.IntN(2) == 0 {
				b = rng.IntN(4)
			}
			table.Codes[0], table.Codes[1] = append(table.Codes[0], a), append(table.Codes[1], b)
		}
		w := newWorld(table)
		score := func(w *world) float64 { v := w.information(); return mean(mig(v.plugin, v.h)) }
		var found []float64
		for range halves {
			found = append(found, score(w.take(halfSample(n, rng))))
		}
		i, ok := halvesInterval(model.Score(score(w)), found, math.Inf(-1), 1)
		if !ok {
			t.Fatal("no interval")
		}
		values = append(values, score(w))
		width += float64(i.High-i.Low) / 2 / 1.96 / tables
	}
	if ratio := width / math.Sqrt(variance(values)); ratio < 0.75 || ratio > 1.4 {
		t.Errorf("half-samples estimate a deviation of %.4f, but tables have %.4f", width, math.Sqrt(variance(values)))
	}
}

// TestScoresByHand checks scores against values worked out by hand.
func TestScoresByHand(t *testing.T) {
	mi, h := [][]float64{{1, 0.25, 0}, {0.5, 0, 0.5}}, []float64{2, 1}
	near(t, "MIG", mean(mig(mi, h)), ((1-0.25)/2+0)/2, 1e-15)
	near(t, "DCIMIG", dcimig(mi, h), (0.5+0.5)/3, 1e-15) // gaps ½, ¼, ½ of factors 0, 0, 1
	near(t, "modularity", mean(modularity(mi)), (1-0.25+1+1)/3, 1e-15)
	near(t, "E of a straight line", float64(Curve{[]float64{0, 1}, []float64{0.5, 0}, 0.5}.explicitness()), 0, 1e-15)
	near(t, "E at once", float64(Curve{[]float64{0, 1}, []float64{0, 0}, 0.5}.explicitness()), 1, 1e-15)
	near(t, "UDR of a permutation", strength([][]float64{{0, 1}, {1, 0}}), 1, 1e-15)
	near(t, "UDR of nothing", strength([][]float64{{0, 0}, {0, 0}}), 0, 0)
	near(t, "Chao-Shen of four even outcomes", chaoShen([]int{500, 500, 500, 500}), math.Log(4), 1e-9)
	// P(k) for margins 1, 1 of 2 rows: half of the permutations put both ones together
	near(t, "expected information", expectedInformation(label([]int{0, 1}), label([]int{0, 1})), math.Ln2, 1e-12)
}

// TestMachineOptimum: the gradient is zero at the optimum that the machine returns.
func TestMachineOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, scale := range []float64{0.001, 1, 1000} {
		x, y := make([]float64, 300), make([]int, 300)
		for r := range x {
			y[r] = rng.IntN(3)
			x[r] = scale * (float64(y[r]) + 0.5*rng.NormFloat64() + 2)
		}
		c := newNumberColumn(x, x)
		all, own := c.moments(label(y))
		m := machine{all: all, positive: own[1], cPositive: 0.02, cNegative: 0.01, centre: c.centre}
		best := m.optimum()
		at := m.cost(best)
		for _, d := range []line{{1e-4 / scale, 0}, {-1e-4 / scale, 0}, {0, 1e-4}, {0, -1e-4}} {
			if near := m.cost(line{best.w + d.w, best.b + d.b}); near < at-1e-12 {
				t.Errorf("scale %v: %v is below the optimum %v", scale, near, at)
			}
		}
	}
}
