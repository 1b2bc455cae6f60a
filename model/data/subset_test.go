package data

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"slotscope/model"
)

// tabled is a dataset in memory with the classes of every image. Pixels 0 and 1 of image i encode i.
type tabled struct {
	info   Info
	labels []int
}

func (s tabled) Info() Info { return s.info }

func (s tabled) Images(dst []byte, index []int) error {
	for b, i := range index {
		dst[2*b], dst[2*b+1] = byte(i), byte(i>>8)
	}
	return nil
}

func (s tabled) Classes(dst, index []int) error {
	f := len(s.info.Factors)
	for b, i := range index {
		copy(dst[b*f:(b+1)*f], s.labels[i*f:])
	}
	return nil
}

func (s tabled) Index(classes []int) (int, error) {
	for i := range s.info.Len {
		if f := len(s.info.Factors); slices.Equal(s.labels[i*f:(i+1)*f], classes) {
			return i, nil
		}
	}
	return 0, noImage(s.info, classes)
}

func (tabled) Close() error { return nil }

// drawTabled returns a random dataset of up to three factors: a complete grid or any labels.
func drawTabled(t *rapid.T) tabled {
	sizes := rapid.SliceOfN(rapid.IntRange(1, 5), 0, 3).Draw(t, "sizes")
	s := tabled{info: Info{Name: "t", Title: "T", H: 1, W: 2, C: 1, Complete: rapid.Bool().Draw(t, "complete")}}
	for f, n := range sizes {
		factor := Factor{Name: string(rune('a' + f))}
		for c := range n {
			factor.Values = append(factor.Values, fmt.Sprintf("v%d", c))
		}
		s.info.Factors = append(s.info.Factors, factor)
	}
	s.info.Len = Grid(sizes).Len()
	if !s.info.Complete {
		s.info.Len = rapid.IntRange(1, 60).Draw(t, "len")
	}
	classes := make([]int, len(sizes))
	for i := range s.info.Len {
		if s.info.Complete {
			Grid(sizes).Classes(classes, i)
		} else {
			for f, n := range sizes {
				classes[f] = rapid.IntRange(0, n-1).Draw(t, "class")
			}
		}
		s.labels = append(s.labels, classes...)
	}
	return s
}

// drawClause returns a random clause as text and as a predicate.
func drawClause(t *rapid.T, s tabled, deep int) (string, func(i int) bool) {
	kinds := []string{"every", "share"}
	if len(s.info.Factors) > 0 {
		kinds = append(kinds, "among", "other", "class")
	}
	if deep > 0 {
		kinds = append(kinds, "not")
	}
	f := 0
	if n := len(s.info.Factors); n > 0 {
		f = rapid.IntRange(0, n-1).Draw(t, "factor")
	}
	class := func(i int) int { return s.labels[i*len(s.info.Factors)+f] }
	value := func() int { return rapid.IntRange(0, len(s.info.Factors[f].Values)-1).Draw(t, "value") }
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "every":
		n := rapid.IntRange(1, 4).Draw(t, "n")
		k := rapid.IntRange(0, n-1).Draw(t, "k")
		return fmt.Sprintf("every=%d+%d", n, k), func(i int) bool { return i%n == k }
	case "share":
		p, seed := rapid.SampledFrom([]float64{0.25, 0.5, 0.9}).Draw(t, "p"), rapid.Int64Range(0, 3).Draw(t, "seed")
		chosen := map[int]bool{}
		order := newShuffle(seed, selection, 0, s.info.Len)
		for i := range s.info.Len {
			chosen[i] = order.at(i) < int(math.Round(p*float64(s.info.Len)))
		}
		return fmt.Sprintf("share=%v@%d", p, seed), func(i int) bool { return chosen[i] }
	case "among":
		x, y := value(), value()
		return fmt.Sprintf(" %s = v%d, v%d", s.info.Factors[f].Name, x, y), func(i int) bool { return class(i) == x || class(i) == y }
	case "other":
		x := value()
		return fmt.Sprintf("%s!=v%d", s.info.Factors[f].Name, x), func(i int) bool { return class(i) != x }
	case "class":
		x := value()
		return fmt.Sprintf("%s=#%d..%d", s.info.Factors[f].Name, x, len(s.info.Factors[f].Values)-1), func(i int) bool { return class(i) >= x }
	}
	a, holdsA := drawClause(t, s, deep-1)
	b, holdsB := drawClause(t, s, deep-1)
	return "not(" + a + "; " + b + ")", func(i int) bool { return !(holdsA(i) && holdsB(i)) }
}

