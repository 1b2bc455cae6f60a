package evaluate

import (
	"math"
	"testing"

	variables "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/format/checkpoint"
	"slotscope/model/measure/metric"
	"slotscope/model/paper/ae"
)

// encoded returns a checkpoint's encoding of n images of the drawn shapes, selected with a seed.
func encoded(t *testing.T, file checkpoint.File, set data.Set, n int) Encoded {
	t.Helper()
	root, image := variables.New().Checked(false), ae.Image{H: 64, W: 64, C: 3}
	built, err := ae.Open(root.In("model"), file, image)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEncoder(engine(t).Backend, built, root, root.In("model"), image)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Finalize()
	index, err := data.Draw(1, n, set.Info().Len)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Encode(t.Context(), set, index)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFaithfulnessOfTiny compares the scores of a trained model with those of another program on other images. The tolerance is four standard
// errors of 2,000 images, or their last digit if that is larger.
func TestFaithfulnessOfTiny(t *testing.T) {
	expect.Long(t) // TestShippedCheckpoint covers fewer images
	e := encoded(t, shipped(t), dataset(t), QuickImages)
	f, err := e.Faithfulness()
	if err != nil {
		t.Fatal(err)
	}
	got := f.Figures()
	for name, c := range map[string]struct{ want, tolerance float64 }{
		"cos_bundle": {-0.07, 0.012}, "cos_retrieval": {-0.03, 0.008}, "cos_denoised": {0.996, 0.001}, "reencode": {0.017, 0.005},
		"cleanup": {0.12, 0.012}, "energy": {38.6, 0.4}, "coherence": {0.32, 0.01}, "rank_codebook": {8.7, 0.2}, "rank_z": {9.3, 0.1}, "rank_bundle": {8.9, 0.1},
	} {
		if math.Abs(got[name]-c.want) > c.tolerance {
			t.Errorf("%s is %.4f, want %v ± %v", name, got[name], c.want, c.tolerance)
		}
	}
	series, err := e.Series(dataset(t), 0)
	if err != nil || series["faithfulness/cos_bundle"] != got["cos_bundle"] || series["owned/factors"] != 6 || series["owned/coverage"] != 1 || len(series) != 12 {
		t.Errorf("series %v, %v", series, err)
	}
	if len(got) != 10 || f.Images != QuickImages || f.True.Energy != 9 || f.Chance < 0.05 || f.Chance > 0.08 {
		t.Errorf("%d figures of %d images, chance %v", len(got), f.Images, f.Chance)
	}
}

// TestBaselinesHaveNoBundles: baselines are encoded and owned factors counted, without faithfulness.
func TestBaselinesHaveNoBundles(t *testing.T) {
	for _, name := range []string{"vqvae", "qlae", "betavae"} {
		e := encoded(t, untrained(t, name), dataset(t), 70)
		f, err := e.Faithfulness()
		if f != nil || err != nil || len(e.Codes)+len(e.Numbers) != 70*9 {
			t.Errorf("%s: %v, %v; %d codes, %d numbers", name, f, err, len(e.Codes), len(e.Numbers))
		}
		table, ok, err := e.Table(dataset(t))
		if err != nil || !ok || len(metric.Own(table, 0).Slots) != 9 {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}
