package evaluate

import (
	"math"
	"slices"
	"testing"

	"slotscope/model"
)

func near(t *testing.T, what string, got model.Score, want, tol float64) {
	t.Helper()
	if !got.Defined() || math.Abs(float64(got)-want) > tol {
		t.Errorf("%s is %v, want %v", what, float64(got), want)
	}
}

func TestIntervals(t *testing.T) {
	i := meanInterval([]float64{1, 2, 3, 4, 5}) // s = √2.5, t(0.975, 4) = 2.7764
	near(t, "mean", i.Value, 3, 1e-12)
	near(t, "low", i.Low, 3-2.776445*math.Sqrt(0.5), 1e-5)
	near(t, "high", i.High, 3+2.776445*math.Sqrt(0.5), 1e-5)
	if one := meanInterval([]float64{7}); one.Value != 7 || one.Low.Defined() {
		t.Errorf("one value has interval %v", one)
	}
	s := share(3, 10) // Wilson 1927: 0.1078 to 0.6032
	near(t, "share", s.Value, 0.3, 1e-12)
	near(t, "low", s.Low, 0.1078, 1e-4)
	near(t, "high", s.High, 0.6032, 1e-4)
	near(t, "low of none", share(0, 20).Low, 0, 1e-12)
	near(t, "high of all", share(20, 20).High, 1, 1e-12)
	if share(0, 0).Value.Defined() {
		t.Error("a share of nothing is defined")
	}
}

// TestTally: one slot owned by factor 1, one without a factor.
func TestTally(t *testing.T) {
	tl := newTally([]int{1, -1}, 3)
	before := []int32{0, 0, 0}
	for _, c := range []struct {
		slot  int
		after []int32
	}{
		{0, []int32{0, 1, 0}}, {0, []int32{0, 2, 0}}, {0, []int32{0, 0, 0}}, {0, []int32{3, 1, 0}},
		{1, []int32{0, 0, 0}}, {1, []int32{0, 0, 4}},
	} {
		tl.add(c.slot, before, c.after)
	}
	var s model.Swap
	tl.report(&s)
	near(t, "exact", s.Exact.Value, 0.5, 0)
	near(t, "none", s.None.Value, 0.25, 0)
	near(t, "others", s.Others.Value, 0.25, 0)
	near(t, "leakage into factor 0", s.Slots[0].Leakage[0].Value, 0.25, 0)
	near(t, "change of its own", s.Slots[0].Leakage[1].Value, 0.75, 0)
	near(t, "leakage of the slot without a factor", s.Slots[1].Leakage[2].Value, 0.5, 0)
	near(t, "none of the slot without a factor", s.Slots[1].None.Value, 0.5, 0)
	if s.Edits != 4 || s.Slots[1].Edits != 2 || s.Slots[1].Factor != -1 {
		t.Errorf("%+v", s)
	}
}

// TestEdited: an edited row is its image's row with one slot from the other image.
func TestEdited(t *testing.T) {
	e := &evaluation{net: &net{m: 2}, slots: slots{codes: []int32{1, 2, 3, 4}}}
	if got := e.edited([]edit{{a: 0, b: 1, slot: 1}, {a: 1, b: 0, slot: 1}}).codes; !slices.Equal(got[:4], []int32{1, 4, 3, 2}) || len(got) != batchSize*2 {
		t.Errorf("%d codes, the first are %v", len(got), got[:4])
	}
}
