package bundle_test

import (
	"image"
	"image/color"
	"math"
	"path/filepath"
	"testing"

	"slotscope/model"
	"slotscope/model/adopt"
	"slotscope/model/bundle"
	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/learn/evaluate"
	"slotscope/model/play"
)

// served exports a bundle and adopts it as a run, served in PyTorch by the bundle's own adapter.
func served(t *testing.T, python string, file checkpoint.File) (root *folder.Data, set data.Set, id string) {
	t.Helper()
	t.Setenv(adopt.Variable, filepath.Join(t.TempDir(), "models.json"))
	root, err := folder.Root(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	dir := filepath.Join(t.TempDir(), "bundle")
	if _, err := represented(t, file, 2).WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	set = openSet(t)
	id, h, err := adopt.Adopt(t.Context(), root, set, "", adopt.Command{Args: []string{python, filepath.Join(dir, bundle.AdapterFile)}})
	if err != nil {
		t.Fatal(err)
	}
	if h.Step != file.Step || h.Seed != file.Config.Seed || h.Slots != file.Config.M {
		t.Errorf("the adapter replies %+v", h)
	}
	return root, set, id
}

// A VQ-VAE served by PyTorch through the adapter has the same swap sheet, within 1 of 255, and the same scores as one run directly.
func TestAdapterAgrees(t *testing.T) {
	expect.Long(t) // TestLoaderAgrees compares images, TestAdapterServesNumbers the adapter's replies
	file := untrained(t, tiny("vqvae"))
	root, set, id := served(t, pythonWith(t, "torch"), file)
	library := play.NewLibrary(root.Dir(), engine(t), data.Catalogue{Dir: root.Dir()})
	defer library.Close()
	adoptedPair, err := library.Pair(t.Context(), id, 11, 400_000)
	if err != nil {
		t.Fatal(err)
	}
	if d := apart(t, nativePair(t, file, 11, 400_000), adoptedPair); d > 1 {
		t.Errorf("the swap sheets differ by %d of 255", d)
	}
	o := evaluate.Options{Images: 128, Noise: 16, Pairs: 2, Probe: 2, Trees: 2, Agree: 100, Seed: file.Config.Seed}
	native, err := evaluate.Run(t.Context(), engine(t), file, set, o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := evaluate.Run(t.Context(), engine(t), checkpointOf(t, library, id), set, o)
	if err != nil {
		t.Fatal(err)
	}
	sameScores(t, native.Scores, got.Scores, 1e-9)
}

func checkpointOf(t *testing.T, library *play.Library, id string) checkpoint.File {
	t.Helper()
	src, err := library.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	file, err := library.Checkpoint(src)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// The adapter returns the same numbers for a β-VAE's slots.
func TestAdapterServesNumbers(t *testing.T) {
	file := untrained(t, tiny("betavae"))
	root, set, id := served(t, pythonWith(t, "torch"), file)
	library := play.NewLibrary(root.Dir(), engine(t), data.Catalogue{Dir: root.Dir()})
	defer library.Close()
	m, err := adopt.Open(t.Context(), checkpointOf(t, library, id))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	info := set.Info()
	pixels := make([]byte, 8*info.H*info.W*info.C)
	if err := set.Images(pixels, []int{1, 20, 300, 4000, 50_000, 99_999, 250_000, 479_999}); err != nil {
		t.Fatal(err)
	}
	want, err := bundle.Represent(engine(t), file, pixels)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Encode(pixels, 8)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range want.Numbers {
		if d := math.Abs(float64(v - got.Numbers[i])); !(d <= 1e-3*max(1, math.Abs(float64(v)))) {
			t.Errorf("number %d: %v directly, %v adopted", i, v, got.Numbers[i])
		}
	}
}

func nativePair(t *testing.T, file checkpoint.File, a, b int) play.Pair {
	t.Helper()
	root, err := folder.Root(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	id, err := adopt.Take(root, "native", "a test", file, nil)
	if err != nil {
		t.Fatal(err)
	}
	library := play.NewLibrary(root.Dir(), engine(t), data.Catalogue{Dir: root.Dir()})
	defer library.Close()
	pair, err := library.Pair(t.Context(), id, a, b)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// apart returns the maximum channel difference over all images of two sheets, of 255.
func apart(t *testing.T, x, y play.Pair) (most int) {
	t.Helper()
	a, b := append(x.Swaps, x.Strip...), append(y.Swaps, y.Strip...)
	if len(a) != len(b) || len(a) == 0 {
		t.Fatalf("%d and %d images", len(a), len(b))
	}
	for i := range a {
		bounds := a[i].Bounds()
		for p := range bounds.Dx() * bounds.Dy() {
			c, d := at(a[i], p), at(b[i], p)
			for _, diff := range []int{int(c.R) - int(d.R), int(c.G) - int(d.G), int(c.B) - int(d.B)} {
				most = max(most, diff, -diff)
			}
		}
	}
	return most
}

func at(img image.Image, p int) color.RGBA {
	b := img.Bounds()
	return color.RGBAModel.Convert(img.At(b.Min.X+p%b.Dx(), b.Min.Y+p/b.Dx())).(color.RGBA)
}

func sameScores(t *testing.T, want, got model.Scores, tolerance float64) {
	t.Helper()
	near := func(what string, a, b, within float64) {
		t.Helper()
		if math.IsNaN(a) || !(math.Abs(a-b) <= within) {
			t.Errorf("%s: %v directly, %v adopted", what, a, b)
		}
	}
	near("InfoM", float64(want.Metrics.InfoM), float64(got.Metrics.InfoM), tolerance)
	near("InfoE", float64(want.Metrics.InfoE), float64(got.Metrics.InfoE), tolerance)
	near("InfoC", float64(want.Metrics.InfoC), float64(got.Metrics.InfoC), tolerance)
	near("PSNR", want.PSNR, got.PSNR, 1e-3)
	if got.Noise == nil || len(got.Noise.Curve) != len(want.Noise.Curve) || len(got.Noise.BundleRaw) != 0 {
		t.Fatalf("noise %+v", got.Noise)
	}
	for i, p := range want.Noise.Curve {
		near("PSNR under noise", float64(p.PSNR.Value), float64(got.Noise.Curve[i].PSNR.Value), 0.01)
	}
	if got.SwapTruth == nil || got.SwapTruth.Pairs != want.SwapTruth.Pairs || got.Swap == nil || len(got.Swap.Slots) != len(want.Swap.Slots) {
		t.Errorf("swaps %+v, %+v", got.SwapTruth, got.Swap)
	}
}
