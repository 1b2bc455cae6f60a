package command

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/measure/report"
)

// mostResults is the size limit of results.json in bytes.
const mostResults = 256 << 20

type reproduceCommand struct {
	Report string `arg:"" help:"report.zip or results.json of a report"`
	Engine string `default:"auto" enum:"${engines}" placeholder:"NAME" help:"compute engine for training and evaluation"`
	Dry    bool   `help:"list the runs without training"`
	dataFlag
	jsonFlag
}

// Run retrains and re-evaluates the runs of a report with their recorded configurations and options, and compares the means of every
// group.
func (c *reproduceCommand) Run(ctx context.Context, env environment) error {
	old, err := readResults(c.Report)
	if err != nil {
		return err
	}
	if c.Dry {
		for _, r := range scored(old.Runs) {
			fmt.Fprintf(env.out, "%s  %s on %s, seed %d, %d steps; eval %s\n", r.ID, r.Config.Model, r.Config.Dataset, r.Config.Seed, r.Config.Steps, strings.Join(r.Scores.EvalFlags(), " "))
		}
		return nil
	}
	again, err := repeatRuns(ctx, env, old, c.Data, c.Engine)
	if err != nil {
		return err
	}
	verdicts, err := compareResults(old, again)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(env.out, map[string]any{"runs": runsOf(again), "compared": verdicts})
	} else {
		err = printVerdicts(env.out, verdicts)
	}
	if differ := differing(verdicts); err == nil && differ > 0 {
		err = fmt.Errorf("%d of %d means differ: their intervals do not overlap", differ, len(verdicts))
	}
	return err
}

// readResults reads the results.json of a report or of its archive.
func readResults(path string) (old report.Results, err error) {
	var in io.ReadCloser
	if archive, zipErr := zip.OpenReader(path); zipErr == nil {
		defer archive.Close()
		in, err = archive.Open("results.json")
	} else {
		in, err = os.Open(path)
	}
	if _, statErr := os.Stat(path); errors.Is(statErr, fs.ErrNotExist) {
		return old, model.Invalid{"report": "no such file: " + path}
	}
	if errors.Is(err, fs.ErrNotExist) { // in the archive
		return old, model.Invalid{"report": fmt.Sprintf("%s is not a report.zip or results.json of a report", path)}
	}
	if err != nil {
		return old, err
	}
	defer in.Close()
	body, err := io.ReadAll(io.LimitReader(in, mostResults+1))
	switch {
	case err != nil:
		return old, fmt.Errorf("reading %s: %w", path, err)
	case len(body) > mostResults:
		return old, model.Invalid{"report": fmt.Sprintf("results.json in %s is larger than %d MB", path, mostResults>>20)}
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&old); err != nil {
		return old, model.Invalid{"report": fmt.Sprintf("%s is not a report's results.json: %v", path, err)}
	}
	if old.Schema != report.Schema {
		return old, model.Invalid{"report": fmt.Sprintf("%s has format version %d; this program reads version %d", path, old.Schema, report.Schema)}
	}
	if len(scored(old.Runs)) == 0 {
		return old, model.Invalid{"report": fmt.Sprintf("no run of %s is evaluated, so there is nothing to compare", path)}
	}
	return old, nil
}

// scored returns the runs that have metrics.
func scored(runs []report.RunRecord) (all []report.RunRecord) {
	for _, r := range runs {
		if r.Scores != nil && r.Scores.Evaluated() {
			all = append(all, r)
		}
	}
	return all
}

