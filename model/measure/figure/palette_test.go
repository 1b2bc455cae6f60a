package figure

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestHeatScale: each step is darker in the light scheme and brighter in the dark scheme, and the number in a cell is readable.
func TestHeatScale(t *testing.T) {
	for i := range heatSteps {
		h, text := shades[paint(fmt.Sprint("h", i))], shades[paint(fmt.Sprint("t", i))]
		for scheme, pair := range map[string][2]string{"light": {h.light, text.light}, "dark": {h.dark, text.dark}} {
			if c := contrast(pair[0], pair[1]); c < 4.5 {
				t.Errorf("step %d, %s: contrast %.2f of text and cell", i, scheme, c)
			}
		}
		if i == 0 {
			continue
		}
		before := shades[paint(fmt.Sprint("h", i-1))]
		if luminance(h.light) >= luminance(before.light) || luminance(h.dark) <= luminance(before.dark) {
			t.Errorf("step %d does not continue the scale: %v after %v", i, h, before)
		}
	}
}

// TestSignedScale: 0 is nearly the page's colour, v and −v have the same lightness, contrast with the page grows with |v|, and numbers are readable.
func TestSignedScale(t *testing.T) {
	const zero = heatSteps / 2
	at := func(i int) shade { return shades[paint(fmt.Sprint("sh", i))] }
	for i := range heatSteps {
		text := shades[paint(fmt.Sprint("st", i))]
		if l, d := contrast(at(i).light, text.light), contrast(at(i).dark, text.dark); l < 4.5 || d < 4.5 {
			t.Errorf("step %d: contrast of text and cell %.2f in light, %.2f in dark", i, l, d)
		}
		if i >= zero {
			continue
		}
		for scheme, pair := range map[string][2]string{"light": {at(i).light, at(heatSteps - 1 - i).light}, "dark": {at(i).dark, at(heatSteps - 1 - i).dark}} {
			if pair[0] == pair[1] || contrast(pair[0], pair[1]) > 1.25 {
				t.Errorf("step %d, %s: %v are %.2f apart", i, scheme, pair, contrast(pair[0], pair[1]))
			}
		}
		if luminance(at(i).light) >= luminance(at(i+1).light) || luminance(at(i).dark) <= luminance(at(i+1).dark) {
			t.Errorf("step %d: contrast with the page is not monotonic", i)
		}
	}
	for scheme, c := range map[string]float64{"light": contrast(at(zero).light, shades["paper"].light), "dark": contrast(at(zero).dark, shades["paper"].dark)} {
		if c > 1.2 {
			t.Errorf("%s: contrast of 0 with the page is %.2f", scheme, c)
		}
	}
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestOKLCH: white, black and the three primaries of sRGB, from their coordinates in Ottosson's definition.
func TestOKLCH(t *testing.T) {
	for want, c := range map[string][3]float64{
		"#ffffff": {1, 0, 0}, "#000000": {0, 0, 0}, "#ff0000": {0.6279554, 0.2576833, 29.2338803},
		"#00ff00": {0.8664396, 0.2948272, 142.4953389}, "#0000ff": {0.4520137, 0.3132143, 264.0520206},
	} {
		if got := oklch(c[0], c[1], c[2]); got != want {
			t.Errorf("%v is %s, want %s", c, got, want)
		}
	}
}

// TestTokens: neutrals, accent and slots match the colours of the pages.
func TestTokens(t *testing.T) {
	css, err := os.ReadFile("../../../static/shared/base.css")
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[paint]string{"ink": "ink", "quiet": "quiet", "rule": "rule", "strong": "rule-strong", "paper": "paper", "sunk": "sunk", "accent": "accent"}
	for i := range Slots {
		tokens[paint(fmt.Sprint("s", i))] = fmt.Sprint("slot-", i)
	}
	for p, token := range tokens {
		s := shades[p]
		both, one := fmt.Sprintf("--%s: light-dark(%s, %s);", token, s.light, s.dark), fmt.Sprintf("--%s: %s;", token, s.light)
		if !strings.Contains(string(css), both) && (s.light != s.dark || !strings.Contains(string(css), one)) {
			t.Errorf("base.css lacks %q", both)
		}
	}
}

// TestSeriesDiffer: no two series look alike in either scheme until the colours repeat, and each contrasts with the page.
func TestSeriesDiffer(t *testing.T) {
	for i := range Series {
		s := shades[seriesPaint(i)]
		for scheme, pair := range map[string][2]string{"light": {s.light, shades["paper"].light}, "dark": {s.dark, shades["paper"].dark}} {
			if c := contrast(pair[0], pair[1]); c < 1.8 || i >= Slots && c < 3 {
				t.Errorf("series %d, %s: contrast %.2f with the paper", i, scheme, c)
			}
		}
		for j := range i {
			o := shades[seriesPaint(j)]
			if d := min(apartLab(s.light, o.light), apartLab(s.dark, o.dark)); d < 0.06 || i >= Slots && d < 0.11 {
				t.Errorf("series %d and %d are only %.3f apart in OKLab", i, j, d)
			}
		}
	}
	seen := map[string]bool{}
	for i := range 40 {
		look := fmt.Sprint(seriesPaint(i), Dash(i))
		if seen[look] {
			t.Fatalf("series %d looks like an earlier one: %s", i, look)
		}
		seen[look] = true
	}
}

// apartLab is the distance of two colours in OKLab; oklch is its inverse.
func apartLab(a, b string) float64 {
	x, y := oklab(a), oklab(b)
	return math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
}

func oklab(hex string) [3]float64 {
	c := rgba(hex)
	r, g, b := linear(c.R), linear(c.G), linear(c.B)
	l, m, s := math.Cbrt(0.4122214708*r+0.5363325363*g+0.0514459929*b), math.Cbrt(0.2119034982*r+0.6806995451*g+0.1073969566*b), math.Cbrt(0.0883024619*r+0.2817188376*g+0.6299787005*b)
	return [3]float64{0.2104542553*l + 0.7936177850*m - 0.0040720468*s, 1.9779984951*l - 2.4285922050*m + 0.4505937099*s, 0.0259040371*l + 0.7827717662*m - 0.8086757660*s}
}

// TestApart: labels keep their order, their distance and the bounds.
func TestApart(t *testing.T) {
	got := apart([]float64{50, 52, 51, 99}, 10, 0, 100)
	if fmt.Sprint(got) != "[50 70 60 99]" && fmt.Sprint(got) != "[50 70 60 90]" {
		t.Errorf("%v", got)
	}
	if got := apart([]float64{98, 99}, 10, 0, 100); got[0] != 90 || got[1] != 100 {
		t.Errorf("at the end: %v", got)
	}
	if got := apart([]float64{1, 0, 2}, 10, 0, 15); got[1] != 0 || got[0] != 10 {
		t.Errorf("without room, from the start: %v", got)
	}
}

// TestClip: a line that leaves the box and returns is cut into two pieces that end at its sides.
func TestClip(t *testing.T) {
	pieces := clip([]point{{-1, 5}, {5, 5}, {5, 15}, {7, 15}, {7, 5}}, box{0, 0, 10, 10})
	if fmt.Sprint(pieces) != "[[{0 5} {5 5} {5 10}] [{7 10} {7 5}]]" {
		t.Errorf("%v", pieces)
	}
	if pieces := clip([]point{{-1, -1}, {-5, 20}}, box{0, 0, 10, 10}); len(pieces) != 0 {
		t.Errorf("line outside the box: %v", pieces)
	}
}

// TestTicks: round numbers on linear axes, powers of ten on logarithmic axes.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		values []float64
		room   int
		want   string
	}{
		{Axis{}, []float64{0, 1}, 5, "0 0.2 0.4 0.6 0.8 1"},
		{Axis{}, []float64{-20, 20}, 4, "−20 −10 0 10 20"},
		{Axis{}, []float64{5, 5}, 3, "4.5 5 5.5"},
		{Axis{Log: true}, []float64{1, 100, 0, -4}, 6, "1 2 5 10 20 50 100"},
		{Axis{Log: true}, []float64{1e-5, 1e5}, 5, "1e−5 0.001 0.1 10 1,000 100,000"},
		{Axis{Log: true}, []float64{0.55, 0.8}, 5, "0.55 0.6 0.65 0.7 0.75 0.8"}, // the range contains no 1, 2 or 5
		{Axis{Ticks: []float64{0, 3, 9}, Range: [2]float64{0, 5}}, nil, 5, "0 3"},
	} {
		s := c.axis.scale(c.values, 0, 100)
		var words []string
		for _, v := range c.axis.ticks(s, c.room) {
			words = append(words, Number(v))
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%v over %v: got %s, want %s", c.axis, c.values, got, c.want)
		}
	}
}

