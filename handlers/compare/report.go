package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/bundle"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/measure/metric/input"
	"slotscope/model/measure/report"
	"slotscope/model/play"
	"slotscope/model/sweep"
	"slotscope/views"
	ui "slotscope/views/compare"
)

// PairService decodes two images of a run's dataset with its newest checkpoint; play.Library implements it.
type PairService interface {
	Pair(ctx context.Context, run string, a, b int) (play.Pair, error)
	Set(ctx context.Context, dataset string) (data.Set, error)
}

// SweepReader finds a sweep with its runs; the error wraps model.ErrNotFound if there is none.
type SweepReader interface {
	Get(ctx context.Context, id string) (sweep.Status, error)
}

// Bundler packs a run's newest checkpoint with its metadata; bundle.Source implements it.
type Bundler interface {
	Check(name string) error // returns why no bundle can be made
	Bundle(ctx context.Context, name string) (bundle.Bundle, error)
}

// Reports serves the pages and downloads of results: the comparison of runs, and the report of runs or of a sweep.
type Reports struct {
	Runs interface {
		handlers.RunReader
		handlers.RunSeries
		handlers.RunFiles
		handlers.RunNews
	}
	Scores handlers.ScoreService
	Sweeps SweepReader           // nil if there are none
	Pairs  PairService           // nil for reports without swap images
	Noise  handlers.NoiseService // nil for reports without noise images
	// Bundles packs models for other programs; nil for reports without them.
	Bundles Bundler

	writings *writings
}

// Routes registers the routes of /compare and /report, their API and their socket.
func (h Reports) Routes(r chi.Router) {
	h.writings = &writings{}
	r.Get("/report", handlers.Handle(h.page))
	r.Get("/api/report/{file}", handlers.Handle(h.file))
	r.Get("/api/report/progress/{name}", handlers.Handle(h.writings.answer))
	r.Get("/compare", handlers.Handle(h.compare))
	r.Get("/compare/figures/{file}", handlers.Handle(h.figure))
	r.Get("/api/compare/curves", handlers.Handle(h.curves))
	r.Get("/ws/compare", h.socket)
}

// maxRuns is the most runs that a URL may name; a sweep may have more.
const maxRuns = 200

// choice is the runs named in a URL and how they are shown.
type choice struct {
	runs  []string
	sweep string
	rule  report.Rule

	bundles bool // include the models
}

// readChoice reads runs (repeated, or joined by commas), sweep, rule and bundles.
func readChoice(q url.Values) (choice, error) {
	c := choice{sweep: q.Get("sweep"), rule: report.Rule(cmp.Or(q.Get("rule"), string(report.PaperRule)))}
	for _, text := range q["runs"] {
		for _, id := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(c.runs, id) {
				c.runs = append(c.runs, id)
			}
		}
	}
	bad := model.Invalid{}
	switch text := q.Get("bundles"); text {
	case "true":
		c.bundles = true
	case "", "false":
	default:
		bad["bundles"] = fmt.Sprintf("%.80q is not a boolean; use true or false", text)
	}
	if len(c.runs) > maxRuns {
		bad["runs"] = fmt.Sprintf("%d runs requested; the limit is %d", len(c.runs), maxRuns)
	}
	if len(c.runs) > 0 && c.sweep != "" {
		bad["sweep"] = "name runs or a sweep, not both"
	}
	if !slices.Contains(report.Rules(), c.rule) {
		bad["rule"] = fmt.Sprintf("%q is not a rule for bold; use paper, overlap or none", c.rule)
	}
	return c, bad.OrNil()
}

// query returns the choice as URL parameters.
func (c choice) query() url.Values {
	q := url.Values{}
	if c.sweep != "" {
		q.Set("sweep", c.sweep)
	}
	if len(c.runs) > 0 {
		q.Set("runs", strings.Join(c.runs, ","))
	}
	if c.rule != report.PaperRule {
		q.Set("rule", string(c.rule))
	}
	return q
}

func (c choice) empty() bool { return len(c.runs) == 0 && c.sweep == "" }

