package evaluate

import (
	"math/rand/v2"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/expect"
	"slotscope/model/measure/metric"
)

// gridWork returns work whose codes are the factors of the drawn shapes, decoded by draw: images of the dataset by classes.
func gridWork(t *testing.T, draw func(codes []int32, classes []int)) (truthWork, [][2]int) {
	t.Helper()
	set := dataset(t)
	info, rng := set.Info(), rand.New(rand.NewPCG(3, 9))
	f, size := len(info.Factors), info.H*info.W*info.C
	w := truthWork{set: set, info: info, m: f, progress: func(int, int) {}}
	var pairs [][2]int
	for n := range 24 { // consecutive pairs of images that differ in every factor
		for i, k := range info.Sizes() {
			c := rng.IntN(k)
			if n%2 == 1 {
				c = (w.classes[(n-1)*f+i] + 1 + rng.IntN(k-1)) % k
			}
			w.classes, w.slots.codes = append(w.classes, c), append(w.slots.codes, int32(c))
		}
		at, err := set.Index(w.classes[n*f:])
		if err != nil {
			t.Fatal(err)
		}
		w.index = append(w.index, at)
		if n%2 == 1 {
			pairs = append(pairs, [2]int{n - 1, n})
		}
	}
	w.owners = metric.OwnersOf(diagonal(f), []bool{true, true, true, true, true, true})
	w.decode = func(s slots, n int) (images []float32, classes []int32, err error) {
		pixels, drawn := make([]byte, size), make([]int, f)
		for r := range n {
			draw(s.codes[r*f:(r+1)*f], drawn)
			at, err := set.Index(drawn)
			if err == nil {
				err = set.Images(pixels, []int{at})
			}
			if err != nil {
				return nil, nil, err
			}
			images = append(images, unit(pixels)...)
			for _, c := range drawn {
				classes = append(classes, int32(c))
			}
		}
		return images, classes, nil
	}
	return w, pairs
}

func diagonal(f int) [][]model.Score {
	nmi := make([][]model.Score, f)
	for i := range nmi {
		nmi[i] = make([]model.Score, f)
		nmi[i][i] = 1
	}
	return nmi
}

func lookup(codes []int32, classes []int) {
	for i, c := range codes {
		classes[i] = int(c)
	}
}