// repeatRuns trains and evaluates each run as a new one in the data folder, and returns the new entries by old ID.
func repeatRuns(ctx context.Context, env environment, old report.Results, dataDir, engine string) (map[string]report.Entry, error) {
	root, err := folder.Root(dataDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	worker := &shellSweep{root: root, dataDir: root.Dir(), env: env, options: sweepOptions{parallelFlag: parallelFlag{1}}}
	again, all := map[string]report.Entry{}, scored(old.Runs)
	for i, r := range all {
		cfg := r.Config
		cfg.Engine, cfg.Devices = engine, 0 // this machine may have fewer
		if err := cfg.Validate().OrNil(); err != nil {
			return nil, fmt.Errorf("run %s of the report: %w", r.ID, err)
		}
		f, err := folder.Create(root.RunDir(model.NewID(time.Now())), cfg, "reproduces "+r.ID)
		if err != nil {
			return nil, err
		}
		id, dir := f.ID(), f.Dir()
		f.Close()
		fmt.Fprintf(env.err, "%d of %d: run %s reproduces %s\n", i+1, len(all), id, r.ID)
		if err := worker.process(ctx, id, nil, "train", "--run", dir, "--data", root.Dir()); err != nil {
			return nil, fmt.Errorf("training run %s again: %w", r.ID, errors.Join(err, ctx.Err()))
		}
		if err := worker.process(ctx, id, nil, append([]string{"eval", dir, "--data", root.Dir(), "--engine", engine}, r.Scores.EvalFlags()...)...); err != nil {
			return nil, fmt.Errorf("evaluating run %s again: %w", r.ID, errors.Join(err, ctx.Err()))
		}
		if again[r.ID], err = entryOf(dir); err != nil {
			return nil, err
		}
	}
	return again, nil
}

// runsOf returns the new ID of each old run.
func runsOf(again map[string]report.Entry) map[string]string {
	ids := map[string]string{}
	for id, e := range again {
		ids[id] = e.Run.ID
	}
	return ids
}

// verdict compares one metric of a group.
type verdict struct {
	Section string      `json:"section,omitempty"`
	Dataset string      `json:"dataset"`
	Label   string      `json:"label"`
	Metric  string      `json:"metric"`
	N       int         `json:"n"` // number of seeds
	Before  model.Score `json:"before"`
	Low     model.Score `json:"before_low"` // of the 95% interval of the mean; undefined for one seed
	High    model.Score `json:"before_high"`
	After   model.Score `json:"after"`
	NewLow  model.Score `json:"after_low"`
	NewHigh model.Score `json:"after_high"`
	Agrees  *bool       `json:"agrees"` // null for one seed, which has no interval
}

// compareResults compares the groups of a report with the same groups of the new runs.
func compareResults(old report.Results, again map[string]report.Entry) ([]verdict, error) {
	var all []verdict
	for _, s := range old.Sections {
		part := report.Part{Name: s.Name}
		for _, g := range s.Groups {
			for _, id := range g.Runs {
				if e, ok := again[id]; ok {
					part.Entries = append(part.Entries, e)
				}
			}
		}
		if len(part.Entries) == 0 {
			continue
		}
		r, err := report.New(report.Input{Title: old.Title, Rule: old.Rule, Parts: []report.Part{part}})
		if err != nil {
			return nil, err
		}
		groups := map[string]report.GroupRecord{}
		for _, g := range r.Results().Sections[0].Groups {
			groups[g.Dataset+"\n"+g.Label] = g
		}
		for _, g := range s.Groups {
			if now, ok := groups[g.Dataset+"\n"+g.Label]; ok {
				all = append(all, compareGroups(s.Name, g, now, old.Metrics)...)
			}
		}
	}
	return all, nil
}

func compareGroups(section string, before, after report.GroupRecord, metrics []report.MetricRecord) (all []verdict) {
	for _, m := range metrics {
		b, a := before.Scores[m.Key], after.Scores[m.Key]
		if b.N == 0 || a.N == 0 {
			continue
		}
		v := verdict{Section: section, Dataset: before.Dataset, Label: before.Label, Metric: m.Key, N: b.N, Before: b.Mean, Low: b.Low, High: b.High,
			After: a.Mean, NewLow: a.Low, NewHigh: a.High}
		if b.Low.Defined() && b.High.Defined() && a.Low.Defined() && a.High.Defined() {
			overlap := b.Low <= a.High && a.Low <= b.High
			v.Agrees = &overlap
		}
		all = append(all, v)
	}
	return all
}

func differing(all []verdict) (n int) {
	for _, v := range all {
		if v.Agrees != nil && !*v.Agrees {
			n++
		}
	}
	return n
}

func printVerdicts(w io.Writer, all []verdict) error {
	for _, v := range all {
		word := "one seed"
		if v.Agrees != nil && *v.Agrees {
			word = "agrees"
		} else if v.Agrees != nil {
			word = "differs"
		}
		if _, err := fmt.Fprintf(w, "%-9s %s on %s, %s: %s before, %s now\n", word, v.Label, v.Dataset, v.Metric, meanText(v.Before, v.Low, v.High), meanText(v.After, v.NewLow, v.NewHigh)); err != nil {
			return err
		}
	}
	return nil
}

// meanText formats a mean with its 95% interval, if there is one.
func meanText(mean, low, high model.Score) string {
	if !low.Defined() || !high.Defined() {
		return fmt.Sprintf("%.4g", float64(mean))
	}
	return fmt.Sprintf("%.4g [%.4g, %.4g]", float64(mean), float64(low), float64(high))
}
