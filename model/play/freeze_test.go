package play_test

import (
	"bytes"
	"errors"
	"image/png"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/weights"
	"slotscope/model/paper/ae"
	"slotscope/model/play"
)

// For the demo model, float16 is precise enough and the examples are all mixtures of two images.
func TestFreezeDefault(t *testing.T) {
	if testing.Short() {
		t.Skip("counts codes on 4,096 images")
	}
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	library := play.NewLibrary(dir, engine, data.Catalogue{Dir: dir})
	t.Cleanup(library.Close)
	src, err := play.Default()
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := library.Freeze(t.Context(), src, nil)
	if err != nil {
		t.Fatal(err)
	}
	if frozen.Type != weights.Float16 || frozen.Difference > 1 || len(frozen.Weights) > 2_700_000 {
		t.Errorf("type %d, difference %d, %d bytes; want float16, at most 1 and at most 2.7 MB", frozen.Type, frozen.Difference, len(frozen.Weights))
	}
	if frozen.Usage == nil || frozen.Usage.Images != play.UsageImages {
		t.Errorf("usage is %v", frozen.Usage)
	}
	sheet, err := png.Decode(bytes.NewReader(frozen.Sheet))
	if err != nil || sheet.Bounds().Dx() != 64*64 || sheet.Bounds().Dy() != 64 {
		t.Errorf("the sheet is %v (%v), want 4096 × 64", sheet.Bounds(), err)
	}
	if len(frozen.Examples) != 64 {
		t.Fatalf("%d examples, want 64", len(frozen.Examples))
	}
	a, b, seen := frozen.Examples[0], frozen.Examples[1], map[int]bool{}
	for _, e := range frozen.Examples {
		if seen[e.Index] = true; len(e.Codes) != src.Config.M || e.PSNR < 15 {
			t.Errorf("image %d: codes %v, %.1f dB", e.Index, e.Codes, e.PSNR)
		}
		for f, c := range e.Classes {
			if c != a.Classes[f] && c != b.Classes[f] {
				t.Errorf("image %d: factor %d is %d, neither A's nor B's", e.Index, f, c)
			}
		}
	}
	if len(seen) != 64 {
		t.Errorf("%d different examples, want 64", len(seen))
	}
}

// Freezing a model that is too large for a page fails with its size, before it is opened.
func TestFreezeRefusesALargeModel(t *testing.T) {
	dir := t.TempDir()
	file := randomFile(t, 1)
	file.Tensors["fc1.weight"] = checkpoint.Tensor{Shape: []int{1 << 10, 14 << 10}, Data: make([]float32, 14<<20)}
	writeRun(t, dir, "large", file)
	library := play.NewLibrary(dir, cpu(t), data.Catalogue{Dir: dir})
	t.Cleanup(library.Close)
	src, err := library.Find("large")
	if err != nil {
		t.Fatal(err)
	}
	_, err = library.Freeze(t.Context(), src, nil)
	var invalid model.Invalid
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), " has 28 MB of weights as float16; a frozen page can have at most 24 MB") {
		t.Errorf("%v", err)
	}
}

// The error for a model that is too large for a browser gives its size.
func TestWeightsAreOfferedUpToASize(t *testing.T) {
	file := checkpoint.File{Tensors: map[string]checkpoint.Tensor{
		"canvas": {Shape: []int{1, 1, 4, 4}, Data: make([]float32, 16)}, "fc1.weight": {Data: make([]float32, 7<<20)},
	}}
	m := play.NewModel(play.Coder{}, file, ae.Image{H: 64, W: 64, C: 3})
	t.Cleanup(m.Close)
	_, err := m.Weights()
	var invalid model.Invalid
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "28 MB") || m.WeightsSize() <= play.MaxWeights {
		t.Errorf("%d bytes: the error is %v", m.WeightsSize(), err)
	}
}
