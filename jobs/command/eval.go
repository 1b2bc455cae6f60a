package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/learn/evaluate"
)

type evalCommand struct {
	Runs    []string `arg:"" name:"run" help:"RUN, RUN@STEP or RUN@best, with RUN an ID or a folder, or CHECKPOINT.safetensors"`
	Effort  string   `default:"full" enum:"${efforts}" placeholder:"EFFORT" help:"how much to measure; quick uses at most 2,000 images, less of everything else, and swaps only if the dataset's probe is stored"`
	Images  int      `placeholder:"N" help:"evaluation images, drawn with the run's seed; default: eval_images of the run's configuration, at most 2,000 for quick"`
	Noise   int      `default:"${noise}" placeholder:"N" help:"images for the noise measurement; 0 skips it"`
	Pairs   int      `default:"${pairs}" placeholder:"N" help:"image pairs for the swap measurement; 0 skips it"`
	Probe   int      `default:"${probe}" placeholder:"N" help:"training steps of the probe that reads factors from swapped images"`
	Trees   int      `default:"${trees}" placeholder:"N" help:"trees per random forest"`
	Replace bool     `help:"let a quick evaluation replace full scores, which it keeps otherwise"`
	Engine  string   `default:"auto" enum:"${engines}" placeholder:"NAME" help:"compute engine"`
	Heldout bool     `default:"true" negatable:"" help:"also measure the images that the run's part of a dataset leaves out"`
	Out     string   `placeholder:"FOLDER" help:"output folder; default: the run's folder"`
	dataFlag
	jsonFlag
}

// Run evaluates the checkpoints of runs one after another and saves the results in each run's folder.
func (c *evalCommand) Run(ctx context.Context, env environment, typed given) error {
	if c.Out != "" && len(c.Runs) > 1 {
		return fmt.Errorf("%w: --out takes one run, got %d", errUsage, len(c.Runs))
	}
	o := evaluate.Default(0)
	o.Images, o.Noise, o.Pairs, o.Probe, o.Trees = c.Images, c.Noise, c.Pairs, c.Probe, c.Trees
	if err := sensible(typed, o); err != nil {
		return err
	}
	w := evalWork{env: env, o: withEffort(typed, o, c.Effort), effort: c.Effort, engine: c.Engine, dataDir: c.Data, heldOut: c.Heldout, out: c.Out, replace: c.Replace, dataGiven: typed["data"]}
	if len(c.Runs) == 1 {
		r, subject, err := w.run(ctx, c.Runs[0])
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(env.out, r.Scores)
		}
		return printScores(env, subject, r.Scores)
	}
	return w.runAll(ctx, c.Runs, c.JSON)
}

// withEffort returns o with the values of the effort for everything that no flag set.
func withEffort(typed given, o evaluate.Options, effort string) evaluate.Options {
	if effort != model.Quick {
		return o
	}
	q := evaluate.Quick(0)
	for name, p := range map[string][2]*int{"noise": {&o.Noise, &q.Noise}, "pairs": {&o.Pairs, &q.Pairs}, "probe": {&o.Probe, &q.Probe}, "trees": {&o.Trees, &q.Trees}} {
		if !typed[name] {
			*p[0] = *p[1]
		}
	}
	o.KeptProbe = !typed["probe"]
	return o
}

// evalWork holds the options for evaluating runs.
type evalWork struct {
	env            environment
	o              evaluate.Options
	effort, engine string
	dataDir, out   string
	dataGiven      bool // dataDir was given, so it is not derived from the run's folder
	heldOut        bool
	replace        bool // a quick evaluation may replace full scores
}

// evaluated is the entry of one run in the output of `slotscope eval --json` for several runs.
type evaluated struct {
	Run    string        `json:"run"` // as typed
	Scores *model.Scores `json:"scores,omitempty"`
	Error  string        `json:"error,omitempty"` // why there are none
}

