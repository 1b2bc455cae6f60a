package metric

import (
	"math/rand/v2"
	"slices"
	"testing"

	"slotscope/model"
)

// TestRuleOfOwnership checks the thresholds at and around their limits; factor 4 has one value.
func TestRuleOfOwnership(t *testing.T) {
	names := []string{"floor_hue", "shape", "wall_hue", "scale", "camera"}
	for _, c := range []struct {
		nmi   [4]float64
		kind  model.OwnerKind
		first int
		name  string
	}{
		{[4]float64{0.9, 0.1, 0, 0}, model.Owned, 0, "floor hue"},
		{[4]float64{0, 0.5, 0.25, 0}, model.Owned, 1, "shape"},
		{[4]float64{0, 0.49, 0.2, 0}, model.Several, 1, "partly shape"},
		{[4]float64{0, 0.7, 0.51, 0}, model.Several, 1, "shape + wall hue"},
		{[4]float64{0.3, 0.4, 0.35, 0}, model.Several, 1, "shape + wall hue + floor hue"},
		{[4]float64{0.29, 0.2, 0, 0}, model.Mixed, 0, "mixed"},
		{[4]float64{}, model.Mixed, -1, "mixed"},
	} {
		nmi := make([][]model.Score, 5)
		for f, v := range c.nmi {
			nmi[f] = []model.Score{model.Score(v)}
		}
		nmi[4] = []model.Score{model.Undefined()}
		o := OwnersOf(nmi, []bool{true}).Slots[0]
		if o.Kind != c.kind || o.First != c.first || OwnerName(o, names) != c.name {
			t.Errorf("NMI %v: %+v named %q, want %s of %d named %q", c.nmi, o, OwnerName(o, names), c.kind, c.first, c.name)
		}
		if o := OwnersOf(nmi, []bool{false}).Slots[0]; o.Kind != model.Unused || o.First != -1 || OwnerName(o, names) != "unused" {
			t.Errorf("constant slot: %+v", o)
		}
	}
}

// TestGroups: two slots of one factor form a group, even if only one of them is owned; a factor without a slot is not covered.
func TestGroups(t *testing.T) {
	nmi := [][]model.Score{{0.9, 0.2, 0.01, 0}, {0.1, 0.1, 0.6, 0}, {0, 0, 0, 0}}
	o := OwnersOf(nmi, []bool{true, true, true, false})
	if len(o.Groups) != 2 || o.Groups[0].Factor != 0 || !slices.Equal(o.Groups[0].Slots, []int{0, 1}) || !o.Groups[0].Owned || !slices.Equal(o.Groups[1].Slots, []int{2}) {
		t.Errorf("groups %+v", o.Groups)
	}
	if o.Owned() != 2 || o.Coverage != model.Score(2.0/3) {
		t.Errorf("%d factors own a slot, coverage %v", o.Owned(), o.Coverage)
	}
}

// TestOwnersOfTable: many random codes own nothing on few rows, numbers follow the same rule as codes, and a factor with one value is ignored.
func TestOwnersOfTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	const n = 2000
	var hue, shape, one, exact, half, random []int
	var number, noise []float64
	for range n {
		h, s := rng.IntN(10), rng.IntN(4)
		hue, shape, one = append(hue, h), append(shape, s), append(one, 3)
		exact, random = append(exact, 7*h%40), append(random, rng.IntN(500))
		if rng.IntN(2) == 0 {
			s = rng.IntN(4)
		}
		half = append(half, s)
		number, noise = append(number, float64(h)+0.01*rng.NormFloat64()), append(noise, rng.NormFloat64())
	}
	codes := Own(Table{Codes: [][]int{exact, half, random, one}, Factors: [][]int{hue, shape, one}}, 1)
	want := []model.OwnerKind{model.Owned, model.Mixed, model.Mixed, model.Unused}
	for j, o := range codes.Slots {
		if o.Kind != want[j] {
			t.Errorf("slot %d is %s, want %s; NMI with hue %v, with shape %v", j, o.Kind, want[j], codes.NMI[0][j], codes.NMI[1][j])
		}
	}
	if codes.NMI[0][0] < 0.999 || codes.NMI[0][2] > 0.03 || codes.NMI[1][2] > 0.03 || codes.NMI[2][0].Defined() || codes.Coverage != 0.5 {
		t.Errorf("NMI %v, coverage %v", codes.NMI, codes.Coverage)
	}
	numbers := Own(Table{Values: [][]float64{number, noise}, Factors: [][]int{hue, shape}}, 1)
	if numbers.Slots[0].Factor() != 0 || numbers.Slots[1].Kind != model.Mixed {
		t.Errorf("numbers: %+v", numbers)
	}
}
