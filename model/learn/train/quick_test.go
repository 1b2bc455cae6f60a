package train

import (
	"slices"
	"testing"

	"slotscope/model"
	"slotscope/model/expect"
)

// TestMeasuringShare: at tiny's default cadence, measurements during training take less than 5% of the time. Steps and measurements
// are timed in alternation, so that load on the machine slows both.
func TestMeasuringShare(t *testing.T) {
	expect.Long(t)
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	every := cfg.EvalEvery
	cfg.Steps, cfg.EvalEvery, cfg.Engine = 8, 4, "cpu"
	short := create(t, cfg)
	if err := runIn(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	var steps, evaluations []float64 // seconds
	for _, p := range pointsOf(t, short) {
		steps = append(steps, float64(cfg.Batch)/p.Values["images_per_second"])
		if s, ok := p.Values["eval_seconds"]; ok {
			evaluations = append(evaluations, s)
		}
	}
	slices.Sort(steps)
	slices.Sort(evaluations)
	step, evaluation := steps[len(steps)/2], evaluations[0] // the first compiles
	share := evaluation / (evaluation + float64(every)*step)
	t.Logf("a step takes %.0f ms, a measurement %.2f s: %.1f%% of the time at one every %d steps", 1000*step, evaluation, 100*share, every)
	if len(evaluations) != 2 || share > 0.05 {
		t.Errorf("%d measurements take %.1f%% of the time", len(evaluations), 100*share)
	}
}

// TestNoFactors: a dataset whose factors do not vary can be trained on, and only PSNR is measured.
func TestNoFactors(t *testing.T) {
	cfg := little(t, "hrr")
	cfg.Dataset = "shapes3d-synthetic[shape=#0;scale=#0;orientation=#0;floor_hue=#0;wall_hue=#0;object_hue=#0]"
	cfg.Steps, cfg.EvalEvery, cfg.Batch = 2, 2, 1
	f := create(t, cfg)
	if err := runIn(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	last := pointsOf(t, f)[1].Values
	if _, measured := last["infom/eval"]; measured || last["psnr/eval"] == 0 {
		t.Errorf("one image: %v", last)
	}
}
