// Package evaluate measures a trained model: the information of its slots on the factors, its robustness to noise, and the effect of swaps.
package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
	"slotscope/model/measure/metric"
	"slotscope/model/paper/ae"
)

// Options sets what is measured. Reports expect Default.
type Options struct {
	Images int // size of the evaluation set, limited to the dataset's size
	Noise  int // images of the evaluation set tested under noise, at every strength; 0 for none
	Pairs  int // image pairs whose slots are swapped; 0 for none
	Probe  int // gradient steps of the probe that reads swapped images
	Trees  int // per random forest
	Agree  int // images that all runs on the dataset encode, regardless of seed; 0 for none
	Seed   int64

	Probes    string // folder that stores probes, one per dataset; empty to store none
	KeptProbe bool   // never train a probe; without a stored one, swaps are skipped

	Reader *checkpoint.File // probe to use, as returned by FindProbe; nil to use one from Probes or train one

	Rest data.Set // images outside the run's part of a dataset, of which as many are measured; nil if none
	// Progress is called with the progress of a stage, in the given unit; may be nil.
	Progress func(stage, unit string, done, of float64)
}

// Default returns the options for 10,000 images drawn with the run's seed.
func Default(seed int64) Options {
	return Options{Images: 10000, Noise: 500, Pairs: 300, Probe: 3000, Trees: 100, Agree: AgreementImages, Seed: seed}
}

// Quick returns the options for 2,000 images in a fraction of the time: fewer noisy images, pairs and trees, and swaps only if the dataset's
// probe is already trained. InfoM, InfoE and InfoC on so few rows are not comparable with Default's.
func Quick(seed int64) Options {
	return Options{Images: 2000, Noise: 256, Pairs: 100, Probe: Default(seed).Probe, KeptProbe: true, Trees: 30, Agree: AgreementImages, Seed: seed}
}

// Result holds the scores and the data they were computed from.
type Result struct {
	Scores  model.Scores
	Factors []string
	Index   []int     // [n] dataset indices of the images
	Codes   []int32   // [n, m]; nil for models without codes
	Numbers []float32 // [n, m] for models without codes
	Classes []int     // [n, F]
	PSNR    []float64 // [n] dB

	agreement *agreement // of images that all runs on the dataset encode; nil for held-out images

	HeldOut *Result     // result on Options.Rest, without scores; nil if that is nil
	Noisy   image.Image // rows of images: original, reconstructed, and at every noise level; nil without noise
}

// Run measures a checkpoint on its dataset. If ctx ends, it returns early with an error that wraps ctx.Err().
func Run(ctx context.Context, engine *compute.Engine, file checkpoint.File, set data.Set, o Options) (Result, error) {
	start, info := time.Now(), set.Info()
	if o.Progress == nil {
		o.Progress = func(string, string, float64, float64) {}
	}
	if err := finiteWeights(file); err != nil {
		return Result{}, err
	}
	n, err := newNet(ctx, engine, file, ae.Image{H: info.H, W: info.W, C: info.C})
	if err != nil {
		return Result{}, fmt.Errorf("opening the checkpoint for images of %s: %w", info.Name, err)
	}
	defer n.finalize()
	e := &evaluation{net: n, set: set, info: info, o: o, file: file}
	defer e.finalize()
	if err := inTurn(ctx, e.draw, e.represent, e.agreed, e.measure, e.field, e.faithful, e.learnProbe, e.noise, e.swap, e.truth); err != nil {
		return Result{}, err
	}
	r := e.result()
	if err := e.heldOut(ctx, &r); err != nil {
		return Result{}, err
	}
	r.Scores.Engine, r.Scores.Seconds = engine.Name, time.Since(start).Seconds()
	return r, nil
}