// report makes the report of a choice.
func (h Reports) report(ctx context.Context, c choice) (*report.Report, error) {
	in, err := h.input(ctx, c)
	if err != nil {
		return nil, err
	}
	in.Rule = c.rule
	if c.bundles {
		if err := h.addBundles(ctx, in); err != nil {
			return nil, err
		}
	}
	return report.New(in)
}

// addBundles adds the models of the runs that have one. An unreadable model is an error before anything is sent.
func (h Reports) addBundles(ctx context.Context, in report.Input) error {
	for _, part := range in.Parts {
		for i, e := range part.Entries {
			if !h.hasBundle(e) {
				continue
			}
			if err := h.Bundles.Check(e.Run.ID); err != nil {
				return noBundle(e.Run.ID, err)
			}
			part.Entries[i].Bundle = func(w io.Writer) error {
				b, err := h.Bundles.Bundle(ctx, e.Run.ID)
				if err == nil {
					_, err = b.WriteZip(w, e.Run.ID)
				}
				return err
			}
		}
	}
	return nil
}

// noBundle adds the run's ID to an error of its model.
func noBundle(id string, err error) error {
	var invalid model.Invalid
	if errors.As(err, &invalid) {
		return model.Invalid{"bundles": fmt.Sprintf("the model of run %s cannot be written: %s", id, strings.Join(slices.Sorted(maps.Values(invalid)), "; "))}
	}
	return fmt.Errorf("the model of run %s: %w", id, err)
}

func (h Reports) hasBundle(e report.Entry) bool {
	return h.Bundles != nil && e.Run.Checkpoint > 0 && e.Run.Config.Model != model.External
}

func (h Reports) input(ctx context.Context, c choice) (report.Input, error) {
	if c.sweep != "" {
		return h.ofSweep(ctx, c.sweep)
	}
	part := report.Part{}
	for _, id := range c.runs {
		e, err := h.entry(ctx, id)
		if err != nil {
			return report.Input{}, err
		}
		part.Entries = append(part.Entries, e)
	}
	title := views.Plural(len(part.Entries), "run", "runs")
	if len(part.Entries) == 1 {
		title = views.RunName(part.Entries[0].Run)
	}
	return report.Input{Title: title, Parts: []report.Part{part}, Again: report.AgainOf(c.runs...)}, nil
}

func (h Reports) ofSweep(ctx context.Context, id string) (report.Input, error) {
	if h.Sweeps == nil {
		return report.Input{}, fmt.Errorf("sweep %q: %w", id, model.ErrNotFound)
	}
	s, err := h.Sweeps.Get(ctx, id)
	if err != nil {
		return report.Input{}, err
	}
	var failed error
	in := report.OfSweep(s.Board, func(id string) (report.Entry, bool) {
		e, err := h.entry(ctx, id)
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			failed = err
		}
		return e, err == nil
	})
	in.Again = report.AgainOf(id)
	if len(in.Parts) == 0 && failed == nil {
		failed = fmt.Errorf("sweep %s has no runs to report yet; see its page for progress: %w", id, model.ErrConflict)
	}
	return in, failed
}

