package data

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"slotscope/model"
)

func open(t testing.TB) Set {
	t.Helper()
	set, err := Open(t.Context(), "shapes3d-synthetic", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// invalid asserts that err has a sentence for the field that contains every part.
func invalid(t *testing.T, err error, field string, parts ...string) {
	t.Helper()
	var bad model.Invalid
	if !errors.As(err, &bad) || bad[field] == "" {
		t.Fatalf("got %v, want a sentence on %q", err, field)
	}
	for _, part := range parts {
		if !strings.Contains(bad[field], part) {
			t.Errorf("%q does not say %q", bad[field], part)
		}
	}
}

func TestShapes3DIsDescribedAsTheOriginal(t *testing.T) {
	info := open(t).Info()
	hues := []string{"0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"}
	want := []Factor{
		{"floor_hue", hues}, {"wall_hue", hues}, {"object_hue", hues},
		{"scale", []string{"0.750", "0.821", "0.893", "0.964", "1.036", "1.107", "1.179", "1.250"}},
		{"shape", []string{"cube", "cylinder", "sphere", "capsule"}},
		{"orientation", []string{"-30.0°", "-25.7°", "-21.4°", "-17.1°", "-12.9°", "-8.6°", "-4.3°", "0.0°",
			"4.3°", "8.6°", "12.9°", "17.1°", "21.4°", "25.7°", "30.0°"}},
	}
	if diff := cmp.Diff(want, info.Factors); diff != "" {
		t.Error(diff)
	}
	if info.Len != 480_000 || info.H != 64 || info.W != 64 || info.C != 3 {
		t.Errorf("%d images of %d × %d × %d", info.Len, info.H, info.W, info.C)
	}
	if !strings.Contains(info.Note, "not comparable with published Shapes3D scores") {
		t.Errorf("the note does not say so: %q", info.Note)
	}
}

// TestDSpritesIsDescribedAsTheOriginal: the factors are those of dSprites except color, with the same index rule; the last factor moves
// the sprite down.
func TestDSpritesIsDescribedAsTheOriginal(t *testing.T) {
	set, err := Open(t.Context(), "dsprites-synthetic", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	info := set.Info()
	for f, factor := range info.Factors {
		of := dspritesInfo.Factors[1+f]
		if factor.Name != of.Name || len(factor.Values) != len(of.Values) || factor.Name != "orientation" && !slices.Equal(factor.Values, of.Values) {
			t.Errorf("factor %+v stands for %+v", factor, of)
		}
	}
	if info.Len != dspritesInfo.Len || info.H != 64 || info.W != 64 || info.C != 1 || len(info.Factors) != 5 {
		t.Errorf("%d images of %d × %d × %d", info.Len, info.H, info.W, info.C)
	}
	index := ((2*6+5)*40+3)*32*32 + 4*32 + 30 // a heart of full size at the left and the bottom
	image, middle, white := make([]byte, 64*64), 0, 0
	if err := set.Images(image, []int{index}); err != nil {
		t.Fatal(err)
	}
	for p, level := range image {
		if level == 255 {
			white, middle = white+1, middle+p/64
		}
	}
	if classes := []int{0, 0, 0, 0, 0}; set.Classes(classes, []int{index}) != nil || !slices.Equal(classes, []int{2, 5, 3, 4, 30}) {
		t.Errorf("image %d has classes %v", index, classes)
	}
	if white < 200 || white > 240 || middle/white < 43 || middle/white > 48 {
		t.Errorf("%d white pixels around row %d", white, middle/max(white, 1))
	}
}

// TestInfoIsTheCallersOwn: callers can change a description without affecting others.
func TestInfoIsTheCallersOwn(t *testing.T) {
	set := open(t)
	set.Info().Factors[0].Values[0] = "spoilt"
	List(t.Context(), "")[0].Factors[1].Name = "spoilt"
	if f := set.Info().Factors; f[0].Values[0] != "0.0" || f[1].Name != "wall_hue" {
		t.Error("a caller changed the set's description")
	}
}

func TestIndexRule(t *testing.T) {
	set := open(t)
	for _, c := range []struct {
		index   int
		classes []int
	}{
		{0, []int{0, 0, 0, 0, 0, 0}},
		{1, []int{0, 0, 0, 0, 0, 1}}, // strides of DATASETS: 48000, 4800, 480, 60, 15, 1
		{15, []int{0, 0, 0, 0, 1, 0}},
		{60, []int{0, 0, 0, 1, 0, 0}},
		{480, []int{0, 0, 1, 0, 0, 0}},
		{4800, []int{0, 1, 0, 0, 0, 0}},
		{48000, []int{1, 0, 0, 0, 0, 0}},
		{479_999, []int{9, 9, 9, 7, 3, 14}},
	} {
		got := make([]int, 6)
		if err := set.Classes(got, []int{c.index}); err != nil || !slices.Equal(got, c.classes) {
			t.Errorf("index %d has classes %v (%v), want %v", c.index, got, err, c.classes)
		}
		if i, err := set.Index(c.classes); err != nil || i != c.index {
			t.Errorf("classes %v have index %d (%v), want %d", c.classes, i, err, c.index)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want, classes := rapid.IntRange(0, 479_999).Draw(t, "index"), make([]int, 6)
		if err := set.Classes(classes, []int{want}); err != nil {
			t.Fatal(err)
		}
		if got, err := set.Index(classes); err != nil || got != want {
			t.Fatalf("index %d came back as %d (%v)", want, got, err)
		}
	})
}

func TestOutOfRange(t *testing.T) {
	set, pixels := open(t), make([]byte, 64*64*3)
	invalid(t, set.Images(pixels, []int{480_000}), "index", "0 to 479999", "480000")
	invalid(t, set.Images(pixels, []int{-1}), "index", "-1")
	invalid(t, set.Classes(make([]int, 6), []int{480_000}), "index", "480000")
	_, err := set.Index([]int{0, 0, 0, 8, 0, 0})
	invalid(t, err, "classes", "scale", "0 to 7", "8")
	_, err = set.Index([]int{0, -1, 0, 0, 0, 0})
	invalid(t, err, "classes", "wall_hue", "-1")
	_, err = set.Index([]int{0, 0})
	invalid(t, err, "classes", "6 factors", "2")
}

// TestImagesFollowTheirClasses: a batch holds each image in its place, and one image differs from its neighbour in each factor.
func TestImagesFollowTheirClasses(t *testing.T) {
	set := open(t)
	const each = 64 * 64 * 3
	index := []int{123_456, 7, 479_999, 123_456}
	batch, single := make([]byte, each*len(index)), make([]byte, each)
	if err := set.Images(batch, index); err != nil {
		t.Fatal(err)
	}
	for b, i := range index {
		if err := set.Images(single, []int{i}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(single, batch[b*each:(b+1)*each]) {
			t.Errorf("image %d alone differs from the same in a batch", i)
		}
	}
	// Pixels by what they show, orientation 0°: top row sky, row 40 at the left wall, bottom row floor, middle object.
	at := func(index, x, y int) [3]byte {
		if err := set.Images(single, []int{index}); err != nil {
			t.Fatal(err)
		}
		return [3]byte(single[(y*64+x)*3:])
	}
	red, _ := set.Index([]int{0, 0, 0, 4, 0, 7})
	for _, c := range []struct {
		name    string
		classes []int
		x, y    int
	}{
		{"floor_hue", []int{5, 0, 0, 4, 0, 7}, 4, 60},
		{"wall_hue", []int{0, 5, 0, 4, 0, 7}, 2, 32},
		{"object_hue", []int{0, 0, 5, 4, 0, 7}, 32, 45},
	} {
		cyan, err := set.Index(c.classes)
		if err != nil {
			t.Fatal(err)
		}
		if p := at(red, c.x, c.y); p[0] < 90 || p[1] != p[2] || p[1] > 30 {
			t.Errorf("%s 0.0 shows %v, want red", c.name, p)
		}
		if p := at(cyan, c.x, c.y); p[1] < 90 || p[1] != p[2] || p[0] > 30 {
			t.Errorf("%s 0.5 shows %v, want cyan", c.name, p)
		}
		if a, b := at(red, 3, 0), at(cyan, 3, 0); a != [3]byte{153, 226, 249} || a != b {
			t.Errorf("the sky is %v and %v", a, b)
		}
	}
}

func TestOpenUnknown(t *testing.T) {
	_, err := Open(t.Context(), "shapes3D", t.TempDir())
	invalid(t, err, "dataset", `"shapes3D"`, "shapes3d-synthetic")
	if _, err = (Catalogue{Dir: t.TempDir()}).Open(t.Context(), ""); err == nil {
		t.Error("a dataset without a name was opened")
	}
}

func TestEverythingListedOpens(t *testing.T) {
	catalogue := Catalogue{Dir: t.TempDir()}
	infos := catalogue.List(t.Context())
	if len(infos) == 0 {
		t.Fatal("nothing is listed")
	}
	for _, info := range infos {
		set, err := catalogue.Open(t.Context(), info.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(info, set.Info()); diff != "" {
			t.Error(diff)
		}
		image := make([]byte, info.H*info.W*info.C)
		if err := set.Images(image, []int{info.Len - 1}); err != nil || slices.Max(image) == 0 {
			t.Errorf("%s: the last image: %v", info.Name, err)
		}
		if n := Grid(info.Sizes()).Len(); n != info.Len {
			t.Errorf("%s: %d combinations, %d images", info.Name, n, info.Len)
		}
	}
}

func TestBench(t *testing.T) {
	speed, err := Bench(t.Context(), open(t), 0.2)
	if err != nil {
		t.Fatal(err)
	}
	if speed.Sequential <= 0 || speed.Random <= 0 || speed.Warm < 0 {
		t.Errorf("measured %+v", speed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Bench(ctx, open(t), 60); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled measurement returned %v", err)
	}
}

func BenchmarkImages(b *testing.B) {
	set := open(b)
	if err := set.(Warmer).Warm(b.Context()); err != nil {
		b.Fatal(err)
	}
	sampler, _ := NewSampler(1, 128, set.Info().Len)
	dst, step := make([]byte, 128*64*64*3), 0
	for b.Loop() {
		step++
		if err := set.Images(dst, sampler.Batch(step)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(128*float64(b.N)/b.Elapsed().Seconds(), "images/s")
}
