package command

import (
	"context"
	"errors"
	"fmt"

	"slotscope/model"
	"slotscope/model/bundle"
	"slotscope/model/compute"
	"slotscope/model/learn/evaluate"
)

type verifyCommand struct {
	Bundle    string  `arg:"" help:"folder or archive written by slotscope export"`
	Engine    string  `default:"auto" enum:"${engines}" placeholder:"NAME" help:"compute engine"`
	Tolerance float64 `default:"1e-6" placeholder:"N" help:"largest relative difference allowed in a score; engines and processors round differently"`
	Scores    bool    `default:"true" negatable:"" help:"measure the scores again; otherwise check only checksums and examples"`
	dataFlag
	jsonFlag
}

// Run checks the checksums of a bundle, re-encodes its examples, measures its scores again and compares them.
func (c *verifyCommand) Run(ctx context.Context, env environment) error {
	o, closer, err := bundle.Open(c.Bundle)
	if err != nil {
		return err
	}
	defer closer.Close()
	measured, err := remeasure(ctx, env, o, c.Engine, c.Data, c.Scores, c.Tolerance)
	if err != nil {
		return err
	}
	return tellVerified(env, c.Bundle, o, measured, c.JSON)
}

// remeasure checks the examples and scores of a bundle and adds the differences to its problems.
func remeasure(ctx context.Context, env environment, o *bundle.Opened, engine, dataDir string, scores bool, tolerance float64) (measured *model.Scores, err error) {
	examples, err := compute.OpenFor(exactly(o.File.Config, engine))
	if err != nil {
		return nil, fmt.Errorf("opening engine %q: %w", engine, err)
	}
	if err := o.CheckExamples(examples); err != nil {
		return nil, err
	}
	if !scores || o.Scores == nil {
		return nil, nil
	}
	w := evalWork{env: env, o: optionsOf(*o.Scores), effort: o.Scores.Effort, engine: engine, dataDir: dataDir, heldOut: o.Scores.HeldOut != nil}
	w.useProbes()
	if w.o.Reader = o.Probe; o.Probe == nil && w.o.Probe > 0 {
		fmt.Fprintln(env.err, "The bundle does not contain the probe used for its scores; using the data folder's probe, or training one.")
	}
	bar := newProgress(env.err)
	w.o.Progress = bar.show
	r, err := w.evaluateFile(ctx, "the bundle", o.File)
	bar.end()
	if err != nil {
		return nil, err
	}
	return &r.Scores, o.CompareScores(r.Scores, tolerance)
}

// optionsOf returns the options with which recorded scores were measured.
func optionsOf(s model.Scores) evaluate.Options {
	o := evaluate.Default(s.Seed)
	o.Images, o.Noise, o.Pairs = s.Images, 0, 0
	read := false
	if s.Noise != nil {
		o.Noise, read = s.Noise.Images, s.Noise.Accuracy != nil
	}
	if s.Swap != nil {
		o.Pairs, read = s.Swap.Pairs, true
	}
	if s.SwapTruth != nil {
		o.Pairs = max(o.Pairs, s.SwapTruth.Pairs)
	}
	o.Agree = 0 // images for comparing runs are not part of the scores
	switch {
	case !read:
		o.Probe = 0
	case s.Options != nil:
		o.Probe = s.Options.Probe
	}
	if s.Metrics != nil {
		o.Trees = s.Metrics.DCI.Trees
	}
	return o
}

var errDiffers = errors.New("the bundle does not match its measurements")

func tellVerified(env environment, name string, o *bundle.Opened, measured *model.Scores, asJSON bool) error {
	if asJSON {
		problems := o.Problems
		if problems == nil {
			problems = []bundle.Problem{}
		}
		if err := printJSON(env.out, map[string]any{"bundle": name, "ok": len(problems) == 0, "problems": problems, "notes": append([]string{}, o.Notes...), "measured": measured}); err != nil {
			return err
		}
	} else {
		for _, p := range o.Problems {
			fmt.Fprintln(env.out, p)
		}
		for _, note := range o.Notes {
			fmt.Fprintln(env.out, note)
		}
	}
	if n := len(o.Problems); n > 0 {
		return fmt.Errorf("%s: %d differences, first: %s: %w", name, n, o.Problems[0], errDiffers)
	}
	if !asJSON {
		what := "checksums, examples and scores match"
		if measured == nil {
			what = "checksums and examples match; scores were not measured"
		}
		fmt.Fprintf(env.out, "%s: %s\n", name, what)
	}
	return nil
}
