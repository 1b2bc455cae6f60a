// Package bench measures the speed of the three operations that users wait for: training steps, decoding an image, and reading images.
package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gomlx/gomlx/pkg/core/tensors"
	gomlx "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/cpu"
	"slotscope/model/data"
	"slotscope/model/host"
	"slotscope/model/learn/train"
	"slotscope/model/paper/ae"
)

// Result is one measurement; zero fields were not measured.
type Result struct {
	What            string  `json:"what"`
	Model           string  `json:"model,omitempty"`
	Preset          string  `json:"preset"`
	Dataset         string  `json:"dataset,omitempty"`
	Batch           int     `json:"batch"`
	Engine          string  `json:"engine"`              // empty for data, which uses no engine
	Precision       string  `json:"precision,omitempty"` // of products
	Threads         int     `json:"threads"`
	Simulated       bool    `json:"simulated,omitempty"` // whether the threads are simulated
	Parameters      int     `json:"parameters,omitempty"`
	ImagesPerSecond float64 `json:"images_per_second"`
	RandomPerSecond float64 `json:"random_images_per_second,omitempty"`
	StepMS          float64 `json:"step_ms,omitempty"`  // median duration of a step; the mean for simulated threads
	StartMS         float64 `json:"start_ms,omitempty"` // to create the trainer
	FirstMS         float64 `json:"first_ms,omitempty"` // the first call, which traces, plans and takes StepsPerCall steps
	StepsPerCall    int     `json:"steps_per_call,omitempty"`
	Resident        bool    `json:"resident,omitempty"`     // whether the images are stored on the device
	DecodeMS        float64 `json:"decode_ms"`              // median duration for one image
	WarmSeconds     float64 `json:"warm_seconds,omitempty"` // once, before the first image of a dataset
	Count           int     `json:"count,omitempty"`        // number of measured steps or decodes
	Seconds         float64 `json:"seconds"`                // measured duration, without warm-up
	PeakMB          float64 `json:"peak_mb,omitempty"`      // resident memory of the process
	CPUSeconds      float64 `json:"cpu_seconds,omitempty"`  // processor time of all threads during Seconds

	Profile *cpu.Report `json:"profile,omitempty"`
}

// Options are the settings of a measurement.
type Options struct {
	Seconds float64
	Profile bool // whether to profile the operations of the CPU engine
	Threads int  // number of simulated threads, each with its own core, see cpu.Simulate; 0 for real threads. Implies Profile, which gives the times
}

var image = ae.Image{H: 64, W: 64, C: 3}

// open opens the engine with one of compute's functions, or simulated threads.
func (o Options) open(cfg model.Config, with func(model.Config) (*compute.Engine, error)) (*compute.Engine, error) {
	if o.Threads == 0 {
		return with(cfg)
	}
	b := cpu.Simulate(o.Threads)
	if b == nil {
		return nil, cpu.ErrNotBuilt
	}
	return &compute.Engine{Backend: b, Name: "cpu", Threads: o.Threads, Why: "Threads are simulated.", Precision: cfg.Computed("cpu")}, nil
}

// Train measures complete gradient steps on random images, fed as in a run: forward, backward, clipping, AdamW.
func Train(ctx context.Context, cfg model.Config, o Options) (Result, error) {
	engine, err := o.open(cfg, compute.OpenToTrain)
	if err != nil {
		return Result{}, err
	}
	how := train.FeedingOf(cfg, engine.Name, 0, 0) // as for a dataset that fits
	began := time.Now()
	t, err := train.New(cfg, image, engine)
	if err != nil {
		return Result{}, err
	}
	defer t.Finalize()
	r := Result{StartMS: milliseconds(time.Since(began)), What: "train", Model: cfg.Model, Preset: cfg.Preset, Batch: cfg.Batch, Engine: engine.Name, Precision: engine.Precision, Threads: engine.Threads,
		Parameters: t.Parameters(), StepsPerCall: how.Steps, Resident: how.Resident}
	next := calls(t, cfg.Batch*how.Steps, how)
	if err := r.measure(ctx, engine, o, next); err != nil {
		return r, err
	}
	r.Count, r.StepMS = r.Count*how.Steps, r.StepMS/float64(how.Steps)
	r.ImagesPerSecond = float64(cfg.Batch*r.Count) / r.Seconds
	return r, nil
}

// calls gives a trainer random images, n for each call, and returns a function that makes the next call.
func calls(t *train.Trainer, n int, how train.Feeding) func() error {
	images, index := noise(n*image.H*image.W*image.C), make([]int32, n)
	for i := range index {
		index[i] = int32(i)
	}
	if how.Resident {
		t.Hold(tensors.FromFlatDataAndDimensions(images, n, image.H, image.W, image.C))
	}
	step := 1
	return func() (err error) {
		var c train.Call
		if how.Resident {
			c, err = t.Gather(step, how.Steps, index)
		} else {
			c, err = t.Load(step, how.Steps, images)
		}
		if err != nil {
			return err
		}
		step += how.Steps
		return (<-t.Launch(c)).Err
	}
}

