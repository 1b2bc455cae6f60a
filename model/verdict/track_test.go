package verdict_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"slotscope/model"
	"slotscope/model/verdict"
)

// middle is the largest distance of a collapse from the middle of a tenth of the steps, in steps, at which samples that are left out may decide on which
// side that tenth's median lies.
const middle = 16

// TestTrackJudgesAsTheWhole: a track holds every sample of short runs, and few of long ones, including the first and newest; the verdict is the
// same, unless a tenth's median changes with the samples that are left out.
func TestTrackJudgesAsTheWhole(t *testing.T) {
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		cfg.Steps = rapid.IntRange(1, 12_000).Draw(t, "steps")
		tenth := float64(cfg.Steps) / 10
		collapse := rapid.IntRange(1, 20_000).Filter(func(at int) bool {
			return cfg.Steps <= 2_000 || math.Abs(math.Mod(float64(at), tenth)-tenth/2) > middle
		}).Draw(t, "collapse at")
		track := verdict.NewTrack(cfg, nil)
		whole := verdict.Progress{Config: cfg, State: model.Running, Series: map[string][]model.Sample{}}
		for step := 1; step <= cfg.Steps; step++ {
			values := map[string]float64{"total": 1 / math.Sqrt(float64(step)), "perplexity/window": 60, "other": 1}
			if step >= collapse {
				values["perplexity/window"] = 5
			}
			if step%100 == 0 {
				values["psnr/eval"] = 20 + float64(step)/1e3
			}
			track.Add(step, values)
			for name, v := range values {
				if name != "other" {
					whole.Series[name] = append(whole.Series[name], model.Sample{Step: step, Value: v})
				}
			}
		}
		p := track.Progress()
		got, want := verdict.Judge(p), verdict.Judge(whole)
		if got.Kind != want.Kind || got.Rule != want.Rule || got.Step != want.Step {
			t.Fatalf("%+v, want %+v as for all samples", got, want)
		}
		for name, s := range p.Series {
			if n := len(s); n > 2_002 || s[0].Step != whole.Series[name][0].Step || s[n-1] != whole.Series[name][len(whole.Series[name])-1] {
				t.Fatalf("%s: %d samples from step %d to %d", name, n, s[0].Step, s[n-1].Step)
			}
		}
		if !track.Has("total") || track.Has("other") || track.Has("infom/eval") {
			t.Fatal("Has is false for a measured series")
		}
	})
}
