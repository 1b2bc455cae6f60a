package handlertest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"slotscope/model"
)

// Many returns n runs as in a data folder after weeks of use: models, learning rates and seeds of sweeps, every state, scores, tags. The
// runs are the same on every call.
func Many(n int) []model.Overview {
	rng := rand.New(rand.NewPCG(1, 2))
	states := []model.State{model.Finished, model.Finished, model.Finished, model.Finished, model.Finished, model.Failed, model.Stopped, model.Interrupted}
	all := make([]model.Overview, 0, n)
	for i := range n {
		kind, lr := model.ModelNames()[i/25%5], []float64{1e-4, 3e-4, 1e-3, 3e-3, 1e-2}[i/5%5]
		cfg, err := model.Default(kind, "tiny", "shapes3d-synthetic")
		if err != nil {
			panic(err)
		}
		cfg.Seed, cfg.LR = int64(i%5), lr
		if i/125%2 == 1 {
			cfg.Batch *= 2
		}
		r := model.Run{ID: fmt.Sprintf("20260301-%06d-aaaaaa%02d", 86400+i, i%100), Name: fmt.Sprintf("%s lr %v seed %d", kind, lr, cfg.Seed), Config: cfg, Created: time.Date(2026, 3, 1, 0, i, 0, 0, time.UTC)}
		r.State, r.Attempt, r.Engine, r.Parameters = states[rng.IntN(len(states))], 1, "cpu", 412_345
		r.Started, r.Step = r.Created.Add(time.Minute), cfg.Steps
		r.Ended = r.Started.Add(time.Duration(1+rng.IntN(200)) * time.Minute)
		switch {
		case i >= n-2:
			r.State, r.Step, r.Ended, r.ImagesPerSecond, r.SecondsLeft = model.Running, cfg.Steps/3, time.Time{}, 321.4, 1750
		case i >= n-6:
			r.State, r.Step, r.Started, r.Ended = model.Queued, 0, time.Time{}, time.Time{}
		case r.State != model.Finished:
			r.Step = rng.IntN(cfg.Steps)
		}
		r.Checkpoint = r.Step
		if i%7 == 0 {
			r.Tags = "night"
		}
		if i%21 == 0 {
			r.Tags, r.Star = "night paper", true
		}
		r.Archived = i%40 == 39
		o := model.Overview{Run: r, Values: model.Values{}, Scores: model.Values{}}
		quality := math.Exp(-math.Pow(math.Log10(lr)+2.8, 2)) * (0.9 + 0.1*rng.Float64())
		if r.Step > 0 {
			for _, name := range []string{"total", "recon", "vq", "commit", "latent", "value", "codebook", "grad_norm", "perplexity/batch", "perplexity/window", "perplexity/used", "latent/mean", "latent/var", "latent/norm2", "codebook/mean", "codebook/var", "codebook/norm2", "images_per_second", "infom/eval", "infoe/eval", "infoc/eval", "owned/factors", "owned/coverage"} {
				o.Values[name] = rng.Float64()
			}
			o.Values["psnr/eval"] = 20 + 10*quality
			if r.State == model.Failed {
				o.Values["total"] = math.NaN()
			}
		}
		if r.State == model.Finished {
			for _, name := range []string{"infoe", "infoc", "d", "i", "c", "infoe_heldout", "c_slots", "swap_exact", "swap_truth_group", "swap_truth_single", "coverage", "field_mig", "field_sap", "field_factorvae", "cos_bundle", "reencode", "cleanup"} {
				o.Scores[name] = rng.Float64()
			}
			o.Scores["infom"], o.Scores["psnr"] = 0.9*quality, 20+10*quality
		}
		all = append(all, o)
	}
	return all
}

// PutMany stores n runs of Many, without points.
func (f *Runs) PutMany(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range Many(n) {
		f.Runs[o.ID] = &Run{Run: o.Run, Scores: o.Scores, Last: o.Values}
	}
}