// entry returns a run for a report; points and reconstructions are read on demand.
func (h Reports) entry(ctx context.Context, id string) (report.Entry, error) {
	run, err := h.Runs.Get(ctx, id)
	if err != nil {
		return report.Entry{}, err
	}
	e := h.drawn(ctx, run)
	e.Sheet = func() ([]byte, error) { return h.sheet(ctx, id) }
	if h.Noise != nil {
		e.Noisy = func() (image.Image, error) { return report.OpenSheet(h.Noise.NoiseSheet(ctx, id)) }
	}
	if files, ok := h.Runs.(interface {
		EvaluationFile(ctx context.Context, id, name string) (string, error)
	}); ok {
		e.Agreement = func() (*report.Latents, error) {
			return input.Kept(files.EvaluationFile(ctx, id, folder.AgreementFile))
		}
	}
	if h.Pairs != nil && run.Checkpoint > 0 {
		e.Pair = func(a, b int) (report.Pair, error) {
			p, err := h.Pairs.Pair(ctx, id, a, b)
			return report.Pair(p), err
		}
		e.Between = func() (a, b int, err error) {
			set, err := h.Pairs.Set(ctx, run.Config.Dataset)
			if err == nil {
				a, b = play.GoodPair(set)
			}
			return a, b, err
		}
	}
	if e.Lost, err = h.Runs.DamagedPoints(ctx, id); err != nil && ctx.Err() != nil {
		return e, err
	}
	scores, err := h.Scores.Scores(ctx, id)
	switch {
	case err == nil:
		e.Scores = &scores
	case ctx.Err() != nil:
		return e, err
	case !errors.Is(err, model.ErrNotFound):
		e.Damage = report.Damage
	}
	return e, nil
}

// drawn returns an entry of a run with only its points.
func (h Reports) drawn(ctx context.Context, run model.Run) report.Entry {
	return report.Entry{Run: run,
		Points:  func(names []string, yield func(model.Point) error) error { return h.walk(ctx, run.ID, names, yield) },
		Samples: func(name string) ([]model.Sample, error) { return h.samples(ctx, run, name) },
		Pages:   func(yield func(map[string][]model.Sample) error) error { return h.pages(ctx, run.ID, nil, yield) },
		Names:   func() ([]string, error) { return h.names(ctx, run.ID) }}
}

// names lists the series of a run.
func (h Reports) names(ctx context.Context, id string) ([]string, error) {
	page, err := h.Runs.Points(ctx, id, model.PointQuery{Columns: 1})
	return slices.Collect(maps.Keys(page.Series)), err
}

// samples reads a whole series.
func (h Reports) samples(ctx context.Context, run model.Run, name string) (all []model.Sample, err error) {
	err = h.Runs.Walk(ctx, run.ID, []string{name}, 0, func(_ string, block []model.Sample) {
		if all == nil && len(block) > 1 { // size it by the density of the first block
			all = make([]model.Sample, 0, len(block)*(run.Step/max(1, block[len(block)-1].Step)+2))
		}
		all = append(all, block...)
	})
	return all, err
}

// outline returns the report of a choice without scores: its runs come from the index, which suffices to group them. Sweeps, and
// services without an index, get the full report.
func (h Reports) outline(ctx context.Context, c choice) (*report.Report, error) {
	if _, ok := h.Runs.(lister); !ok || c.sweep != "" {
		return h.report(ctx, c)
	}
	all, err := h.overviews(ctx, c)
	if err != nil {
		return nil, err
	}
	part := report.Part{}
	for _, o := range all {
		e := h.drawn(ctx, o.Run)
		if step, scored := o.Scores[report.StepKey]; scored {
			e.Scores = &model.Scores{Step: int(step)}
		}
		part.Entries = append(part.Entries, e)
	}
	return report.New(report.Input{Parts: []report.Part{part}, Rule: c.rule})
}

