package command

import (
	"context"
	"fmt"

	"slotscope/model"
	"slotscope/model/bench"
)

// mostSeconds is the longest measurement, a day.
const mostSeconds = 24 * 60 * 60

type benchCommand struct {
	What      string  `arg:"" enum:"train,decode,data" help:"what to measure"`
	Model     string  `default:"hrr" enum:"${models}" placeholder:"NAME" help:"model"`
	Preset    string  `default:"tiny" enum:"${presets}" placeholder:"NAME" help:"width of the network"`
	Batch     int     `default:"64" placeholder:"N" help:"images per training step"`
	Seconds   float64 `default:"10" placeholder:"N" help:"how long to measure"`
	Engine    string  `default:"auto" enum:"${engines}" placeholder:"NAME" help:"compute engine"`
	Precision string  `default:"tf32" enum:"${precisions}" placeholder:"NAME" help:"precision of products"`
	Profile   int     `default:"0" placeholder:"N" help:"print where the CPU engine's time goes, with this many of its most expensive steps"`
	Dataset   string  `default:"shapes3d-synthetic" placeholder:"NAME" help:"what bench data reads"`
	dataFlag
	jsonFlag
}

func (c *benchCommand) Run(ctx context.Context, env environment) error {
	collectOften()
	cfg, err := model.Default(c.Model, c.Preset, c.Dataset)
	if err != nil {
		return err
	}
	cfg.Batch, cfg.Engine, cfg.Precision = c.Batch, c.Engine, c.Precision
	bad := cfg.Validate()
	if bad == nil {
		bad = model.Invalid{}
	}
	if !(c.Seconds > 0 && c.Seconds <= mostSeconds) {
		bad["seconds"] = fmt.Sprintf("%g is not a number of seconds above 0, up to %d", c.Seconds, mostSeconds)
	}
	if c.Profile < 0 {
		bad["profile"] = fmt.Sprintf("%d is negative", c.Profile)
	}
	if err := bad.OrNil(); err != nil {
		return err
	}
	options := bench.Options{Seconds: c.Seconds, Profile: c.Profile > 0}
	var r bench.Result
	switch c.What {
	case "train":
		r, err = bench.Train(ctx, cfg, options)
	case "decode":
		r, err = bench.Decode(ctx, cfg, options)
	default:
		r, err = bench.Data(ctx, c.Dataset, c.Data, c.Seconds)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(env.out, r)
	}
	describe(env, r)
	if r.Profile != nil {
		return r.Profile.Write(env.out, c.Profile)
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
