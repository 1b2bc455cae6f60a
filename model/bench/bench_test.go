package bench

import (
	"testing"

	"slotscope/model"
)

// TestEveryModelIsMeasured measures every model, with and without codes, with each way of feeding steps.
func TestEveryModelIsMeasured(t *testing.T) {
	for _, name := range model.ModelNames() {
		for _, fed := range []struct {
			resident string
			steps    int
			perCall  int
		}{{"", 0, 1}, {model.Always, 2, 2}} {
			t.Run(name+fed.resident, func(t *testing.T) {
				cfg, err := model.Default(name, "tiny", "shapes3d-synthetic")
				if err != nil {
					t.Fatal(err)
				}
				cfg.Batch, cfg.Engine, cfg.Resident, cfg.StepsPerCall = 2, "cpu", fed.resident, fed.steps
				r, err := Train(t.Context(), cfg, Options{Seconds: 0.01})
				if err != nil {
					t.Fatal(err)
				}
				if r.Model != name || r.StepsPerCall != fed.perCall || r.Resident != (fed.resident == model.Always) || r.Count < fed.perCall || r.Count%fed.perCall != 0 {
					t.Errorf("training: %+v", r)
				}
				// the rate is that of all steps, the median is that of one step
				if each := r.Seconds / float64(r.Count); r.ImagesPerSecond < 1.999/each || r.ImagesPerSecond > 2.001/each || r.StepMS <= 0 {
					t.Errorf("%.3f images/s, %.3f ms a step, %.3f ms on average", r.ImagesPerSecond, r.StepMS, 1000*each)
				}
				if r, err = Decode(t.Context(), cfg, Options{Seconds: 0.01}); err != nil || r.DecodeMS <= 0 || r.Count < 1 {
					t.Errorf("decoding: %+v (%v)", r, err)
				}
			})
		}
	}
}
