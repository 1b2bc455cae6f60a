package command

import (
	"context"
	"fmt"

	"slotscope/model"
	"slotscope/model/bench"
)

// mostSeconds is the longest measurement: a day.
const mostSeconds = 24 * 60 * 60

// mostSimulated is the largest number of simulated threads: more than any machine has cores.
const mostSimulated = 1024

type benchCommand struct {
	What      string  `arg:"" enum:"train,decode,data" help:"what to measure"`
	Model     string  `default:"hrr" enum:"${models}" placeholder:"NAME" help:"model"`
	Preset    string  `default:"tiny" enum:"${presets}" placeholder:"NAME" help:"network width"`
	Batch     int     `default:"64" placeholder:"N" help:"images per training step"`
	Seconds   float64 `default:"10" placeholder:"N" help:"seconds to measure"`
	Engine    string  `default:"auto" enum:"${engines}" placeholder:"NAME" help:"compute engine"`
	Precision string  `default:"tf32" enum:"${precisions}" placeholder:"NAME" help:"precision of matrix products"`
	Resident  string  `default:"auto" enum:"auto,always,never" placeholder:"WHEN" help:"keep the images on the device, as a run with this hyperparameter does: auto, always or never"`
	PerCall   int     `name:"steps-per-call" default:"0" placeholder:"N" help:"training steps that one call of the engine takes; 0 uses 4 on a GPU and 1 on other engines"`
	Profile   int     `default:"0" placeholder:"N" help:"print where the CPU engine spends its time, with its N most expensive steps"`
	Simulate  int     `default:"0" placeholder:"N" help:"estimate the CPU engine's speed with N threads on N cores, by timing their parts one after another"`
	Dataset   string  `default:"shapes3d-synthetic" placeholder:"NAME" help:"dataset for bench data"`
	dataFlag
	jsonFlag
}

func (c *benchCommand) Run(ctx context.Context, env environment) error {
	collectOften()
	cfg, err := model.Default(c.Model, c.Preset, c.Dataset)
	if err != nil {
		return err
	}
	cfg.Batch, cfg.Engine, cfg.StepsPerCall = c.Batch, c.Engine, c.PerCall
	if c.Simulate > 0 && c.Precision == model.TF32 {
		c.Precision = model.Float32 // bf16x3 is not simulated
	}
	for name, value := range map[string]string{"precision": c.Precision, "resident": c.Resident} {
		if err := cfg.Set(name, value); err != nil {
			return err
		}
	}
	bad := cfg.Validate()
	if bad == nil {
		bad = model.Invalid{}
	}
	if !(c.Seconds > 0 && c.Seconds <= mostSeconds) {
		bad["seconds"] = fmt.Sprintf("%g is out of range; choose more than 0 and at most %s seconds", c.Seconds, grouped(mostSeconds))
	}
	if c.Profile < 0 {
		bad["profile"] = fmt.Sprintf("%d is negative", c.Profile)
	}
	if c.What == "decode" && (c.Precision == model.BF16 || c.Precision == model.BF16x3) {
		bad["precision"] = c.Precision + " is for training steps; images are decoded in float32, or tf32 on a GPU"
	}
	if why := c.whyNotSimulated(); why != "" {
		bad["simulate"] = why
	}
	if err := bad.OrNil(); err != nil {
		return err
	}
	options := bench.Options{Seconds: c.Seconds, Profile: c.Profile > 0, Threads: c.Simulate}
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
	if r.Profile != nil && c.Profile > 0 {
		return r.Profile.Write(env.out, c.Profile)
	}
	return nil
}

// whyNotSimulated returns why threads cannot be simulated; empty if they can.
func (c *benchCommand) whyNotSimulated() string {
	switch {
	case c.Simulate < 0 || c.Simulate > mostSimulated:
		return fmt.Sprintf("%d is out of range; choose 1–%s threads", c.Simulate, grouped(mostSimulated))
	case c.Simulate == 0:
		return ""
	case c.What == "data":
		return "bench data reads on one goroutine; threads can be simulated for train and decode"
	case c.Engine != "auto" && c.Engine != "cpu":
		return c.Engine + " has no threads to simulate; use the engine cpu"
	case c.Precision == model.BF16x3:
		return "not possible with precision " + model.BF16x3 + ", which is measured with real threads only"
	}
	return ""
}

func describe(env environment, r bench.Result) {
	threads, middle := fmt.Sprintf("%d threads", r.Threads), "median"
	if r.Simulated {
		threads, middle = fmt.Sprintf("%d simulated threads, busy %.0f%% of the time", r.Threads, r.Profile.Busy()), "mean"
	}
	switch r.What {
	case "train":
		fmt.Fprintf(env.out, "training %s %s, batch %d, on %s (%s, %s): %.1f images/s, %s step %.1f ms over %d steps, peak memory %.0f MB; created in %.0f ms, first call %.0f ms\n",
			r.Preset, r.Model, r.Batch, r.Engine, threads, r.Precision, r.ImagesPerSecond, middle, r.StepMS, r.Count, r.PeakMB, r.StartMS, r.FirstMS)
	case "decode":
		fmt.Fprintf(env.out, "decoding one image, %s %s, on %s (%s): %s %.2f ms over %d\n", r.Preset, r.Model, r.Engine, threads, middle, r.DecodeMS, r.Count)
	default:
		fmt.Fprintf(env.out, "reading %s on one goroutine: %.0f images/s in order, %.0f images/s at random, after %.1f s of preparation\n",
			r.Dataset, r.ImagesPerSecond, r.RandomPerSecond, r.WarmSeconds)
	}
}