func inTurn(ctx context.Context, stages ...func(context.Context) error) error {
	for _, stage := range stages {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// evaluation is the state of evaluating one checkpoint.
type evaluation struct {
	net  *net
	set  data.Set
	info data.Info
	o    Options
	file checkpoint.File

	index   []int     // [n]
	classes []int     // [n, F]
	slots   slots     // [n, m]
	z       []float32 // [noise, n]
	power   float64   // mean z²
	bundle  float64   // mean ẑ²
	psnr    []float64 // [n]
	shown   sheet
	scores  model.Scores

	agreement *agreement

	probe                               *probe // nil if none is used
	probeAccuracy, probeReconstructions []float64
	probeImages                         int
}

func (e *evaluation) finalize() {
	if e.probe != nil {
		e.probe.finalize()
	}
}

// draw selects the evaluation set and reads its factors.
func (e *evaluation) draw(context.Context) (err error) {
	count := min(e.o.Images, e.info.Len)
	if e.index, err = data.Draw(e.o.Seed, count, e.info.Len); err != nil {
		return err
	}
	e.classes = make([]int, count*len(e.info.Factors))
	if err := e.set.Classes(e.classes, e.index); err != nil {
		return fmt.Errorf("reading the factors of %s: %w", e.info.Name, err)
	}
	e.scores = model.Scores{Version: model.ScoresVersion, Step: e.file.Step, Images: count, Seed: e.o.Seed}
	return nil
}

// represent encodes and reconstructs the evaluation set.
func (e *evaluation) represent(ctx context.Context) error {
	of, squares, bundled := len(e.index), 0.0, 0.0
	for done := 0; done < of; done += batchSize {
		rows := e.index[done:min(of, done+batchSize)]
		pixels, err := e.read(ctx, rows)
		if err != nil {
			return err
		}
		var represented error
		err = call("representing images", e.net.represent, []any{e.net.images(pixels)}, func(out []*tensors.Tensor) {
			if represented = e.finiteImages(rows, out[0], out[2]); represented != nil {
				return
			}
			z := tensors.MustCopyFlatData[float32](out[0])[:len(rows)*e.net.n]
			for _, v := range z {
				squares += float64(v) * float64(v)
			}
			for _, v := range tensors.MustCopyFlatData[float32](out[4])[:len(rows)] {
				bundled += float64(v)
			}
			e.z = append(e.z, z[:max(0, min(len(rows), e.o.Noise-done))*e.net.n]...)
			e.slots.append(e.net.slotsOf(out[1]), len(rows), e.net.m)
			for _, mse := range tensors.MustCopyFlatData[float32](out[2])[:len(rows)] {
				e.psnr = append(e.psnr, metric.PSNR(float64(mse)))
			}
			if done == 0 {
				e.shown.begin(e, pixels, out[3])
			}
		})
		if err := cmp.Or(err, represented); err != nil {
			return err
		}
		e.o.Progress("encoding", "images", float64(done+len(rows)), float64(of))
	}
	e.power, e.bundle = squares/float64(of*e.net.n), bundled/float64(of*e.net.n)
	psnr := meanInterval(e.psnr)
	e.scores.PSNR, e.scores.PSNRInterval = float64(psnr.Value), &psnr
	return nil
}

// finiteWeights returns an error if a checkpoint contains non-finite weights.
func finiteWeights(file checkpoint.File) error {
	for _, name := range slices.Sorted(maps.Keys(file.Tensors)) {
		if at := slices.IndexFunc(file.Tensors[name].Data, func(v float32) bool { return !finite(v) }); at >= 0 {
			return fmt.Errorf("tensor %q of the checkpoint contains %v: the file is damaged or its run diverged", name, file.Tensors[name].Data[at])
		}
	}
	return nil
}

// finiteImages returns an error if z or the squared error of a batch is not finite, which large weights can cause.
func (e *evaluation) finiteImages(rows []int, z, mse *tensors.Tensor) error {
	for _, t := range []*tensors.Tensor{z, mse} {
		values := tensors.MustCopyFlatData[float32](t)
		width := len(values) / batchSize
		if at := slices.IndexFunc(values[:len(rows)*width], func(v float32) bool { return !finite(v) }); at >= 0 {
			return fmt.Errorf("the model computes %v for image %d of %s: its checkpoint is damaged or its run diverged", values[at], rows[at/width], e.info.Name)
		}
	}
	return nil
}

func finite(v float32) bool { return v-v == 0 }

// read returns the images of a batch, filled up with the first.
func (e *evaluation) read(ctx context.Context, index []int) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("evaluation: %w", err)
	}
	full := append(make([]int, 0, batchSize), index...)
	for len(full) < batchSize {
		full = append(full, index[0])
	}
	pixels := make([]byte, batchSize*e.info.H*e.info.W*e.info.C)
	if err := e.set.Images(pixels, full); err != nil {
		return nil, fmt.Errorf("reading images of %s: %w", e.info.Name, err)
	}
	return pixels, nil
}

// measure computes code usage, and InfoMEC and DCI if factors vary.
func (e *evaluation) measure(ctx context.Context) error {
	if e.slots.codes != nil {
		e.scores.Usage = usage(e.slots.codes, e.file.Config)
	}
	if e.scores.NoFactors = noFactors(e.info); e.scores.NoFactors != "" {
		return nil
	}
	t := tableOf(e.info, e.classes, e.slots, len(e.index))
	m, err := metric.Measure(ctx, t, metric.Options{Seed: e.o.Seed, Trees: e.o.Trees,
		Progress: func(done, of float64) { e.o.Progress("measuring", "", done, of) }})
	if err != nil {
		return err
	}
	e.scores.Metrics = &m
	if e.scores.Usage != nil {
		e.scores.Usage.Names = metric.CodeNames(t, m.Ownership.Slots)
	}
	return nil
}