func (w truthWork) mustRun(t *testing.T, pairs [][2]int) *model.SwapTruth {
	t.Helper()
	s, err := w.run(t.Context(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTruthOfLookupTable: codes that equal the factors and a decoder that looks up the image always hit.
func TestTruthOfLookupTable(t *testing.T) {
	w, pairs := gridWork(t, lookup)
	s := w.mustRun(t, pairs)
	if s.Single.Value != 1 || s.Group.Value != 1 || s.Coverage != 1 || s.Single.Low < 0.7 || s.Single.High != 1 || s.Baseline != metric.MaxPSNR {
		t.Errorf("a lookup table: single %v, group %v, coverage %v, baseline %v", s.Single, s.Group, s.Coverage, s.Baseline)
	}
	for j, slot := range s.Slots {
		if slot.Factor != j || slot.Hits.Value != 1 || slot.PSNR != metric.MaxPSNR || slot.Unchanged != 0 || slot.LeaksMost != -1 {
			t.Errorf("slot %d: %+v", j, slot)
		}
	}
}

// TestTruthOfConstant: a decoder that ignores codes never hits, although its image is as near to T as to A; constant codes own nothing.
func TestTruthOfConstant(t *testing.T) {
	w, pairs := gridWork(t, func(_ []int32, classes []int) { clear(classes) })
	s := w.mustRun(t, pairs)
	if s.Single.Value != 0 || s.Group.Value != 0 || s.Single.High > 0.3 {
		t.Errorf("a constant decoder: single %v, group %v", s.Single, s.Group)
	}
	w.owners = metric.OwnersOf(diagonal(6), make([]bool, 6))
	s = w.mustRun(t, pairs)
	if s.Single.Value != 0 || s.Group.Value != 0 || s.Coverage != 0 || len(s.Groups) != 0 || s.Slots[0].Factor != -1 || s.Slots[0].Hits.Value.Defined() {
		t.Errorf("constant codes: %+v", s)
	}
}

// TestTruthNamesTheLeak: the floor hue's slot also changes the wall's, factor 1; reconstructions are exact, and the other slots pure.
func TestTruthNamesTheLeak(t *testing.T) {
	w, pairs := gridWork(t, func(codes []int32, classes []int) {
		lookup(codes, classes)
		classes[1] = (classes[1] + classes[0]) % 10
	})
	for n := range w.index {
		row := w.slots.codes[n*w.m:]
		row[1] = (row[1] + 10 - row[0]) % 10
	}
	s := w.mustRun(t, pairs)
	if s.Slots[0].LeaksMost != 1 || s.Slots[0].Leak[1] < 0.9 || s.Groups[0].LeaksMost != 1 || s.Slots[0].Hits.Value != 0 {
		t.Errorf("the leaky slot: %+v", s.Slots[0])
	}
	for j, slot := range s.Slots[2:] {
		if slot.LeaksMost != -1 {
			t.Errorf("slot %d is reported to leak: %+v", j+2, slot)
		}
	}
}

// TestTruthOfGroups: two slots that jointly carry a factor's value hit only as a group.
func TestTruthOfGroups(t *testing.T) {
	w, pairs := gridWork(t, nil)
	f := w.m
	w.m = f + 1
	var codes []int32
	for n := range w.index { // slot 6 carries a part of the floor's hue: hue = slot 0 + slot 6
		row := make([]int32, f+1)
		copy(row, w.slots.codes[n*f:(n+1)*f])
		row[f] = int32(3 + n%4)
		row[0] = (row[0] + 10 - row[f]) % 10
		codes = append(codes, row...)
	}
	plainWork, _ := gridWork(t, lookup)
	w.slots.codes = codes
	w.decode = func(s slots, n int) ([]float32, []int32, error) {
		var merged slots
		for r := range n {
			row := s.codes[r*(f+1) : (r+1)*(f+1)]
			merged.codes = append(merged.codes, (row[0]+row[f])%10)
			merged.codes = append(merged.codes, row[1:f]...)
		}
		return plainWork.decode(merged, n)
	}
	nmi := diagonal(f)
	for i := range nmi {
		nmi[i] = append(nmi[i], 0)
	}
	nmi[0][f] = 0.6
	w.owners = metric.OwnersOf(nmi, []bool{true, true, true, true, true, true, true})
	s := w.mustRun(t, pairs)
	if len(s.Groups) != 6 || len(s.Groups[0].Slots) != 2 || s.Group.Value != 1 || s.Slots[0].Hits.Value > 0.3 || s.Slots[6].Hits.Value > 0.3 {
		t.Errorf("slots %v and %v, groups %v of %+v", s.Slots[0].Hits, s.Slots[6].Hits, s.Group, s.Groups[0])
	}
}

// TestTruthNeedsGrid: a set without every combination gets an explanation.
func TestTruthNeedsGrid(t *testing.T) {
	set := added(t, 61, func(classes []int) []int64 { return []int64{int64(classes[0]), int64(classes[1])} }, "floor", "wall")
	o := few
	o.Noise, o.Probe = 0, 0
	r, err := staged(t.Context(), t, shipped(t), set, o, (*evaluation).truth)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Scores; s.SwapTruth != nil || !strings.Contains(s.NoTruth, "does not contain every combination") {
		t.Errorf("%+v, %q", s.SwapTruth, s.NoTruth)
	}
}

// TestTruthOfTiny compares swaps of a trained model with another program's measurement on 60 other pairs, 34% of single slots and 67% of groups,
// within three standard errors of either.
func TestTruthOfTiny(t *testing.T) {
	expect.Long(t)
	o := Options{Images: 2000, Pairs: 100, Trees: 1, Seed: 5}
	r, err := staged(t.Context(), t, shipped(t), dataset(t), o, (*evaluation).truth)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Scores.SwapTruth
	near(t, "single", s.Single.Value, 0.34, 0.08)
	near(t, "group", s.Group.Value, 0.67, 0.12)
	t.Logf("single %.3f, group %.3f, baseline %.2f dB", s.Single, s.Group, s.Baseline)
	for _, g := range s.Groups {
		t.Logf("factor %d, slots %v: hits %.2f, unchanged %.2f, %.1f dB", g.Factor, g.Slots, g.Hits.Value, g.Unchanged, g.PSNR)
	}
}
