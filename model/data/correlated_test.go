package data

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"slotscope/model"
)

// grid returns a complete dataset in memory with factors of the given sizes.
func grid(sizes ...int) tabled {
	s := tabled{info: Info{Name: "t", Title: "T", H: 1, W: 2, C: 1, Complete: true, Len: Grid(sizes).Len()}}
	for f, n := range sizes {
		s.info.Factors = append(s.info.Factors, Factor{Name: string(rune('a' + f)), Values: slices.Repeat([]string{"v"}, n)})
	}
	classes := make([]int, len(sizes))
	for i := range s.info.Len {
		Grid(sizes).Classes(classes, i)
		s.labels = append(s.labels, classes...)
	}
	return s
}

// χ² tests of the selection: the number of images kept of every pair of values follows the binomial distribution of the definition, and
// the values of a third factor stay uniform.
func TestCorrelatedPairsAreThoseOfTheDefinition(t *testing.T) {
	const a, b, rest = 10, 8, 60
	set := grid(a, b, rest)
	for _, text := range []string{"corr(a,b;0.1)", "corr(a,b;0.4)@7", "corr(b,a;2)"} {
		clauses, err := parseClauses(text)
		if err != nil || clauses.String() != text {
			t.Fatalf("%s reads as %s, %v", text, clauses, err)
		}
		keeps, err := clauses.bind(set.info)
		if err != nil {
			t.Fatal(err)
		}
		c := clauses[0].(correlated)
		kept, others, all := make([]float64, a*b), make([]float64, rest), 0.0
		for i := range set.info.Len {
			if classes := set.labels[3*i : 3*i+3]; keeps(i, classes) {
				kept[classes[0]*b+classes[1]]++
				others[classes[2]]++
				all++
			}
		}
		chi, cells, expected := 0.0, 0, 0.0
		for i := range a {
			for j := range b {
				p := math.Exp(-math.Pow(float64(i)/(a-1)-float64(j)/(b-1), 2) / (2 * c.width * c.width))
				expected += rest * p
				if variance := rest * p * (1 - p); variance > 2 { // else the count is almost certain, not nearly normal
					chi += math.Pow(kept[i*b+j]-rest*p, 2) / variance
					cells++
				} else if math.Abs(kept[i*b+j]-rest*p) > 8 {
					t.Errorf("%s: of pair %d, %d %v are kept, %.2f expected", text, i, j, kept[i*b+j], rest*p)
				}
			}
		}
		tail := 1 - distuv.ChiSquared{K: float64(cells)}.CDF(chi)
		if cells < 10 || tail < 0.001 || tail > 0.999 {
			t.Errorf("%s: χ² %.1f with %d cells, p = %.5f", text, chi, cells, tail)
		}
		uniform := 0.0
		for _, n := range others {
			uniform += math.Pow(n-all/rest, 2) / (all / rest)
		}
		if tail := 1 - (distuv.ChiSquared{K: rest - 1}).CDF(uniform); tail < 0.001 {
			t.Errorf("%s: the third factor is not uniform: χ² %.1f, p = %.5f", text, uniform, tail)
		}
		if math.Abs(all-expected) > 5*math.Sqrt(expected) {
			t.Errorf("%s keeps %v images, %.0f expected", text, all, expected)
		}
	}
}

// A model trained on correlated factors is evaluated on the dataset without the correlation.
func TestComplementOfCorrelated(t *testing.T) {
	for name, want := range map[string]string{"t[corr(a,b;0.1)]": "t", "t[c=v0; corr(a,b;0.1)@3]": "t[c=v0]", "t[not(corr(a,b;0.1))]": "t[corr(a,b;0.1)]"} {
		if got, ok := Complement(name); !ok || got != want {
			t.Errorf("%s is evaluated on %q, want %q", name, got, want)
		}
	}
}