// TestSubset compares parts of random datasets with a scan of all images.
func TestSubset(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		s := drawTabled(t)
		a, holdsA := drawClause(t, s, 1)
		b, holdsB := drawClause(t, s, 1)
		text := a + ";" + b
		var want []int
		for i := range s.info.Len {
			if holdsA(i) && holdsB(i) {
				want = append(want, i)
			}
		}
		part, err := newSubset(ctx, s, text)
		if len(want) == 0 {
			if err == nil || !strings.Contains(err.Error(), "no image of t matches") {
				t.Fatalf("%s selects nothing: %v", text, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		info := part.Info()
		if info.Len != len(want) {
			t.Fatalf("%s has %d images, want %d", text, info.Len, len(want))
		}
		checkPart(t, s, part, want)
		if info.Complete {
			checkGrid(t, part)
		}
		checkComplement(t, s, info, len(want))
	})
}

// checkPart checks every image, its values, and its index by classes.
func checkPart(t *rapid.T, s tabled, part Set, want []int) {
	info, f := part.Info(), len(s.info.Factors)
	pixels, classes := make([]byte, 2), make([]int, f)
	for b, i := range want {
		if err := errors.Join(part.Images(pixels, []int{b}), part.Classes(classes, []int{b})); err != nil {
			t.Fatal(err)
		}
		if int(pixels[0])+int(pixels[1])<<8 != i {
			t.Fatalf("image %d is not image %d of the base", b, i)
		}
		for k, c := range classes {
			if got, is := info.Factors[k].Values[c], s.info.Factors[k].Values[s.labels[i*f+k]]; got != is {
				t.Fatalf("image %d has %s, want %s", b, got, is)
			}
		}
		if f == 0 {
			continue
		}
		at, err := part.Index(classes)
		if err != nil || at > b || !sameRow(s, want[at], i) {
			t.Fatalf("Index(%v) = %d, %v; want %d", classes, at, err, b)
		}
	}
}

func sameRow(s tabled, i, j int) bool {
	f := len(s.info.Factors)
	return slices.Equal(s.labels[i*f:(i+1)*f], s.labels[j*f:(j+1)*f])
}

// checkGrid checks that a complete part is in the order of the grid.
func checkGrid(t *rapid.T, part Set) {
	info := part.Info()
	grid, have, want := Grid(info.Sizes()), make([]int, len(info.Factors)), make([]int, len(info.Factors))
	for i := range info.Len {
		grid.Classes(want, i)
		if err := part.Classes(have, []int{i}); err != nil || !slices.Equal(have, want) {
			t.Fatalf("image %d has %v, %v; want %v from the grid", i, have, err, want)
		}
	}
}

// checkComplement checks that a part and its complement make up the whole.
func checkComplement(t *rapid.T, s tabled, part Info, n int) {
	name, ok := Complement(part.Name)
	if !ok {
		t.Fatalf("%s has no complement", part.Name)
	}
	_, text, err := splitSpec(name)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := newSubset(context.Background(), s, text)
	if n == s.info.Len {
		if err == nil {
			t.Fatalf("%s has images although %s has all of them", name, part.Name)
		}
		return
	}
	if err != nil || rest.Info().Len != s.info.Len-n {
		t.Fatalf("%s and %s do not make up the whole: %v", name, part.Name, err)
	}
}

// TestHeldOut is the example in the documentation: a combination held out of training.
func TestHeldOut(t *testing.T) {
	ctx, c := context.Background(), Catalogue{Dir: t.TempDir()}
	train, err := c.Open(ctx, "shapes3d-synthetic[not(shape=cube; floor_hue=0.0,0.1)]")
	if err != nil {
		t.Fatal(err)
	}
	held, ok := Complement(train.Info().Name)
	if want := "shapes3d-synthetic[shape=cube;floor_hue=0.0,0.1]"; !ok || held != want {
		t.Errorf("the complement is %s, want %s", held, want)
	}
	test, err := c.Open(ctx, held)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := train.Info(), test.Info(); a.Len != 480_000-24_000 || b.Len != 24_000 || a.Complete || !b.Complete {
		t.Errorf("%d and %d images, complete: %v and %v", a.Len, b.Len, a.Complete, b.Complete)
	}
	if _, err := train.Index([]int{0, 0, 0, 0, 0, 0}); !errors.Is(err, model.ErrNotFound) || !strings.Contains(err.Error(), "shape cube") {
		t.Errorf("a red-floored cube in training: %v", err)
	}
	if sizes := test.Info().Sizes(); !slices.Equal(sizes, []int{2, 10, 10, 8, 1, 15}) {
		t.Errorf("the held-out part has sizes %v", sizes)
	}
}

// TestSpecErrors: errors say what is wrong with a selection.
func TestSpecErrors(t *testing.T) {
	c := Catalogue{Dir: t.TempDir()}
	for name, says := range map[string]string{
		"shapes3d-synthetic[":                      "does not end with a selection",
		"shapes3d-synthetic[]":                     "does not end with a selection",
		"shapes3d-synthetic[shape=cube":            "does not end with a selection",
		"shapes3d-synthetic[;]":                    "empty clause",
		"shapes3d-synthetic[cube]":                 "is not a clause",
		"shapes3d-synthetic[colour=red]":           `has no factor "colour"; it has floor_hue`,
		"shapes3d-synthetic[shape=ball]":           `has no value "ball"; it has cube, cylinder`,
		"shapes3d-synthetic[shape=#4]":             `has no value "#4"`,
		"shapes3d-synthetic[every=0]":              "every=n+k",
		"shapes3d-synthetic[every=3+3]":            "every=n+k",
		"shapes3d-synthetic[share=1]":              "share=p@seed",
		"shapes3d-synthetic[share=NaN]":            "share=p@seed",
		"shapes3d-synthetic[not(shape=cube]":       "parentheses",
		"shapes3d-synthetic[every=2)]":             "parentheses",
		"shapes3d-synthetic[shape=cube;shape=#1]":  "no image",
		"nothing[every=2]":                         `unknown dataset "nothing"`,
		"shapes3d-synthetic[every=2][shape=cube]]": "",
	} {
		_, err := c.Open(context.Background(), name)
		var invalid model.Invalid
		if !errors.As(err, &invalid) || !strings.Contains(invalid["dataset"], says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
