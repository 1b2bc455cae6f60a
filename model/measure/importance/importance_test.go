package importance

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// world has settings of three inputs; y depends strongly on the first, weakly on the second and not on the third.
func world(settings, seeds int, noise float64) (x [][]float64, y []float64, group []int) {
	rng := rand.New(rand.NewPCG(5, 6))
	for s := range settings {
		row := []float64{rng.Float64(), rng.Float64(), rng.Float64()}
		for range seeds {
			x, y, group = append(x, row), append(y, 3*row[0]+row[1]+noise*rng.NormFloat64()), append(group, s)
		}
	}
	return x, y, group
}

func TestImportance(t *testing.T) {
	x, y, group := world(60, 3, 0.1)
	in, ok := Of(x, y, group, 1)
	if !ok || len(in) != 3 {
		t.Fatal("no result for 180 rows")
	}
	// Var(3 x_0), Var(x_1) and 0 of their sum: 0.9, 0.1 and 0; with few settings, a forest attributes some of it to interactions
	if in[0].Value < 0.6 || in[0].Value > 1 || in[1].Value < 0.03 || in[1].Value > 0.15 || in[2].Value > 0.02 {
		t.Errorf("%+v", in)
	}
	for j, i := range in {
		if !(i.Low <= i.Value && i.Value <= i.High) {
			t.Errorf("input %d: %+v", j, i)
		}
	}
	if in[0].Low <= in[1].High || in[1].Low <= in[2].Value {
		t.Errorf("the intervals of the inputs overlap: %+v", in)
	}
	if again, _ := Of(x, y, group, 1); !reflect.DeepEqual(in, again) {
		t.Error("the result is not deterministic")
	}
}

// TestImportanceOfInteraction: if y is the product of two centred inputs, neither explains it alone.
func TestImportanceOfInteraction(t *testing.T) {
	x, y, group := world(150, 1, 0)
	for i := range y {
		y[i] = (x[i][0] - 0.5) * (x[i][1] - 0.5)
	}
	in, ok := Of(x, y, group, 1)
	for j, i := range in {
		if !ok || i.Value > 0.2 {
			t.Errorf("input %d of a product: %+v", j, i)
		}
	}
}

// TestImportanceInAGrid: in a balanced grid of few settings, leaving settings out would reverse the result.
func TestImportanceInAGrid(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var x [][]float64
	var y []float64
	var group []int
	for s := range 30 {
		for range 3 {
			x, y, group = append(x, []float64{float64(s % 5), float64(s / 5 % 3), float64(s / 15)}), append(y, float64(s%5)+float64(s/5%3)+0.1*rng.NormFloat64()), append(group, s)
		}
	}
	in, ok := Of(x, y, group, 1)
	// variances of 0…4 and 0…2: 2 and 2/3, so 0.75, 0.25 and 0
	if !ok || in[0].Value < 0.6 || in[0].Value > 0.85 || in[1].Value < 0.12 || in[1].Value > 0.35 || in[2].Value > 0.03 {
		t.Errorf("%+v", in)
	}
}

func TestImportanceOfTooLittle(t *testing.T) {
	x, y, group := world(2, 3, 0.1)
	if _, ok := Of(x, y, group, 1); ok {
		t.Error("got a result for 6 rows")
	}
	x, _, group = world(10, 1, 0)
	if _, ok := Of(x, make([]float64, 10), group, 1); ok {
		t.Error("got a result for a constant")
	}
}

func BenchmarkImportance(b *testing.B) {
	x, y, group := world(100, 3, 0.1)
	for b.Loop() {
		Of(x, y, group, 1)
	}
}
