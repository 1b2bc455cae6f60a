package command

import (
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
	Runs    []string `arg:"" name:"run" help:"RUN, RUN@STEP, RUN@best, a run's folder, or CHECKPOINT.safetensors"`
	Effort  string   `default:"full" enum:"${efforts}" placeholder:"EFFORT" help:"how much to measure: quick takes 2,000 images, fewer of all else, and swaps only where the dataset's probe is kept"`
	Images  int      `placeholder:"N" help:"images of the evaluation set, drawn with the run's seed; else eval_images of the run's configuration, for quick at most 2,000"`
	Noise   int      `default:"${noise}" placeholder:"N" help:"images that noise is tried on; 0 leaves it out"`
	Pairs   int      `default:"${pairs}" placeholder:"N" help:"pairs of images whose slots are swapped; 0 leaves it out"`
	Probe   int      `default:"${probe}" placeholder:"N" help:"training steps of the probe that reads swapped images"`
	Trees   int      `default:"${trees}" placeholder:"N" help:"trees of each random forest"`
	Engine  string   `default:"auto" enum:"${engines}" placeholder:"NAME" help:"compute engine"`
	Heldout bool     `default:"true" negatable:"" help:"measure what the run's part of a dataset leaves out too"`
	Out     string   `placeholder:"FOLDER" help:"folder to write into; else the run's own"`
	dataFlag
	jsonFlag
}

// Run measures the checkpoints of runs, one after another, and keeps what it finds in each run's folder.
func (c *evalCommand) Run(ctx context.Context, env environment, typed given) error {
	if c.Out != "" && len(c.Runs) > 1 {
		return fmt.Errorf("%w: --out takes one run, %d are given", errUsage, len(c.Runs))
	}
	o := evaluate.Default(0)
	o.Images, o.Noise, o.Pairs, o.Probe, o.Trees = c.Images, c.Noise, c.Pairs, c.Probe, c.Trees
	if err := sensible(typed, o); err != nil {
		return err
	}
	w := evalWork{env: env, o: withEffort(typed, o, c.Effort), effort: c.Effort, engine: c.Engine, dataDir: c.Data, heldOut: c.Heldout, out: c.Out, dataGiven: typed["data"]}
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

// withEffort is o with what was not set by a flag taken from the effort.
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

// evalWork is how runs are evaluated.
type evalWork struct {
	env            environment
	o              evaluate.Options
	effort, engine string
	dataDir, out   string
	dataGiven      bool // dataDir was typed: it is not guessed from a run's folder
	heldOut        bool
}

// evaluated is one run of `slotscope eval --json` for several.
type evaluated struct {
	Run    string        `json:"run"` // as typed
	Scores *model.Scores `json:"scores,omitempty"`
	Error  string        `json:"error,omitempty"` // why there are none
}

// runAll evaluates several runs. One that cannot be evaluated does not keep the others from it; that ctx ends does.
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
		return fmt.Errorf("%d of %d runs are evaluated: %w", len(all)-len(failures), len(names), ctx.Err())
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d runs could not be evaluated; the first: %w", len(failures), len(names), failures[0])
	}
	return nil
}

// run evaluates one checkpoint. Where it is a run's and the result is kept in its folder, the folder tells how the evaluation stands.
func (w evalWork) run(ctx context.Context, name string) (r evaluate.Result, s subject, err error) {
	if s, err = findSubject(w.dataDir, name); err != nil {
		return r, s, err
	}
	if runs := filepath.Dir(s.dir); s.dir != "" && !w.dataGiven && filepath.Base(runs) == "runs" {
		w.dataDir = filepath.Dir(runs) // a run in a data folder finds its datasets there
	}
	bar := newProgress(w.env.err)
	w.o.Progress = bar.show
	if w.out != "" {
		s.dir = w.out
	} else if s.dir != "" {
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

// measure evaluates a subject and keeps the result.
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

// useProbes keeps probes in the data folder, where there is one.
func (w *evalWork) useProbes() {
	if info, err := os.Stat(w.dataDir); err == nil && info.IsDir() {
		w.o.Probes = filepath.Join(w.dataDir, evaluate.ProbesDir)
	}
}

// leastImages is what a score needs at least.
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
			return fmt.Errorf("%w: --%s is %d; it goes from %d to %d", errUsage, f.name, f.value, f.lo, f.max)
		}
	}
	return nil
}

// subject is the checkpoint to be measured, and the folder for what is found; empty for nowhere.
type subject struct {
	checkpoint, dir string
}

