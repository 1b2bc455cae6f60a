package report

import (
	"math"
	"slices"
	"testing"
)

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance || math.IsNaN(a) && math.IsNaN(b)
}

// Hand-worked: 1, 2, 3, 4, 5 has mean 3, s = √2.5 and t(0.975, 4) = 2.7764 (printed tables), so ± 2.7764·√2.5/√5 = ± 1.9632.
func TestSummarise(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		values             []float64
		n                  int
		mean, sd, tq, half float64
	}{
		{[]float64{1, 2, 3, 4, 5}, 5, 3, math.Sqrt(2.5), 2.7764, 1.9632},
		{[]float64{0.5, 0.7}, 2, 0.6, 0.141421, 12.7062, 1.27062},
		{[]float64{2, 2, 2}, 3, 2, 0, 4.3027, 0},
		{[]float64{0.99, 0.99, 0.99}, 3, 0.99, 0, 4.3027, 0},
		{[]float64{0.4}, 1, 0.4, nan, nan, nan},
		{nil, 0, nan, nan, nan, nan},
		{[]float64{1, nan, 3, math.Inf(1)}, 2, 2, math.Sqrt2, 12.7062, 12.7062},
	} {
		s := Summarise(c.values)
		if s.N != c.n || !near(s.Mean, c.mean, 1e-12) || !near(s.SD, c.sd, 1e-6) || !near(s.T, c.tq, 5e-5) || !near(s.Half, c.half, 1e-4) {
			t.Errorf("%v: %+v", c.values, s)
		}
		if s.Interval() != (c.n >= 2) || s.Interval() && (s.Lo != s.Mean-s.Half || s.Hi != s.Mean+s.Half) {
			t.Errorf("%v: interval %+v", c.values, s)
		}
	}
}

// Hand-worked: {1, 2, 3} and {2, 4, 6} have variances 1 and 4, so the difference −2 has standard error √(5/3) = 1.29099 and
// ν = (5/3)²/((1/3)²/2 + (4/3)²/2) = 2.9412; t(0.975, 2.9412) = 3.22094 lies between t(3) = 3.1824 and t(2) = 4.3027.
func TestDifference(t *testing.T) {
	d := Difference(Summarise([]float64{1, 2, 3}), Summarise([]float64{2, 4, 6}))
	if !near(d.Mean, -2, 1e-12) || !near(d.SD, 1.290994, 1e-6) || d.T < 3.1824 || d.T > 3.3 || !near(d.Half, d.T*d.SD, 1e-12) {
		t.Errorf("%+v", d)
	}
	same := Difference(Summarise([]float64{1, 2, 3, 4, 5}), Summarise([]float64{1, 2, 3, 4, 5})) // equal spreads: ν = 2·4
	if !near(same.T, 2.3060, 5e-5) || same.Mean != 0 {
		t.Errorf("%+v", same)
	}
	if one := Difference(Summarise([]float64{1}), Summarise([]float64{2, 3})); one.Interval() || !math.IsNaN(one.Half) || one.Mean != -1.5 {
		t.Errorf("%+v", one)
	}
}

func TestRounded(t *testing.T) {
	for _, c := range []struct {
		mean, half float64
		want       string
	}{
		{0.33999, 0.0068, "0.340 ± 0.007"}, // as the paper prints them
		{1e-15, 3e-14, "0.00 ± 0"},         // equal values, rounded
		{41.4, 4.2, "41 ± 4"},
		{0.99951, 0.0049, "1.000 ± 0.005"},
		{38.93, 0.34, "38.9 ± 0.3"},
		{0.78, 0.096, "0.8 ± 0.1"}, // the half-width rounds up to the next place
		{0.5, 0.0999, "0.5 ± 0.1"},
		{412, 38, "410 ± 40"},
		{1234, 950, "1000 ± 1000"},
		{-0.004, 0.02, "0.00 ± 0.02"},
		{-0.5, 0.02, "−0.50 ± 0.02"},
		{0.5, 0, "0.50 ± 0"},
		{0.677, 1.67, "0.68 ± 1.67"}, // wider than the mean, which keeps two digits
		{-0.04, 1.2, "−0.04 ± 1.20"},
		{20.5, 33, "20 ± 33"},
		{0, 1.2, "0.0 ± 1.2"},
		{0.0004, 0.003, "0.000 ± 0.003"},
		{3e-9, 2e-8, "0.00 ± 0"},
	} {
		if got := (Summary{N: 5, Mean: c.mean, Half: c.half}).Text(2); got != c.want {
			t.Errorf("%v ± %v: got %q, want %q", c.mean, c.half, got, c.want)
		}
	}
	if got := Summarise([]float64{0.456}).Text(2); got != "0.46" {
		t.Errorf("one seed: %q", got)
	}
	if got := Summarise(nil).Text(2); got != "–" {
		t.Errorf("no seed: %q", got)
	}
}

