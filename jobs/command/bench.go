package command

import (
	"context"
	"fmt"

	"slotscope/model"
	"slotscope/model/bench"
)

// mostSeconds is the longest measurement, a day.
const mostSeconds = 24 * 60 * 60

// mostSimulated is the most threads that are simulated: more than any machine's cores.
const mostSimulated = 1024

type benchCommand struct {
	What      string  `arg:"" enum:"train,decode,data" help:"what to measure"`
	Model     string  `default:"hrr" enum:"${models}" placeholder:"NAME" help:"model"`
	Preset    string  `default:"tiny" enum:"${presets}" placeholder:"NAME" help:"width of the network"`
	Batch     int     `default:"64" placeholder:"N" help:"images per training step"`
	Seconds   float64 `default:"10" placeholder:"N" help:"how long to measure"`
	Engine    string  `default:"auto" enum:"${engines}" placeholder:"NAME" help:"compute engine"`
	Precision string  `default:"tf32" enum:"${precisions}" placeholder:"NAME" help:"precision of products"`
	Profile   int     `default:"0" placeholder:"N" help:"print where the CPU engine's time goes, with this many of its most expensive steps"`
	Simulate  int     `default:"0" placeholder:"N" help:"how fast this many threads of the CPU engine would be if each had a core of its own: their parts are computed one after another, timed and laid side by side"`
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

// whyNotSimulated is what keeps threads from being simulated, or nothing.
func (c *benchCommand) whyNotSimulated() string {
	switch {
	case c.Simulate < 0 || c.Simulate > mostSimulated:
		return fmt.Sprintf("%d is not a number of threads from 1 to %d", c.Simulate, mostSimulated)
	case c.Simulate == 0:
		return ""
	case c.What == "data":
		return "data is read on one goroutine; threads are simulated for train and decode"
	case c.Engine != "auto" && c.Engine != "cpu":
		return c.Engine + " has no threads of ours; those of the engine cpu are simulated"
	case c.Precision == model.BF16x3:
		return "is measured with real threads only where products are " + model.BF16x3
	}
	return ""
}

func describe(env environment, r bench.Result) {
	threads, middle := fmt.Sprintf("%d threads", r.Threads), "median"
	if r.Simulated {
		threads, middle = fmt.Sprintf("%d simulated threads, busy for %.0f%% of their time", r.Threads, r.Profile.Busy()), "mean"
	}
	switch r.What {
	case "train":
		fmt.Fprintf(env.out, "training %s %s, batch %d, on %s (%s): %.1f images/s, %s step %.1f ms over %d steps, peak memory %.0f MB\n",
			r.Preset, r.Model, r.Batch, r.Engine, threads, r.ImagesPerSecond, middle, r.StepMS, r.Count, r.PeakMB)
	case "decode":
		fmt.Fprintf(env.out, "decoding one image, %s %s, on %s (%s): %s %.2f ms over %d\n", r.Preset, r.Model, r.Engine, threads, middle, r.DecodeMS, r.Count)
	default:
		fmt.Fprintf(env.out, "reading %s on one goroutine: %.0f images/s in order, %.0f images/s at random, after %.1f s of preparation\n",
			r.Dataset, r.ImagesPerSecond, r.RandomPerSecond, r.WarmSeconds)
	}
}