// Decode measures decoding one slot tuple with random weights, as the playground does: codes, or values from N(0, 1) for models without codes.
func Decode(ctx context.Context, cfg model.Config, o Options) (Result, error) {
	engine, err := o.open(cfg, compute.OpenFor)
	if err != nil {
		return Result{}, err
	}
	net, err := ae.New(cfg, image)
	if err != nil {
		return Result{}, err
	}
	store := gomlx.New().Checked(false)
	defer store.Finalize()
	if err := net.Init(store, engine.Backend); err != nil {
		return Result{}, err
	}
	decoder, err := ae.NewDecoder(engine.Backend, store, net)
	if err != nil {
		return Result{}, fmt.Errorf("preparing the decoder: %w", err)
	}
	defer decoder.Finalize()
	r := Result{What: "decode", Model: cfg.Model, Preset: cfg.Preset, Batch: 1, Engine: engine.Name, Threads: engine.Threads}
	err = r.measure(ctx, engine, o, func() error {
		in := tensors.FromAnyValue(slots(cfg))
		defer in.MustFinalizeAll()
		out, err := decoder.Decode(in)
		if err != nil {
			return err
		}
		out.MustFinalizeAll()
		return nil
	})
	if err != nil {
		return r, err
	}
	r.DecodeMS, r.StepMS = r.StepMS, 0
	r.ImagesPerSecond = 1000 / r.DecodeMS
	return r, nil
}

// slots returns a random slot tuple, [1, m].
func slots(cfg model.Config) any {
	if !cfg.Discrete() {
		values := make([]float32, cfg.M)
		for i := range values {
			values[i] = float32(rand.NormFloat64())
		}
		return [][]float32{values}
	}
	codes := make([]int32, cfg.M)
	for i := range codes {
		codes[i] = int32(rand.IntN(cfg.K))
	}
	return [][]int32{codes}
}

// Data measures reading images from a dataset in one goroutine, half of the time in order and half at random.
func Data(ctx context.Context, name, dir string, seconds float64) (Result, error) {
	set, err := data.Open(ctx, name, dir)
	if err != nil {
		return Result{}, err
	}
	defer set.Close()
	speed, err := data.Bench(ctx, set, seconds)
	return Result{What: "data", Dataset: name, Batch: data.BenchBatch, Threads: 1, Seconds: seconds, WarmSeconds: speed.Warm,
		ImagesPerSecond: speed.Sequential, RandomPerSecond: speed.Random, PeakMB: float64(host.Peak()) / 1e6}, err
}

const warmUp = 2 // uncounted calls, which compile and touch memory first

// measure calls f for o.Seconds and records how long its calls took.
func (r *Result) measure(ctx context.Context, engine *compute.Engine, o Options, f func() error) error {
	for i := range warmUp {
		began := time.Now()
		if err := f(); err != nil {
			return err
		}
		if i == 0 {
			r.FirstMS = milliseconds(time.Since(began))
		}
	}
	r.Simulated = o.Threads > 0
	if o.Profile || r.Simulated {
		stop, ok := cpu.Measure(engine.Backend)
		if !ok {
			return fmt.Errorf("engine %s has no profiler; use --engine cpu", engine.Name)
		}
		defer func() {
			report := stop()
			r.Profile = &report
			if r.Simulated {
				r.Seconds = report.Wall.Seconds()
				r.StepMS = 1000 * r.Seconds / float64(max(r.Count, 1))
			}
		}()
	}
	began := host.CPU()
	times, err := repeat(ctx, o.Seconds, f)
	if err != nil {
		return err
	}
	r.CPUSeconds = (host.CPU() - began).Seconds()
	for _, t := range times {
		r.Seconds += t.Seconds()
	}
	r.Count, r.StepMS, r.PeakMB = len(times), median(times), float64(host.Peak())/1e6
	return nil
}

// repeat calls f for the given time, at least once, and returns how long each call took.
func repeat(ctx context.Context, seconds float64, f func() error) ([]time.Duration, error) {
	var times []time.Duration
	for end := time.Now().Add(time.Duration(seconds * float64(time.Second))); len(times) == 0 || time.Now().Before(end); {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("measuring: %w", err)
		}
		began := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	return times, nil
}

// median returns the median duration in milliseconds.
func median(times []time.Duration) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return milliseconds(sorted[len(sorted)/2])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func noise(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	images := make([]byte, n)
	for i := range images {
		images[i] = byte(rng.Uint32())
	}
	return images
}