// walk yields stored points one by one.
func (h Reports) walk(ctx context.Context, id string, names []string, yield func(model.Point) error) error {
	return h.pages(ctx, id, names, func(series map[string][]model.Sample) error {
		for _, p := range pointsOf(series) {
			if err := yield(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// pages yields stored series, a span of steps at a time.
func (h Reports) pages(ctx context.Context, id string, names []string, yield func(map[string][]model.Sample) error) error {
	for since := 0; ; {
		page, err := h.Runs.Points(ctx, id, model.PointQuery{Since: since, Names: names, Limit: handlers.RawSteps})
		if err != nil {
			return err
		}
		if err := yield(page.Series); err != nil {
			return err
		}
		if page.Last <= since || page.Last >= page.Head {
			return nil
		}
		since = page.Last
	}
}

// pointsOf converts series to points in ascending order of steps.
func pointsOf(series map[string][]model.Sample) []model.Point {
	byStep := map[int]map[string]float64{}
	for name, samples := range series {
		for _, s := range samples {
			if byStep[s.Step] == nil {
				byStep[s.Step] = map[string]float64{}
			}
			byStep[s.Step][name] = s.Value
		}
	}
	points := make([]model.Point, 0, len(byStep))
	for _, step := range slices.Sorted(maps.Keys(byStep)) {
		points = append(points, model.Point{Step: step, Values: byStep[step]})
	}
	return points
}

func (h Reports) sheet(ctx context.Context, id string) ([]byte, error) {
	path, _, err := h.Runs.Sample(ctx, id, 0)
	if err != nil || path == "" {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // deleted in the meantime
	}
	return raw, err
}

// page draws the report page: downloads and tables.
func (h Reports) page(w http.ResponseWriter, r *http.Request) error {
	c, err := readChoice(r.URL.Query())
	if err != nil {
		return err
	}
	if c.empty() {
		http.Redirect(w, r, "/compare", http.StatusSeeOther)
		return nil
	}
	rep, err := h.report(r.Context(), c)
	if err != nil {
		return err
	}
	view := ui.ReportView{Title: rep.Title, Query: c.query().Encode(), Sections: SectionViews(rep), Left: leftViews(rep), Notes: rep.Notes(), Rule: string(c.rule), Fields: hiddenFields(c)}
	for _, f := range rep.Files() {
		view.Files = append(view.Files, ui.ReportFile{Name: f.Name, About: f.About})
	}
	view.Files = append(view.Files, ui.Archives(report.SumsName, archiveName)...)
	for _, e := range rep.Runs {
		if h.hasBundle(e) {
			view.Models++
		}
	}
	return handlers.Draw(w, r, ui.Report(view))
}

const archiveName = "report.zip"

// file sends one file of a report.
func (h Reports) file(w http.ResponseWriter, r *http.Request) error {
	c, err := readChoice(r.URL.Query())
	if err != nil {
		return err
	}
	if c.empty() {
		return model.Invalid{"runs": "missing; name runs (?runs=ID,ID) or a sweep (?sweep=ID)"}
	}
	rep, err := h.report(r.Context(), c)
	if err != nil {
		return err
	}
	f, err := fileOf(rep, chi.URLParam(r, "file"))
	if err != nil {
		return err
	}
	end, err := h.writings.follow(r.URL.Query().Get("progress"), f.Name, rep)
	if err != nil {
		return err
	}
	err = fmt.Errorf("%s was not written completely", f.Name) // remains if sendWritten panics
	defer func() { end(err) }()
	rep.Begin(f.Name, 1, 1)
	err = sendWritten(w, f)
	return err
}

func fileOf(rep *report.Report, name string) (report.File, error) {
	switch name {
	case archiveName:
		return report.File{Name: name, Type: "application/zip", Write: rep.Zip}, nil
	case report.SumsName:
		return report.File{Name: name, Type: "text/plain; charset=utf-8", Write: rep.Sums}, nil
	}
	return rep.File(name)
}

// sendWritten streams a file. Errors before the first byte are returned as usual; after it, sendWritten aborts the connection, so
// that no client mistakes a part for the whole.
func sendWritten(w http.ResponseWriter, f report.File) error {
	handlers.AsFile(w, f.Name)
	w.Header().Set("Content-Type", f.Type)
	w.Header().Set("Cache-Control", "no-cache")
	out := &begun{ResponseWriter: w}
	err := f.Write(out)
	if err == nil {
		return nil
	}
	if !out.yes {
		for _, name := range []string{"Content-Type", "Content-Disposition"} {
			w.Header().Del(name)
		}
		return err
	}
	panic(http.ErrAbortHandler)
}

// begun records whether anything was sent.
type begun struct {
	http.ResponseWriter
	yes bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.ResponseWriter.Write(p)
}

// hiddenFields returns a choice as hidden form fields.
func hiddenFields(c choice) map[string]string {
	out := map[string]string{}
	for name, values := range c.query() {
		if name != "rule" {
			out[name] = values[0]
		}
	}
	return out
}
