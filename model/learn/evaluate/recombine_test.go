package evaluate

import (
	"context"
	"slices"
	"strings"
	"testing"

	"slotscope/model"
)

// onPart returns an evaluation of images of a part of the drawn shapes whose codes are the factors of the whole set, without a model.
func onPart(t *testing.T, selection string, count int) *evaluation {
	t.Helper()
	set := partOf(t, selection)
	e := &evaluation{set: set, info: set.Info(), o: Options{Images: count, Pairs: 40, Seed: 5, Progress: func(string, string, float64, float64) {}}, net: &net{m: 6}}
	if err := e.draw(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// lookedUp recombines codes of a training part; draw decodes rows of codes, which are classes of the whole set, to its images. Slot f stands
// for factor f if owned includes it.
func lookedUp(t *testing.T, e *evaluation, owned int, draw func(codes []int32) []int) recombining {
	t.Helper()
	whole := dataset(t)
	known, why, err := combinationsOf(t.Context(), e.set)
	if err != nil || why != "" {
		t.Fatal(why, err)
	}
	w := recombining{evaluation: e, known: known, slots: make([][]int, 6)}
	for f := range owned {
		w.slots[f] = []int{f}
	}
	w.encode = func(_ context.Context, of *evaluation, index []int) (p pictures, err error) {
		pixels, classes := make([]byte, len(index)*of.info.H*of.info.W*of.info.C), make([]int, len(index)*6)
		if err = of.set.Images(pixels, index); err == nil {
			err = of.set.Classes(classes, index)
		}
		p.images, p.rebuilt = unit(pixels), unit(pixels)
		translate := translation(of.info, whole.Info())
		for i, c := range classes {
			p.slots.codes = append(p.slots.codes, int32(translate[i%6][c]))
		}
		return p, err
	}
	w.decode = func(s slots, n int) (images []float32, err error) {
		info := whole.Info()
		pixels := make([]byte, info.H*info.W*info.C)
		for r := range n {
			at, err := whole.Index(draw(s.codes[r*6 : (r+1)*6]))
			if err == nil {
				err = whole.Images(pixels, []int{at})
			}
			if err != nil {
				return nil, err
			}
			images = append(images, unit(pixels)...)
		}
		return images, nil
	}
	return w
}

func classesOf(codes []int32) []int {
	out := make([]int, len(codes))
	for i, c := range codes {
		out[i] = int(c)
	}
	return out
}

// TestRecombinationTrials: T is not in the training part, A and B are; A has all of T's values except the factor's, and B has that one and
// none of A's.
func TestRecombinationTrials(t *testing.T) {
	train, left := onPart(t, "[split=composition]", 300), onPart(t, "[not(split=composition)]", 300)
	w := lookedUp(t, train, 6, classesOf)
	values := func(of *evaluation, image int) (v [6]string) {
		classes := make([]int, 6)
		if err := of.set.Classes(classes, []int{image}); err != nil {
			t.Fatal(err)
		}
		for f, c := range classes {
			v[f] = of.info.Factors[f].Values[c]
		}
		return v
	}
	trials := w.trials(left, true)
	if len(trials) < 20 {
		t.Fatalf("%d trials among 300 images left out", len(trials))
	}
	factors := map[int]bool{}
	for _, r := range trials {
		factors[r.factor] = true
		target, a, b := values(left, left.index[r.row]), values(train, r.a), values(train, r.b)
		for f := range 6 {
			if (a[f] == target[f]) != (f != r.factor) || (b[f] == target[f]) != (f == r.factor) && b[f] == a[f] {
				t.Fatalf("factor %d of trial %+v: T %v, A %v, B %v", f, r, target, a, b)
			}
		}
	}
	if len(factors) < 3 {
		t.Errorf("only factors %v are tried", factors)
	}
	if again := w.trials(left, true); len(again) != len(trials) || again[3] != trials[3] {
		t.Error("the same seed draws different trials")
	}
}

// TestRecombined: a lookup table of the dataset hits every target; a decoder that always returns A hits none; factors without slots are misses.
func TestRecombined(t *testing.T) {
	train, left := onPart(t, "[split=composition]", 200), onPart(t, "[not(split=composition)]", 200)
	for _, c := range []struct {
		name   string
		owned  int
		least  float64
		most   float64
		decode func(codes []int32) []int
	}{
		{"a lookup table", 6, 1, 1, classesOf},
		{"no slot stands for a factor", 0, 0, 0, classesOf},
		{"three factors own slots", 3, 0.1, 0.9, classesOf},
		{"a decoder of one picture", 6, 0, 0, func([]int32) []int { return make([]int, 6) }},
	} {
		w := lookedUp(t, train, c.owned, c.decode)
		for name, of := range map[string]*evaluation{"unseen": left, "seen": train} {
			r, err := w.run(t.Context(), of, w.trials(of, of == left))
			if err != nil {
				t.Fatal(err)
			}
			hits := float64(r.Hits.Value)
			if r.Targets < 20 || hits < c.least || hits > c.most || (c.owned == 0) != (r.Owned == 0) || (c.owned == 0) == r.PSNR.Value.Defined() {
				t.Errorf("%s, %s: %+v", c.name, name, r)
			}
			if c.owned == 6 && r.Owned != r.Targets || r.Reconstruction.Value != 100 {
				t.Errorf("%s, %s: %d of %d owned, reconstructions %v dB", c.name, name, r.Owned, r.Targets, r.Reconstruction.Value)
			}
		}
	}
}

// TestNothingToRecombine: values never seen in training cannot be recombined, and the reason is a sentence.
func TestNothingToRecombine(t *testing.T) {
	train, left := onPart(t, "[split=interpolation]", 100), onPart(t, "[not(split=interpolation)]", 100)
	train.scores.Metrics = &model.Metrics{Ownership: &model.Ownership{}}
	r, why, err := train.recombine(t.Context(), left)
	if r != nil || err != nil || !strings.Contains(why, "a factor value that does not occur in training") {
		t.Errorf("%+v, %q, %v", r, why, err)
	}
	same := *left
	same.info.Factors = slices.Clone(left.info.Factors)
	same.info.Factors[4].Values = []string{"cube", "cube"}
	if r, why, err = train.recombine(t.Context(), &same); r != nil || err != nil || !strings.Contains(why, "two values of shape") {
		t.Errorf("two values with the same name: %+v, %q, %v", r, why, err)
	}
	train.scores.Metrics = nil
	if r, why, err = train.recombine(t.Context(), left); r != nil || why != "" || err != nil {
		t.Errorf("without factors: %+v, %q, %v", r, why, err)
	}
}

// TestCombinations: every image of a part is found by its classes, and no other combination is.
func TestCombinations(t *testing.T) {
	set := partOf(t, "[split=composition; every=11]")
	c, why, err := combinationsOf(t.Context(), set)
	if why != "" || err != nil {
		t.Fatal(why, err)
	}
	info := set.Info()
	classes, back := make([]int, 6), make([]int, 6)
	for i := 0; i < info.Len; i += info.Len / 50 {
		if err := set.Classes(classes, []int{i}); err != nil {
			t.Fatal(err)
		}
		c.classes(c.key(classes), back)
		if at, ok := c.find(classes); !ok || at != i || !slices.Equal(classes, back) {
			t.Fatalf("image %d with %v is found at %d, %v; its key says %v", i, classes, at, ok, back)
		}
	}
	missing := 0
	for i := range 200 {
		for f, n := range info.Sizes() {
			classes[f] = (i*7 + f*i) % n
		}
		at, ok := c.find(classes)
		want, err := set.Index(classes)
		if ok != (err == nil) || ok && at != want {
			t.Fatalf("%v: found %d, %v; the set says %d, %v", classes, at, ok, want, err)
		}
		if !ok {
			missing++
		}
	}
	if missing == 0 {
		t.Error("no combination is missing, so nothing was tested")
	}
	if _, ok := c.find([]int{0, -1, 0, 0, 0, 0}); ok {
		t.Error("a value missing from the part is found")
	}
}
