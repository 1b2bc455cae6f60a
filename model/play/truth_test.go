package play

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
)

// TestTruthOfAPair: the true image has A's factors, with those of the swapped slots from B; slots without a factor and datasets without every
// combination give an error.
func TestTruthOfAPair(t *testing.T) {
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	l := NewLibrary(t.TempDir(), engine, data.Catalogue{})
	defer l.Close()
	src, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	m, release, err := l.Use(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	set, err := l.Set(t.Context(), src.Config.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	u := l.Usage(src).Usage
	group := u.Ownership.Groups[1] // of the wall hue, which this model represents well
	a, b := GoodPair(set)
	truth, err := m.Truth(t.Context(), set, u, a, b, group.Slots)
	if err != nil {
		t.Fatal(err)
	}
	classes := make([]int, 3*6)
	if err := set.Classes(classes, []int{a, b, truth.Index}); err != nil {
		t.Fatal(err)
	}
	for f := range 6 {
		from := classes[f]
		if f == group.Factor {
			from = classes[6+f]
		}
		if classes[12+f] != from {
			t.Errorf("factor %d of the true image is %d, want %d", f, classes[12+f], from)
		}
	}
	if len(truth.Factors) != 1 || truth.Factors[0] != group.Factor || !truth.Hit || truth.PSNR < truth.Reconstruction-3 || truth.Before > truth.PSNR {
		t.Errorf("%+v", truth)
	}
	if same, err := m.Truth(t.Context(), set, u, a, a, group.Slots); err != nil || same.Hit || same.Index != a {
		t.Errorf("a swap with itself: %+v, %v", same, err)
	}
	for _, c := range []struct {
		slots []int
		want  string
	}{{nil, "give at least one slot"}, {[]int{9}, "slot 9 does not exist"}} {
		if _, err := m.Truth(t.Context(), set, u, a, b, c.slots); !errors.As(err, new(model.Invalid)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("slots %v: %v", c.slots, err)
		}
	}
	mixed := *u
	mixed.Ownership.Slots = append([]model.Owner{{Kind: model.Mixed, First: 2}}, u.Ownership.Slots[1:]...)
	if _, err := m.Truth(t.Context(), set, &mixed, a, b, []int{0}); err == nil || !strings.Contains(err.Error(), "slot 0 has no factor") {
		t.Errorf("a mixed slot: %v", err)
	}
	in := *u // the group includes a mixed slot, which is swapped with the others
	in.Ownership.Slots = slices.Clone(u.Ownership.Slots)
	in.Ownership.Slots[group.Slots[0]] = model.Owner{Kind: model.Mixed, First: group.Factor}
	if got, err := m.Truth(t.Context(), set, &in, a, b, group.Slots); len(group.Slots) < 2 || err != nil || !slices.Equal(got.Factors, []int{group.Factor}) {
		t.Errorf("a group with a mixed slot, of slots %v: %+v, %v", group.Slots, got, err)
	}
	part, err := data.Open(t.Context(), src.Config.Dataset+"[not(shape=cube;floor_hue=0.0)]", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	if _, err := m.Truth(t.Context(), part, u, 0, 1, group.Slots); err == nil || !strings.Contains(err.Error(), "every combination") {
		t.Errorf("an incomplete dataset: %v", err)
	}
}
