package metric

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"slotscope/model"
)

// grid is every combination of classes once.
func grid(sizes ...int) [][]int {
	rows := [][]int{{}}
	for _, k := range sizes {
		var next [][]int
		for _, row := range rows {
			for v := range k {
				next = append(next, append(slices.Clone(row), v))
			}
		}
		rows = next
	}
	return columnsOf(rows)
}

// scattered replaces the codes by distinct random numbers.
func scattered(column []int, rng *rand.Rand) []int {
	names, out := rng.Perm(512), make([]int, len(column))
	for r, v := range column {
		out[r] = names[v]
	}
	return out
}

func measured(t *testing.T, table Table, o Options) model.Metrics {
	t.Helper()
	if o.Trees == 0 {
		o.Trees = 10
	}
	m, err := Measure(t.Context(), table, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPerfectCodesOnAFullGrid(t *testing.T) {
	factors, rng := grid(6, 5, 4, 3), rand.New(rand.NewPCG(1, 1))
	table := Table{Factors: factors}
	for _, i := range []int{2, 0, 3, 1} {
		table.Codes = append(table.Codes, scattered(factors[i], rng))
	}
	m := measured(t, table, Options{})
	closeTo(t, "InfoM", m.InfoM, 1, 1e-12)
	closeTo(t, "InfoC", m.InfoC, 1, 1e-12)
	closeTo(t, "InfoE", m.InfoE, 1, 5e-4) // L-BFGS stops at a gradient of 1e-4
	closeTo(t, "held-out InfoE", m.InfoEHeldOut, 1, 1e-3)
	closeTo(t, "I", m.DCI.OneHot.I, 1, 1e-12)
	for i, row := range m.NMI {
		for j, v := range row {
			own := slices.Index([]int{2, 0, 3, 1}, i) == j
			closeTo(t, "NMI", v, map[bool]model.Score{true: 1, false: 0}[own], 1e-12)
		}
	}
}

// TestPerfectCodesOnASample: sampled factors share information by chance, so perfect codes of Shapes3D's six factors score 0.990 on
// 10,000 rows.
func TestPerfectCodesOnASample(t *testing.T) {
	table, rng := paperTable(10000), rand.New(rand.NewPCG(2, 2))
	table.Codes = nil
	for _, f := range table.Factors {
		table.Codes = append(table.Codes, scattered(f, rng))
	}
	r := relate(table, labelAll(table.Factors), 0)
	closeTo(t, "InfoM", r.infoM(), 0.990, 0.003)
	closeTo(t, "InfoC", r.infoC(), 0.990, 0.003)
}

// TestNoiseSaturates shows why InfoE is reported next to its chance level: 512 codes per slot explain anything.
func TestNoiseSaturates(t *testing.T) {
	table, rng := paperTable(2500), rand.New(rand.NewPCG(3, 3))
	for j := range table.Codes {
		for r := range table.Codes[j] {
			table.Codes[j][r] = rng.IntN(512)
		}
	}
	m := measured(t, table, Options{})
	closeTo(t, "InfoE", m.InfoE, 1, 1e-3)
	closeTo(t, "shuffled InfoE", m.InfoEShuffled, 1, 1e-3)
	closeTo(t, "InfoM", m.InfoM, 0.038, 0.02)
	closeTo(t, "InfoC", m.InfoC, 0.003, 0.005)
	if m.InfoEHeldOut > 0 {
		t.Errorf("held-out InfoE of noise is %v", float64(m.InfoEHeldOut))
	}
}

// randomTable has slots that carry partial information about factors.
func randomTable(t *rapid.T) Table {
	n, f, slots := rapid.IntRange(2, 60).Draw(t, "n"), rapid.IntRange(1, 4).Draw(t, "F"), rapid.IntRange(1, 5).Draw(t, "m")
	column := func(what string, k int) []int { return rapid.SliceOfN(rapid.IntRange(0, k), n, n).Draw(t, what) }
	table := Table{}
	for range f {
		table.Factors = append(table.Factors, column("factor", 3))
	}
	for range slots {
		if rapid.Bool().Draw(t, "copy") {
			table.Codes = append(table.Codes, slices.Clone(table.Factors[0]))
		} else {
			table.Codes = append(table.Codes, column("codes", 5))
		}
	}
	return table
}

func TestScoresDoNotDependOnNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := randomTable(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "names"), 0))
		other := Table{Factors: table.Factors}
		order := rng.Perm(len(table.Codes))
		for _, j := range order {
			other.Codes = append(other.Codes, scattered(table.Codes[j], rng))
		}
		a, err := Measure(context.Background(), table, Options{Trees: 1})
		b, err2 := Measure(context.Background(), other, Options{Trees: 1})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for name, pair := range map[string][2]model.Score{"InfoM": {a.InfoM, b.InfoM}, "InfoC": {a.InfoC, b.InfoC}} {
			if pair[0].Defined() != pair[1].Defined() || math.Abs(float64(pair[0]-pair[1])) > 1e-9 {
				t.Errorf("%s is %v, but %v with reordered slots and renamed codes", name, pair[0], pair[1])
			}
		}
		if math.Abs(float64(a.InfoE-b.InfoE)) > 5e-3 { // rounding changes the path of the line searches
			t.Errorf("InfoE is %v, but %v with reordered slots and renamed codes", a.InfoE, b.InfoE)
		}
		for place, j := range order {
			for i := range table.Factors {
				if x, y := a.NMI[i][j], b.NMI[i][place]; x.Defined() != y.Defined() || math.Abs(float64(x-y)) > 1e-9 {
					t.Errorf("NMI of factor %d and slot %d is %v and %v", i, j, x, y)
				}
			}
		}
	})
}

func TestScoresStayInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := Measure(context.Background(), randomTable(t), Options{Trees: 3, Seed: int64(rapid.IntRange(0, 9).Draw(t, "seed"))})
		if err != nil {
			t.Fatal(err)
		}
		scores := []model.Score{m.InfoM, m.InfoC}
		for _, v := range []model.DCIScore{m.DCI.OneHot, m.DCI.SlotSum, m.DCI.Slots} {
			scores = append(scores, v.D, v.I, v.C)
		}
		for n, s := range scores {
			if s.Defined() && (s < -1e-9 || s > 1+1e-9) {
				t.Errorf("score %d is %v", n, float64(s))
			}
		}
	})
}

func TestUndefinedCases(t *testing.T) {
	nan, rng := model.Undefined(), rand.New(rand.NewPCG(4, 4))
	noise := func(k int) []int {
		out := make([]int, 200)
		for r := range out {
			out[r] = rng.IntN(k)
		}
		return out
	}
	constant, a, b := make([]int, 200), noise(4), noise(3)
	tests := []struct {
		name       string
		table      Table
		m, e, c    model.Score
		d, i, dciC model.Score // rf_onehot_slotsum
		kept       []int
	}{
		{"one factor", Table{Codes: [][]int{a, constant, b}, Factors: [][]int{a}}, nan, 1, 0.98, nan, 1, 0.9, []int{0}},
		{"a factor of one value", Table{Codes: [][]int{a, b}, Factors: [][]int{a, constant, b}}, 0.98, 1, 0.98, 0.98, 1, 0.98, []int{0, 2}},
		{"factors of one value only", Table{Codes: [][]int{a, b}, Factors: [][]int{constant, constant}}, nan, nan, nan, nan, nan, nan, nil},
		{"one active slot", Table{Codes: [][]int{a, constant}, Factors: [][]int{a, b}}, 0.98, 0.5, nan, 0, 0.7, 1, []int{0, 1}},
		{"no active slot", Table{Codes: [][]int{constant, constant}, Factors: [][]int{a, b}}, 0, 0, 0, 0, 0.4, 0, []int{0, 1}},
		{"one slot", Table{Codes: [][]int{a}, Factors: [][]int{a, b}}, 0.98, 0.5, nan, 0, 0.7, nan, []int{0, 1}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			m := measured(t, c.table, Options{})
			closeTo(t, "InfoM", m.InfoM, c.m, 0.03)
			closeTo(t, "InfoE", m.InfoE, c.e, 0.03)
			closeTo(t, "InfoC", m.InfoC, c.c, 0.03)
			closeTo(t, "D", m.DCI.SlotSum.D, c.d, 0.4)
			closeTo(t, "I", m.DCI.SlotSum.I, c.i, 0.25)
			closeTo(t, "C", m.DCI.SlotSum.C, c.dciC, 0.15)
			if !slices.Equal(m.KeptFactors, c.kept) {
				t.Errorf("kept %v, want %v", m.KeptFactors, c.kept)
			}
		})
	}
}