func between(lo, hi float64) Summary {
	return Summary{N: 5, Mean: (lo + hi) / 2, Half: (hi - lo) / 2, Lo: lo, Hi: hi}
}

// each allows n entries to make a claim.
func each(n int) []bool { return slices.Repeat([]bool{true}, n) }

func TestBold(t *testing.T) {
	column := []Summary{between(0.80, 0.90), between(0.60, 1.00), between(0.55, 0.70), between(0.10, 0.59), Summarise([]float64{0.95})}
	// the second has the highest upper end, so 0.60 is the threshold
	for rule, want := range map[Rule][]bool{
		PaperRule:   {true, true, false, false, false},
		OverlapRule: {true, true, true, false, false},
		NoRule:      {false, false, false, false, false},
	} {
		for i, bold := range rule.Bold(column, each(len(column))) {
			if bold != want[i] {
				t.Errorf("rule %s, entry %d: %v", rule, i, bold)
			}
		}
	}
	if b := PaperRule.Bold([]Summary{Summarise([]float64{1, 1}), Summarise(nil)}, each(2)); b[0] || b[1] {
		t.Error("two seeds must be ignored")
	}
	if b := PaperRule.Bold([]Summary{between(0.8, 0.9), between(0.5, 0.6)}, []bool{false, true}); b[0] || b[1] {
		t.Error("the best entry may not be bold, and the other must not be bold instead")
	}
	if b := PaperRule.Bold([]Summary{between(0.5, 0.9), between(0.7, 0.9), between(0.6, 0.8)}, each(3)); b[0] || !b[1] || b[2] {
		t.Error("of equal upper ends, the narrower interval must set the threshold")
	}
}

// The paper's appendix, printed numbers and printed bold: its own rule explains 126 of 140 cells (rounding explains the rest), the
// overlap rule 109.
func TestBoldRulesOnThePublishedTables(t *testing.T) {
	agree := map[Rule]int{}
	cells := 0
	for _, rows := range published {
		for j := range columns {
			var column []Summary
			var printed []bool
			for _, name := range modelOrder {
				if _, ok := rows[name]; !ok {
					continue
				}
				p := rows[name][j]
				column = append(column, Summary{N: 5, Mean: p.Mean(), Half: p.Half(), Lo: p.Mean() - p.Half(), Hi: p.Mean() + p.Half()})
				printed = append(printed, p.Bold)
			}
			for _, rule := range []Rule{PaperRule, OverlapRule} {
				for i, bold := range rule.Bold(column, each(len(column))) {
					if bold == printed[i] {
						agree[rule]++
					}
				}
			}
			cells += len(printed)
		}
	}
	if cells != 140 {
		t.Errorf("%d cells", cells)
	}
	t.Logf("paper rule %d, overlap rule %d of %d", agree[PaperRule], agree[OverlapRule], cells)
	if agree[PaperRule] < 125 || agree[OverlapRule] > 115 {
		t.Errorf("the paper's rule agrees on %d cells, the overlap rule on %d", agree[PaperRule], agree[OverlapRule])
	}
}

func TestPublishedFor(t *testing.T) {
	p, ok := PublishedFor("shapes3d", "hrr", "infom")
	if !ok || p.String() != "0.85 ± 0.05" || !p.Bold {
		t.Errorf("%v %v", p, ok)
	}
	if p, _ := PublishedFor("shapes3d-synthetic", "vqvae", "infoe"); p.String() != "1.000 ± 0.005 (other images)" {
		t.Errorf("the re-rendered dataset must be compared with Shapes3D: %v", p)
	}
	if p, _ := PublishedFor("mpi3d-complex", "betavae", "psnr"); p.Mean() != 29.5 || p.Half() != 0.3 {
		t.Errorf("%v", p)
	}
	for _, c := range [][3]string{{"dsprites", "hrr", "infom"}, {"shapes3d", "gan", "infom"}, {"shapes3d", "hrr", "swap_exact"}} {
		if _, ok := PublishedFor(c[0], c[1], c[2]); ok {
			t.Errorf("%v has no published value", c)
		}
	}
}