func TestImpossibleCorrelations(t *testing.T) {
	info := grid(3, 4, 1).info
	for text, says := range map[string]string{
		"corr(a,z;0.1)": `no factor "z"`, "corr(a,c;0.1)": "one value", "corr(a,a;0.1)": "twice", "corr(a,b;0)": "between 0.01", "corr(a,b;-1)": "between 0.01",
		"corr(a,b;NaN)": "between 0.01", "corr(a,b)": "not of the form", "corr(a;0.1)": "not of the form", "corr(a,b;0.1)x": "not of the form",
		"corr(a,b;0.1)@x": "not of the form", "corr(a,b,c;1)": "not of the form", "split=halves": "split=composition", "corr(a,b;1e999)": "not of the form",
	} {
		clauses, err := parseClauses(text)
		if err == nil {
			_, err = clauses.bind(info)
		}
		if bad, ok := err.(model.Invalid); !ok || !strings.Contains(bad["dataset"], says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// TestCorrelationWithWhatOtherClausesFix: a factor that other clauses reduce to one value cannot be correlated.
func TestCorrelationWithWhatOtherClausesFix(t *testing.T) {
	for text, refused := range map[string]bool{"[a=#0; corr(a,b;0.5)]": true, "[corr(a,b;0.5); b=#1]": true, "[c=#0; corr(a,b;0.5)]": false, "[a=#0,#2; corr(a,b;0.5)]": false} {
		set := grid(3, 4, 2)
		for f, factor := range set.info.Factors {
			for c := range factor.Values {
				set.info.Factors[f].Values[c] = string(rune('p' + c))
			}
		}
		_, err := newSubset(t.Context(), set, strings.Trim(text, "[]"))
		if bad, ok := err.(model.Invalid); ok != refused || refused && !strings.Contains(bad["dataset"], "one value in t") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The held-out part of each split, worked out by hand on a grid of 5 × 3 × 2 values. The last factor has too few values to be split.
func TestSplits(t *testing.T) {
	set := grid(5, 3, 2)
	out := func(kind string) (left [][2]int) {
		clauses, err := parseClauses("split=" + kind)
		if err != nil {
			t.Fatal(err)
		}
		keeps, err := clauses.bind(set.info)
		if err != nil {
			t.Fatal(err)
		}
		for i := range set.info.Len {
			if c := set.labels[3*i : 3*i+3]; c[2] == 0 && !keeps(i, c) {
				left = append(left, [2]int{c[0], c[1]})
			}
		}
		return left
	}
	// high: 3 and 4 of 5, 2 of 3; inner: 1 of 5, 1 of 3
	if got := out("composition"); !slices.Equal(got, [][2]int{{3, 2}, {4, 2}}) {
		t.Errorf("composition leaves out %v", got)
	}
	if got := out("extrapolation"); !slices.Equal(got, [][2]int{{0, 2}, {1, 2}, {2, 2}, {3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1}, {4, 2}}) {
		t.Errorf("extrapolation leaves out %v", got)
	}
	if got := out("interpolation"); !slices.Equal(got, [][2]int{{0, 1}, {1, 0}, {1, 1}, {1, 2}, {2, 1}, {3, 1}, {4, 1}}) {
		t.Errorf("interpolation leaves out %v", got)
	}
	if _, err := split("composition").bind(grid(5, 2).info); err == nil || !strings.Contains(err.Error(), "needs 2 factors") {
		t.Errorf("one factor cannot be composed: %v", err)
	}
	if _, err := split("extrapolation").bind(Info{Name: "t"}); err == nil {
		t.Error("a set without factors is extrapolated")
	}
}

// TestCorrelationOfWidths checks the numbers in docs/datasets.md: the correlation of classes on a grid of 10 × 10.
func TestCorrelationOfWidths(t *testing.T) {
	for width, want := range map[float64]float64{0.1: 0.95, 0.2: 0.81, 0.4: 0.46, 0.7: 0.19} {
		c := correlated{width: width}
		var x, y, weights []float64
		for i := range 10 {
			for j := range 10 {
				x, y, weights = append(x, float64(i)), append(y, float64(j)), append(weights, c.weight(i, 10, j, 10))
			}
		}
		if got := stat.Correlation(x, y, weights); math.Abs(got-want) > 0.005 {
			t.Errorf("s = %v gives a correlation of %.3f, not %v", width, got, want)
		}
	}
}