// field computes the literature's scores besides InfoMEC and DCI. If that fails, the evaluation continues without them.
func (e *evaluation) field(ctx context.Context) error {
	if e.scores.Metrics == nil {
		return nil
	}
	f, err := metric.Field(ctx, tableOf(e.info, e.classes, e.slots, len(e.index)), metric.Extra{}, metric.Options{Seed: e.o.Seed,
		Progress: func(done, of float64) { e.o.Progress("measuring other metrics", "", done, of) }})
	if err != nil && ctx.Err() == nil {
		return nil // continue without them
	}
	e.scores.Field = &f
	return err
}

// faithful measures whether an HRR model's z is the bundle of its codes, on the first images of the evaluation set.
func (e *evaluation) faithful(ctx context.Context) error {
	if _, ok := e.net.built.(*ae.HRR); !ok {
		return nil
	}
	encoder, err := NewEncoder(e.net.engine.Backend, e.net.built, e.net.store, e.net.model, e.net.image)
	if err != nil {
		return err
	}
	defer encoder.Finalize()
	encoded, err := encoder.Encode(ctx, e.set, e.index[:min(QuickImages, len(e.index))])
	if err != nil {
		return err
	}
	e.scores.Faithfulness, err = encoded.Faithfulness()
	return err
}

// noFactors returns why slots cannot be compared with factors; empty if they can.
func noFactors(info data.Info) string {
	if slices.ContainsFunc(info.Sizes(), func(k int) bool { return k > 1 }) {
		return ""
	}
	what := info.Name + " has no known factors"
	if len(info.Factors) > 0 {
		what = "all images of " + info.Name + " have the same value of every factor"
	}
	return "InfoMEC, DCI and swaps compare slots with factors, but " + what + "."
}

// tableOf returns slots and factors of n images as columns; classes is [n, F].
func tableOf(info data.Info, classes []int, s slots, n int) metric.Table {
	t, m := metric.Table{}, max(len(s.codes), len(s.numbers))/n
	for i, f := range info.Factors {
		t.Names = append(t.Names, f.Name)
		t.Factors = append(t.Factors, column(classes, i, len(info.Factors), func(v int) int { return v }))
	}
	for j := range m {
		if s.codes != nil {
			t.Codes = append(t.Codes, column(s.codes, j, m, func(v int32) int { return int(v) }))
		} else {
			t.Values = append(t.Values, column(s.numbers, j, m, func(v float32) float64 { return float64(v) }))
		}
	}
	return t
}

func column[A, B any](rows []A, j, width int, convert func(A) B) []B {
	out := make([]B, len(rows)/width)
	for r := range out {
		out[r] = convert(rows[r*width+j])
	}
	return out
}

// usage counts how often each slot uses each of its k codes, and how often each codebook entry is used: in QLAE, code 3 is a different entry
// in every slot.
func usage(codes []int32, c model.Config) *model.Usage {
	u, m := &model.Usage{}, c.M
	all := make([]int, c.Entries())
	for j := range m {
		counts := make([]int, c.K)
		for r := j; r < len(codes); r += m {
			counts[codes[r]]++
			all[c.Entry(j, int(codes[r]))]++
		}
		u.Counts, u.Used, u.Perplexity = append(u.Counts, counts), append(u.Used, taken(counts)), append(u.Perplexity, metric.Perplexity(counts))
	}
	u.Entries, u.Codebook, u.Joint = taken(all), metric.Perplexity(all), metric.JointEntropy(codes, m)
	return u
}

func taken(counts []int) (n int) {
	for _, c := range counts {
		if c > 0 {
			n++
		}
	}
	return n
}

func (e *evaluation) result() Result {
	r := Result{Noisy: e.shown.picture(), Scores: e.scores, Index: e.index, Codes: e.slots.codes, Numbers: e.slots.numbers, Classes: e.classes, PSNR: e.psnr, agreement: e.agreement}
	for _, f := range e.info.Factors {
		r.Factors = append(r.Factors, f.Name)
	}
	return r
}

// random returns a random stream from the evaluation's seed, distinct for every purpose and number.
func (e *evaluation) random(purpose, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(e.o.Seed)^purpose<<48, number))
}

// Purposes of random streams.
const (
	forNoise = 1 + iota
	forPairs
	forProbe
	forTruth
	forRecombination
)
