package play

import (
	"math"
	"math/rand/v2"
	"testing"

	"slotscope/model/data"
)

func TestTallyNamesTheFactorOfASlot(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	info := data.Info{Factors: []data.Factor{{Name: "hue"}, {Name: "shape"}}}
	var codes [][]int
	var classes []int
	for range 2000 {
		hue, shape := rng.IntN(10), rng.IntN(4)
		noisy := shape
		if rng.IntN(10) < 3 {
			noisy = rng.IntN(4)
		}
		codes = append(codes, []int{(hue*7 + 1) % 40, 10 + noisy, rng.IntN(40)})
		classes = append(classes, hue, shape)
	}
	u := tally(3, 40, codes, classes, info)
	for i, want := range []struct {
		factor    string
		low, high float64
		used      int
	}{{"hue", 0.9999, 1, 10}, {"shape", 0.35, 0.6, 4}, {"", 0, 0.05, 40}} {
		l := u.Labels[i]
		if l.Factor != want.factor || l.Score < want.low || l.Score > want.high || l.Used != want.used {
			t.Errorf("slot %d: %+v, want %+v", i, l, want)
		}
	}
	if u.Ranked(1)[0] < 10 || u.Ranked(1)[0] > 13 || u.Counts[1][0] != 0 {
		t.Errorf("slot 1 is ranked %v", u.Ranked(1)[:4])
	}
}

// Without the correction a slot of 500 codes would seem to know a fair part of any factor from 4,096 images.
func TestRelationOfChanceIsNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	factor, slot := make([]int, 4096), make([]int, 4096)
	for n := range factor {
		factor[n], slot[n] = rng.IntN(10), rng.IntN(500)
	}
	if r := relation(factor, slot); r > 0.02 {
		t.Errorf("relation of independent columns is %v", r)
	}
	if plain := mutual(factor, slot) / entropy(factor); plain < 0.15 {
		t.Errorf("the plain ratio is %v: this test shows nothing", plain)
	}
	if r := relation(factor, factor); math.Abs(r-1) > 1e-9 {
		t.Errorf("relation of a factor to itself is %v", r)
	}
	if r := relation(make([]int, 4096), slot); r != 0 {
		t.Errorf("relation to a factor of one value is %v", r)
	}
}

func TestDrawIndices(t *testing.T) {
	a, b := drawIndices(100, 480_000), drawIndices(100, 480_000)
	for i := range a {
		if a[i] != b[i] || a[i] < 0 || a[i] >= 480_000 || (i > 0 && a[i] <= a[i-1]) {
			t.Fatalf("draw %v and %v", a, b)
		}
	}
	if all := drawIndices(10, 4); len(all) != 4 {
		t.Errorf("drew %v of 4", all)
	}
}
