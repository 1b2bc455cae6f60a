package command

import (
	"context"
	"fmt"

	"slotscope/model"
	"slotscope/model/bench"
)

// mostSeconds is the longest measurement, a day.
const mostSeconds = 24 * 60 * 60

func benchCommand(ctx context.Context, env environment, args []string) error {
	if len(args) == 0 || args[0] != "train" && args[0] != "decode" && args[0] != "data" {
		return fmt.Errorf("%w: slotscope bench train|decode|data", errUsage)
	}
	collectOften()
	what := args[0]
	fs := flags(env, "bench "+what)
	name := fs.String("model", "hrr", "hrr, vqvae, qlae, betavae or betatcvae")
	preset := fs.String("preset", "tiny", "width of the network: tiny, small or paper")
	batch := fs.Int("batch", 64, "images per training step")
	seconds := fs.Float64("seconds", 10, "how long to measure")
	engine := fs.String("engine", "auto", "auto, cpu, xla:cuda, xla:cpu or go")
	precision := fs.String("precision", model.TF32, "of products: tf32, float32 or bf16")
	profile := fs.Int("profile", 0, "print where the CPU engine's time goes, with this many of its most expensive steps")
	dataset := fs.String("dataset", "shapes3d-synthetic", "what bench data reads")
	folder, asJSON := dataFlag(fs), jsonFlag(fs)
	if err := parse(fs, args[1:], 0); err != nil {
		return err
	}
	cfg, err := model.Default(*name, *preset, *dataset)
	if err != nil {
		return err
	}
	cfg.Batch, cfg.Engine, cfg.Precision = *batch, *engine, *precision
	bad := cfg.Validate()
	if bad == nil {
		bad = model.Invalid{}
	}
	if !(*seconds > 0 && *seconds <= mostSeconds) {
		bad["seconds"] = fmt.Sprintf("%g is not a number of seconds above 0, up to %d", *seconds, mostSeconds)
	}
	if *profile < 0 {
		bad["profile"] = fmt.Sprintf("%d is negative", *profile)
	}
	if err := bad.OrNil(); err != nil {
		return err
	}
	options := bench.Options{Seconds: *seconds, Profile: *profile > 0}
	var r bench.Result
	switch what {
	case "train":
		r, err = bench.Train(ctx, cfg, options)
	case "decode":
		r, err = bench.Decode(ctx, cfg, options)
	default:
		r, err = bench.Data(ctx, *dataset, *folder, *seconds)
	}
	if err != nil {
		return err
	}
	if *asJSON {
		return printJSON(env.out, r)
	}
	describe(env, r)
	if r.Profile != nil {
		return r.Profile.Write(env.out, *profile)
	}
	return nil
}

func describe(env environment, r bench.Result) {
	switch r.What {
	case "train":
		fmt.Fprintf(env.out, "training %s %s, batch %d, on %s (%d threads): %.1f images/s, median step %.1f ms over %d steps, peak memory %.0f MB\n",
			r.Preset, r.Model, r.Batch, r.Engine, r.Threads, r.ImagesPerSecond, r.StepMS, r.Count, r.PeakMB)
	case "decode":
		fmt.Fprintf(env.out, "decoding one image, %s %s, on %s (%d threads): median %.2f ms over %d\n", r.Preset, r.Model, r.Engine, r.Threads, r.DecodeMS, r.Count)
	default:
		fmt.Fprintf(env.out, "reading %s on one goroutine: %.0f images/s in order, %.0f images/s at random, after %.1f s of preparation\n",
			r.Dataset, r.ImagesPerSecond, r.RandomPerSecond, r.WarmSeconds)
	}
}