func TestAnyNumberOfWorkersGivesTheSameScores(t *testing.T) {
	table := paperTable(300)
	one, many := measured(t, table, Options{Workers: 1, Seed: 5, Trees: 25}), measured(t, table, Options{Workers: 7, Seed: 5, Trees: 25})
	if d := cmp.Diff(one, many, cmpopts.EquateNaNs()); d != "" {
		t.Error(d)
	}
	other := measured(t, table, Options{Seed: 6, Trees: 25})
	if one.DCI.OneHot.D == other.DCI.OneHot.D || one.InfoEHeldOut == other.InfoEHeldOut {
		t.Error("a different seed gives the same forests or the same split")
	}
}

func TestMeasureEndsWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err := Measure(ctx, paperTable(1000), Options{Progress: func(done, of float64) {
		calls++
		cancel()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
	if calls > 4 {
		t.Errorf("%d tasks ended after the cancellation", calls)
	}
}

func TestProgressReachesTheEnd(t *testing.T) {
	last, total := 0.0, 0.0
	measured(t, paperTable(200), Options{Progress: func(done, of float64) {
		if done < last || done > of {
			t.Errorf("%v of %v after %v", done, of, last)
		}
		last, total = done, of
	}})
	if last == 0 || last != total {
		t.Errorf("the last progress is %v of %v", last, total)
	}
}

func TestCheckNamesColumnAndRow(t *testing.T) {
	factors := [][]int{{0, 1, 2}}
	wide := make([]int, 10000)
	for r := range wide {
		wide[r] = r
	}
	for _, c := range []struct {
		table Table
		want  string
	}{
		{Table{Factors: factors}, "needs codes or values"},
		{Table{Codes: factors, Values: [][]float64{{1, 2, 3}}, Factors: factors}, "not both"},
		{Table{Codes: factors}, "no factors"},
		{Table{Codes: [][]int{{1}}, Factors: [][]int{{1}}}, "at least two"},
		{Table{Codes: [][]int{{1, 2}}, Factors: factors}, "latent 0 has 2 rows"},
		{Table{Codes: factors, Factors: [][]int{{0, 1, 2}, {0, 1}}}, "factor 1 has 2 rows"},
		{Table{Codes: [][]int{{0, 1, 2}, {0, -1, 2}}, Factors: factors}, "latent 1 of row 1 is -1"},
		{Table{Codes: [][]int{{0, 1, 1 << 40}}, Factors: factors}, "latent 0 of row 2 is 1099511627776"},
		{Table{Values: [][]float64{{0, 1, math.NaN()}}, Factors: factors}, "latent 0 of row 2 is NaN"},
		{Table{Values: [][]float64{{math.Inf(1), 1, 0}}, Factors: factors}, "latent 0 of row 0 is +Inf"},
		{Table{Codes: factors, Factors: factors, Names: []string{"a", "b"}}, "2 names for 1 factors"},
		{Table{Codes: [][]int{wide}, Factors: [][]int{wide}, Names: []string{"id"}}, "id has 10000 values"},
	} {
		_, err := Measure(t.Context(), c.table, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
