package train

import (
	"slices"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/expect"
)

// A run whose condition holds ends as finished, records the reason and saves a checkpoint; when resumed, it trains every step.
func TestStopsEarly(t *testing.T) {
	for _, c := range []struct {
		name, when string
		steps      int // per call
		at         int // earliest final step
		says       string
	}{
		{"limit", "psnr>99, loss>0@7", 1, 7, "by stop_when total>0@7: total is "},
		{"limit within a call of several steps", "loss>0@7", 4, 7, "by stop_when total>0@7: total is "},
		{"series of evaluations", "psnr>0", 1, 10, "by stop_when psnr/eval>0: psnr/eval is "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "limit" {
				expect.Long(t) // a simpler case than the next
			}
			cfg := little(t, "hrr")
			cfg.StepsPerCall = c.steps
			cfg.Steps, cfg.EvalEvery, cfg.StopWhen, cfg.LRSchedule = 30, 10, c.when, ""
			f := create(t, cfg)
			if err := runIn(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			status, err := f.Status()
			points := pointsOf(t, f)
			last := points[len(points)-1].Step
			if err != nil || status.State != model.Finished || status.Step != last || last < c.at || last > c.at+8 || status.Checkpoint != last || status.ImagesPerSecond <= 0 || !strings.Contains(status.Reason, c.says) || status.Early == "" {
				t.Fatalf("after %d steps: %+v, %v", last, status, err)
			}
			if err := runIn(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			status, _ = f.Status()
			if n := len(pointsOf(t, f)); n != 30 || status.Step != 30 || status.Resumed != last || !strings.Contains(status.Reason, "All 30 steps") {
				t.Errorf("after resuming: %d points, %+v", n, status)
			}
		})
	}
}

// A collapsing run ends by the same rules as the page's verdict.
func TestStopsWhenCollapsing(t *testing.T) {
	cfg := little(t, "hrr")
	cfg.Steps, cfg.EvalEvery, cfg.SampleEvery, cfg.StopWhen = 2_000, 1_000, 10_000, "collapsing"
	cfg.StaticCodebook, cfg.LambdaVQ, cfg.LambdaCommit, cfg.K = true, 0, 0, 512 // far more entries than can be in use
	cfg.M = 1
	f := create(t, cfg)
	if err := runIn(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	status, _ := f.Status()
	if status.Early != model.Collapsing || status.Step < 200 || status.Step >= cfg.Steps || !strings.Contains(status.Reason, "collapsing: perplexity") {
		t.Errorf("%+v", status)
	}
}

// The best checkpoint has the highest measured value; it survives pruning and a resume.
func TestBestIsKept(t *testing.T) {
	for _, every := range []int{1, 1_000} {
		cfg := little(t, "vqvae")
		cfg.Steps, cfg.EvalEvery, cfg.SampleEvery, cfg.CheckpointEvery, cfg.BestBy, cfg.LRSchedule = 18, 3, 1_000, every, "infom", ""
		cfg.EvalImages = 40
		f := create(t, cfg)
		check := func() {
			t.Helper()
			if err := runIn(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			best, value := 0, 0.0
			for _, p := range pointsOf(t, f) {
				if v, measured := p.Values["infom/eval"]; measured && (best == 0 || v > value) {
					best, value = p.Step, v
				}
			}
			status, _ := f.Status()
			if at, err := f.Best(); err != nil || at != best || status.BestValue != value || best == 0 {
				t.Errorf("best checkpoint is of step %d, %v (%g); the best value is %g at step %d", at, err, status.BestValue, value, best)
			}
			if steps := f.Checkpoints(); every == 1_000 && !slices.Equal(steps, slices.Compact([]int{best, status.Step})) && len(steps) > 3 {
				t.Errorf("checkpoints %v; the best is %d", steps, best)
			}
		}
		check()
		cfg.Steps = 27
		if err := f.SetConfig(cfg); err != nil {
			t.Fatal(err)
		}
		check()
	}
}