// TestDashed: a pattern of 2 on and 1 off around a corner.
func TestDashed(t *testing.T) {
	got := dashed([]point{{0, 0}, {4, 0}, {4, 3}}, []float64{2, 1})
	if fmt.Sprint(got) != "[[{0 0} {2 0}] [{3 0} {4 0} {4 1}] [{4 2} {4 3}]]" {
		t.Errorf("%v", got)
	}
}

// TestDotLabels: labels of dots in one column are one line apart; a label in another column does not move.
func TestDotLabels(t *testing.T) {
	p := plot{x: scale{min: 0, max: 100, from: 0, to: 300}, y: scale{min: 0, max: 1, from: 200, to: 0}}
	got := stacked([]Dot{{X: 10}, {X: 11}, {X: 90}}, []float64{100, 101, 100}, p)
	if d := got[1] - got[0]; math.Abs(d-(labelFont.size+1)) > 1e-9 || got[2] != 100 {
		t.Errorf("base lines are %v", got)
	}
}

// TestScaleBarFits: the label of the largest value fits into the figure, however narrow the matrix.
func TestScaleBarFits(t *testing.T) {
	const row = "a row of some length"
	f := HeatMap{Name: "a", Rows: []string{row}, Columns: []string{"32"}, Value: [][]float64{{9.28155}}, Range: [2]float64{9.28155, 9.36944}}.Draw()
	if need := textWidth(row, labelFont) + textWidth("9.282", quietFont) + 6*heatSteps + textWidth("9.369", quietFont); f.Width < need {
		t.Errorf("%v wide, needs %v", f.Width, need)
	}
}