// runAll evaluates several runs. It continues after a run that cannot be evaluated, and stops when ctx ends.
func (w evalWork) runAll(ctx context.Context, names []string, asJSON bool) error {
	var all []evaluated
	var failures []error
	for i, name := range names {
		fmt.Fprintf(w.env.err, "%s (%d of %d)\n", name, i+1, len(names))
		r, subject, err := w.run(ctx, name)
		switch {
		case err != nil:
			all = append(all, evaluated{Run: name, Error: sentence(err)})
			failures = append(failures, fmt.Errorf("%s: %w", name, err))
			fmt.Fprintln(w.env.err, "slotscope:", sentence(err))
		default:
			all = append(all, evaluated{Run: name, Scores: &r.Scores})
			if !asJSON {
				if err := printScores(w.env, subject, r.Scores); err != nil {
					return err
				}
				fmt.Fprintln(w.env.out)
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	if asJSON {
		if err := printJSON(w.env.out, map[string][]evaluated{"runs": all}); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("evaluated %d of %d runs: %w", len(all)-len(failures), len(names), ctx.Err())
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d runs could not be evaluated; first error: %w", len(failures), len(names), failures[0])
	}
	return nil
}

// run evaluates one checkpoint. If the result is saved in a run's folder, the folder also holds the state of the evaluation.
func (w evalWork) run(ctx context.Context, name string) (r evaluate.Result, s subject, err error) {
	if s, err = findSubject(w.dataDir, name); err != nil {
		return r, s, err
	}
	if runs := filepath.Dir(s.dir); s.dir != "" && !w.dataGiven && filepath.Base(runs) == "runs" {
		w.dataDir = filepath.Dir(runs) // a run in a data folder uses the datasets there
	}
	bar := newProgress(w.env.err)
	w.o.Progress = bar.show
	if w.out != "" {
		s.dir = w.out
	} else if s.dir != "" {
		if err := w.spare(s.dir); err != nil {
			return r, s, err
		}
		a, err := openAccount(s.dir, w.effort)
		if err != nil {
			return r, s, err
		}
		defer a.close()
		w.o.Progress = func(stage, unit string, done, of float64) {
			bar.show(stage, unit, done, of)
			a.progress(stage, unit, done, of)
		}
		r, err = w.measure(ctx, s)
		bar.end()
		return r, s, a.end(ctx, err)
	}
	if err := s.makeRoom(); err != nil {
		return r, s, err
	}
	r, err = w.measure(ctx, s)
	bar.end()
	return r, s, err
}

// spare returns an error if a quick evaluation would replace full scores and --replace was not given.
func (w evalWork) spare(dir string) error {
	if w.effort != model.Quick || w.replace {
		return nil
	}
	f, err := folder.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if scores, err := f.Scores(); err == nil && scores.Full() { // unreadable scores may be replaced
		return fmt.Errorf("%s has full scores (%s images at step %s), which a quick evaluation would replace; omit --effort quick, or add --replace: %w",
			dir, grouped(scores.Images), grouped(scores.Step), model.ErrConflict)
	}
	return nil
}

// measure evaluates a subject and saves the result.
func (w evalWork) measure(ctx context.Context, s subject) (evaluate.Result, error) {
	w.useProbes()
	r, err := w.evaluate(ctx, s)
	if err != nil {
		return r, err
	}
	r.Scores.Effort = w.effort
	r.Scores.Options = &model.EvalOptions{Images: r.Scores.Images, Noise: w.o.Noise, Pairs: w.o.Pairs, Probe: w.o.Probe, KeptProbe: w.o.KeptProbe, Trees: w.o.Trees, HeldOut: w.heldOut}
	return r, s.keep(r)
}

// useProbes stores probes in the data folder if it exists.
func (w *evalWork) useProbes() {
	if info, err := os.Stat(w.dataDir); err == nil && info.IsDir() {
		w.o.Probes = filepath.Join(w.dataDir, evaluate.ProbesDir)
	}
}

// leastImages is the minimum number of images for a score.
const leastImages = 2

func sensible(typed given, o evaluate.Options) error {
	images := o.Images
	if !typed["images"] {
		images = leastImages
	}
	for _, f := range []struct {
		name           string
		value, lo, max int
	}{{"images", images, leastImages, 1e6}, {"noise", o.Noise, 0, 1e6}, {"pairs", o.Pairs, 0, 1e6}, {"probe", o.Probe, 0, 1e6}, {"trees", o.Trees, 1, 1e4}} {
		if f.value < f.lo || f.value > f.max {
			return fmt.Errorf("%w: --%s is %d; choose a value from %s to %s", errUsage, f.name, f.value, grouped(f.lo), grouped(f.max))
		}
	}
	return nil
}

// subject is a checkpoint to evaluate and the folder for the results; without a folder nothing is saved.
type subject struct {
	checkpoint, dir string
}

// findSubject finds the checkpoint for a path of a checkpoint, a run's ID or a run's folder; ID and folder can end in @STEP or @best.
func findSubject(dataDir, name string) (subject, error) {
	if strings.HasSuffix(name, ".safetensors") {
		return subject{checkpoint: name}, nil
	}
	if err := placeShipped(dataDir, name); err != nil {
		return subject{}, err
	}
	run, at, chosen := strings.Cut(name, "@")
	if model.ValidID(run) {
		run = filepath.Join(dataDir, "runs", run)
	}
	f, err := folder.Open(run)
	if err != nil {
		return subject{}, err
	}
	defer f.Close()
	steps := f.Checkpoints()
	if len(steps) == 0 {
		return subject{}, fmt.Errorf("run %s has no checkpoint to evaluate: %w", f.ID(), model.ErrNotFound)
	}
	step := steps[len(steps)-1]
	switch {
	case at == model.Best:
		if step, err = f.Best(); err != nil {
			return subject{}, err
		}
	case chosen:
		if step, err = strconv.Atoi(at); err != nil {
			return subject{}, fmt.Errorf("%w: %q is not a step", errUsage, at)
		}
	}
	path, err := f.Checkpoint(step)
	return subject{path, f.Dir()}, err
}

func (w evalWork) evaluate(ctx context.Context, s subject) (evaluate.Result, error) {
	file, err := checkpoint.Read(s.checkpoint)
	if err != nil {
		return evaluate.Result{}, err
	}
	return w.evaluateFile(ctx, s.checkpoint, file)
}

// exactly returns the engine settings to measure a run's model on an engine: its own, with a precision for evaluation.
func exactly(c model.Config, engine string) model.Config {
	c.Engine, c.Precision = engine, c.Exact()
	return c
}

// evaluateFile evaluates a loaded checkpoint; name identifies it in messages.
func (w evalWork) evaluateFile(ctx context.Context, name string, file checkpoint.File) (evaluate.Result, error) {
	o := w.o
	if file.Config.Model == "" {
		return evaluate.Result{}, fmt.Errorf("%s has no configuration; not a run checkpoint", name)
	}
	set, err := data.Open(ctx, file.Config.Dataset, w.dataDir)
	if err != nil {
		return evaluate.Result{}, fmt.Errorf("opening dataset %q: %w", file.Config.Dataset, err)
	}
	defer set.Close()
	if w.heldOut {
		if o.Rest, err = openRest(ctx, file.Config.Dataset, w.dataDir); err != nil {
			return evaluate.Result{}, err
		}
		if o.Rest != nil {
			defer o.Rest.Close()
		}
	}
	engine, err := compute.OpenFor(exactly(file.Config, w.engine))
	if err != nil {
		return evaluate.Result{}, fmt.Errorf("opening engine %q: %w", w.engine, err)
	}
	o.Seed = file.Config.Seed
	if o.Images == 0 {
		o.Images = max(file.Config.EvalImages, leastImages)
		if w.effort == model.Quick {
			o.Images = min(o.Images, evaluate.QuickImages)
		}
	}
	r, err := evaluate.Run(ctx, engine, file, set, o)
	if err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	r.Scores.Revision, r.Scores.Precision = Revision(), cmp.Or(file.Meta["precision"], file.Config.Computed(file.Meta["engine"]))
	return r, nil
}

// openRest opens the images that a part of a dataset leaves out; nil if the name means a whole dataset or nothing is left out.
func openRest(ctx context.Context, name, dataDir string) (data.Set, error) {
	if entry, err := (data.Catalogue{Dir: dataDir}).Entry(ctx, name); err == nil && entry.Part != "" {
		name = entry.Part
	}
	rest, ok := data.Complement(name)
	if !ok {
		return nil, nil
	}
	set, err := data.Open(ctx, rest, dataDir)
	if nothing := (model.Invalid{}); errors.As(err, &nothing) {
		return nil, nil // the part is the whole dataset: its complement has no images
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s, which was held out from training: %w", rest, err)
	}
	return set, nil
}

// makeRoom creates the subject's folder, so that an unwritable folder is reported before the evaluation and not after it.
func (s subject) makeRoom() error {
	if s.dir == "" {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("saving scores: %w", err)
	}
	return nil
}

// keep writes the results to the subject's folder.
func (s subject) keep(r evaluate.Result) error {
	if s.dir == "" {
		return nil
	}
	dir, err := os.OpenRoot(s.dir)
	if err != nil {
		return fmt.Errorf("saving scores: %w", err)
	}
	return errors.Join(r.Save(dir), dir.Close())
}

func printScores(env environment, s subject, r model.Scores) error {
	fmt.Fprintf(env.out, "%s, step %d: ", s.checkpoint, r.Step)
	if err := printPart(env, r.Metrics, r.NoFactors, r.Usage); err != nil {
		return err
	}
	fmt.Fprintf(env.out, "PSNR  %.2f dB over %d images\n", r.PSNR, r.Images)
	if h := r.HeldOut; h != nil {
		fmt.Fprintf(env.out, "\n%s, held out from training: ", h.Dataset)
		if err := printPart(env, h.Metrics, h.NoFactors, h.Usage); err != nil {
			return err
		}
		fmt.Fprintf(env.out, "PSNR  %s dB over %d images\n", scoreText(h.PSNR.Value, "%.2f"), h.Images)
		printRecombination(env, *h)
	}
	if r.Faithfulness != nil {
		printFaithfulness(env, *r.Faithfulness)
	}
	if r.Noise != nil {
		printNoise(env, *r.Noise)
	}
	if r.Swap != nil {
		printSwap(env, *r.Swap, r.Metrics.Factors)
	}
	switch {
	case r.SwapTruth != nil:
		printTruth(env, *r.SwapTruth, r.Metrics.Factors)
	case r.NoTruth != "":
		fmt.Fprintln(env.out, r.NoTruth)
	}
	if s.dir != "" {
		fmt.Fprintf(env.out, "saved to %s\n", filepath.Join(s.dir, evaluate.ScoresFile))
	}
	return nil
}

// printRecombination prints how often recombined codes of training images decode to held-out images.
func printRecombination(env environment, h model.HeldOut) {
	if r := h.Recombination; r != nil {
		fmt.Fprintf(env.out, "recombined codes of two training images  match %s of %d held-out images, %s of %d training images\n",
			shareText(r.Unseen.Hits), r.Unseen.Targets, shareText(r.Seen.Hits), r.Seen.Targets)
		fmt.Fprintf(env.out, "  PSNR against the held-out image: %s dB if the factor owns slots (%d of %d); its own reconstruction: %s dB\n",
			scoreText(r.Unseen.PSNR.Value, "%.2f"), r.Unseen.Owned, r.Unseen.Targets, scoreText(r.Unseen.Reconstruction.Value, "%.2f"))
	} else if h.NoRecombination != "" {
		fmt.Fprintln(env.out, h.NoRecombination)
	}
	fmt.Fprintln(env.out)
}

// printPart prints the metrics of one part of a dataset, or why there are none.
func printPart(env environment, m *model.Metrics, noFactors string, u *model.Usage) error {
	if m == nil {
		fmt.Fprintf(env.out, "%s\n", noFactors)
	} else if err := printMetrics(env.out, *m); err != nil {
		return err
	}
	fmt.Fprintln(env.out)
	if u != nil {
		fmt.Fprintf(env.out, "codebook  %d entries in use, perplexity %.1f\n", u.Entries, u.Codebook)
	}
	return nil
}

// printFaithfulness prints how closely the model follows an HRR, next to the values of an exact one.
func printFaithfulness(env environment, f model.Faithfulness) {
	fmt.Fprintf(env.out, "HRR faithfulness over %d images, values of an exact HRR in parentheses\n", f.Images)
	for _, row := range []struct {
		name, format string
		value        model.Score
		of           float64
	}{
		{"cos(z, ẑ)", "%.3f", f.CosBundle, f.True.CosBundle}, {"cos(ṽ, q)", "%.3f", f.CosRetrieval, f.True.CosRetrieval}, {"cos(v̄, q)", "%.3f", f.CosDenoised, f.True.CosDenoised},
		{"re-encoded", "%.3f", f.Reencode, f.True.Reencode}, {"cleaned up", "%.3f", f.Cleanup, f.True.Cleanup}, {"chance of both", "%.3f", f.Chance, math.NaN()},
		{"‖ẑ‖²", "%.1f", f.Energy, f.True.Energy}, {"coherence", "%.3f", f.Coherence, f.True.Coherence},
		{"rank of codebook", "%.1f", f.RankCodebook, f.True.Rank}, {"rank of z", "%.1f", f.RankZ, f.True.Rank}, {"rank of ẑ", "%.1f", f.RankBundle, f.True.Rank},
	} {
		fmt.Fprintf(env.out, "  %-17s %s", row.name, scoreText(row.value, row.format))
		if !math.IsNaN(row.of) {
			fmt.Fprintf(env.out, " ("+row.format+")", row.of)
		}
		fmt.Fprintln(env.out)
	}
}

func printNoise(env environment, n model.Noise) {
	for _, place := range []struct {
		name   string
		points []model.NoisePoint
	}{{"on z", n.Curve}, {"on ẑ, decoded directly", n.BundleRaw}, {"on ẑ, after cleanup", n.BundleClean}} {
		if len(place.points) == 0 {
			continue
		}
		fmt.Fprintf(env.out, "noise %s, SNR (E_s/N_0) → PSNR in dB:", place.name)
		for _, p := range place.points {
			fmt.Fprintf(env.out, "  %+.0f (%+.0f) → %s", p.SNR, p.EsN0, scoreText(p.PSNR.Value, "%.1f"))
		}
		fmt.Fprintln(env.out)
	}
}

func printTruth(env environment, s model.SwapTruth, factors []string) {
	fmt.Fprintf(env.out, "swaps against ground truth  groups %s, single slots %s, coverage %s; %d pairs\n", shareText(s.Group), shareText(s.Single), scoreText(s.Coverage, "%.2f"), s.Pairs)
	for _, g := range s.Groups {
		fmt.Fprintf(env.out, "  %s, slots %v: %s", oneLine(factors[g.Factor]), g.Slots, shareText(g.Hits))
		if g.LeaksMost >= 0 {
			fmt.Fprintf(env.out, "; leaks into %s in %.0f%% of pairs", oneLine(factors[g.LeaksMost]), 100*float64(g.Leak[g.LeaksMost]))
		}
		fmt.Fprintln(env.out)
	}
}

// shareText formats a share in percent with its interval.
func shareText(i model.Interval) string {
	if !i.Value.Defined() {
		return "–"
	}
	return fmt.Sprintf("%.1f%% (%.1f to %.1f)", 100*float64(i.Value), 100*float64(i.Low), 100*float64(i.High))
}

func printSwap(env environment, s model.Swap, factors []string) {
	fmt.Fprintf(env.out, "swaps  %s change only the slot's own factor, %s nothing, %s other factors; %d edits of %d pairs\n",
		shareText(s.Exact), shareText(s.None), shareText(s.Others), s.Edits, s.Pairs)
	fmt.Fprintf(env.out, "probe accuracy on held-out images:")
	for i, a := range s.ProbeAccuracy {
		fmt.Fprintf(env.out, "  %s %.1f%%", oneLine(factors[i]), 100*a)
	}
	fmt.Fprintln(env.out)
}