// findSubject takes a checkpoint's path, a run's id or a run's folder, the last two with or without @STEP or @best.
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

// evaluateFile measures a checkpoint that was read; name is what messages call it.
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
	engine, err := compute.OpenFor(w.engine, file.Config.Exact())
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
	r.Scores.Revision, r.Scores.Precision = Revision(), file.Config.Computed(file.Meta["engine"])
	return r, nil
}

// openRest opens what a part of a dataset leaves out; nil where a name means a whole dataset, or nothing is left out.
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
		return nil, nil // the part is the whole: no image is selected by what it leaves out
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s, which training left out: %w", rest, err)
	}
	return set, nil
}

// makeRoom makes the subject's folder, so that what cannot be kept is not computed first.
func (s subject) makeRoom() error {
	if s.dir == "" {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("keeping scores: %w", err)
	}
	return nil
}

// keep writes the results into the subject's folder.
func (s subject) keep(r evaluate.Result) error {
	if s.dir == "" {
		return nil
	}
	dir, err := os.OpenRoot(s.dir)
	if err != nil {
		return fmt.Errorf("keeping scores: %w", err)
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
		fmt.Fprintf(env.out, "\n%s, which training left out: ", h.Dataset)
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
		fmt.Fprintf(env.out, "kept in %s\n", filepath.Join(s.dir, evaluate.ScoresFile))
	}
	return nil
}

// printRecombination says how many pictures that training left out codes of its images give, put together.
func printRecombination(env environment, h model.HeldOut) {
	if r := h.Recombination; r != nil {
		fmt.Fprintf(env.out, "codes of two training images put together  %s of %d pictures that training left out, %s of %d that it showed\n",
			shareText(r.Unseen.Hits), r.Unseen.Targets, shareText(r.Seen.Hits), r.Seen.Targets)
		fmt.Fprintf(env.out, "  %s dB against the picture left out, where the factor owns slots (%d of %d); reconstructed from itself %s dB\n",
			scoreText(r.Unseen.PSNR.Value, "%.2f"), r.Unseen.Owned, r.Unseen.Targets, scoreText(r.Unseen.Reconstruction.Value, "%.2f"))
	} else if h.NoRecombination != "" {
		fmt.Fprintln(env.out, h.NoRecombination)
	}
	fmt.Fprintln(env.out)
}

// printPart is what was measured on one part of a dataset, or why it was not.
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

// printFaithfulness says whether the model is an HRR, with what a true one has.
func printFaithfulness(env environment, f model.Faithfulness) {
	fmt.Fprintf(env.out, "is it an HRR? of a true one in brackets, over %d images\n", f.Images)
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
	}{{"on z", n.Curve}, {"on ẑ, decoded as it is", n.BundleRaw}, {"on ẑ, cleaned up", n.BundleClean}} {
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
	fmt.Fprintf(env.out, "swaps against the truth  groups %s, single slots %s, coverage %s; %d pairs\n", shareText(s.Group), shareText(s.Single), scoreText(s.Coverage, "%.2f"), s.Pairs)
	for _, g := range s.Groups {
		fmt.Fprintf(env.out, "  %s, slots %v: %s", oneLine(factors[g.Factor]), g.Slots, shareText(g.Hits))
		if g.LeaksMost >= 0 {
			fmt.Fprintf(env.out, "; leaks into %s in %.0f%% of pairs", oneLine(factors[g.LeaksMost]), 100*float64(g.Leak[g.LeaksMost]))
		}
		fmt.Fprintln(env.out)
	}
}

// shareText is a share in percent with its interval.
func shareText(i model.Interval) string {
	if !i.Value.Defined() {
		return "–"
	}
	return fmt.Sprintf("%.1f%% (%.1f to %.1f)", 100*float64(i.Value), 100*float64(i.Low), 100*float64(i.High))
}

func printSwap(env environment, s model.Swap, factors []string) {
	fmt.Fprintf(env.out, "swaps  %s change the slot's own factor alone, %s nothing, %s other factors; %d edits of %d pairs\n",
		shareText(s.Exact), shareText(s.None), shareText(s.Others), s.Edits, s.Pairs)
	fmt.Fprintf(env.out, "read by a probe, right on images that it did not see:")
	for i, a := range s.ProbeAccuracy {
		fmt.Fprintf(env.out, "  %s %.1f%%", oneLine(factors[i]), 100*a)
	}
	fmt.Fprintln(env.out)
}
