// Package measure serves the page of a run's evaluation and the page that measures uploaded files.
package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/measure/figure"
	"slotscope/model/measure/report"
	"slotscope/model/play"
	"slotscope/views"
	ui "slotscope/views/measure"
)

// Measure serves the page of a run's evaluation: which slot holds which factor, and how well.
type Measure struct {
	Runs interface {
		handlers.RunReader
		handlers.RunSeries
	}
	Datasets    handlers.DatasetList
	Scores      handlers.ScoreService
	Noise       handlers.NoiseService      // nil to show no images
	Evaluations handlers.EvaluationService // nil to disable starting evaluations
	Names       NameService                // nil if slots have no user-given names
}

// NameService returns the user-given names of a run's slots and codes.
type NameService interface {
	NamesOf(run string) (play.Names, error)
}

// Routes registers /runs/{id}/measure, its figures, and /api/runs/{id}/scores.
func (h Measure) Routes(r chi.Router) {
	r.Get("/runs/{id}/measure", handlers.Handle(h.page))
	r.Post("/runs/{id}/measure", handlers.Handle(h.start))
	r.Post("/runs/{id}/measure/cancel", handlers.Handle(h.cancel))
	r.Get("/runs/{id}/measure/{file}", handlers.Handle(h.file))
	r.Get("/api/runs/{id}/scores", handlers.Handle(h.api))
}

// measured is the data of the page.
type measured struct {
	run     model.Run
	scores  *model.Scores // nil before the first
	factors []data.Factor // of the run's dataset; empty if it is not available
	series  map[string][]model.Sample
	damage  string      // which part of the evaluation cannot be read, a sentence; empty if none
	called  play.Names  // user-given names
	noisy   image.Image // images under noise, one row each; nil if none
}

func (h Measure) read(ctx context.Context, id string) (measured, error) {
	run, err := h.Runs.Get(ctx, id)
	if err != nil {
		return measured{}, err
	}
	m := measured{run: run}
	for _, info := range h.Datasets.List(ctx) {
		if info.Name == run.Config.Dataset {
			m.factors = info.Factors
		}
	}
	page, err := h.Runs.Points(ctx, id, model.PointQuery{Names: overTraining, Columns: trainingColumns})
	if err != nil {
		return m, err
	}
	m.series = page.Series
	scores, err := h.Scores.Scores(ctx, id)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return m, nil
	case errors.As(err, new(model.Invalid)): // damaged; the page offers an evaluation that replaces them
		m.damage = handlers.SentenceOf(err)
		return m, nil
	case err != nil:
		return m, fmt.Errorf("reading the scores of run %s: %w", id, err)
	}
	m.scores = &scores
	if h.Names != nil {
		if m.called, err = h.Names.NamesOf(id); err != nil {
			m.damage = handlers.SentenceOf(err)
		}
	}
	if h.Noise != nil && scores.Noise != nil {
		if m.noisy, err = report.OpenSheet(h.Noise.NoiseSheet(ctx, id)); err != nil {
			m.damage = handlers.Sentence("cannot read the images under noise: " + err.Error())
		}
	}
	return m, nil
}

func (h Measure) page(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	m, err := h.read(r.Context(), id)
	if err != nil {
		return err
	}
	var state model.Evaluation
	if h.Evaluations != nil {
		state = h.Evaluations.State(id)
	}
	return handlers.Draw(w, r, ui.Measure(m.view(state, h.Evaluations != nil)))
}

// start queues a background evaluation with the form's effort and redirects to the page, which follows it.
func (h Measure) start(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if h.Evaluations == nil {
		return fmt.Errorf("evaluations cannot be started from this page: %w", model.ErrConflict)
	}
	run, err := h.Runs.Get(r.Context(), id)
	if err != nil {
		return err
	}
	if run.Checkpoint == 0 {
		return fmt.Errorf("run %s has no checkpoint to evaluate yet: %w", cmp.Or(run.Name, id), model.ErrConflict)
	}
	ask := model.Evaluation{Effort: cmp.Or(r.PostFormValue("effort"), model.Full), Now: r.PostFormValue("now") != ""}
	if !slices.Contains(model.EffortNames(), ask.Effort) {
		return model.Invalid{"effort": fmt.Sprintf("%q is not one of %s", ask.Effort, strings.Join(model.EffortNames(), ", "))}
	}
	if err := h.Evaluations.Queue(r.Context(), id, ask); err != nil {
		return err
	}
	http.Redirect(w, r, "/runs/"+id+"/measure", http.StatusSeeOther)
	return nil
}

// cancel removes the run's evaluation from the queue, or stops it.
func (h Measure) cancel(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if h.Evaluations == nil {
		return fmt.Errorf("evaluations cannot be started from this page: %w", model.ErrConflict)
	}
	if err := h.Evaluations.Cancel(r.Context(), id); err != nil {
		return err
	}
	http.Redirect(w, r, "/runs/"+id+"/measure", http.StatusSeeOther)
	return nil
}

// api writes the scores stored in the run's folder.
func (h Measure) api(w http.ResponseWriter, r *http.Request) error {
	scores, err := h.Scores.Scores(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, scores)
}

// file sends one figure of the page.
func (h Measure) file(w http.ResponseWriter, r *http.Request) error {
	name, kind, err := handlers.SplitFigure(chi.URLParam(r, "file"))
	if err != nil {
		return err
	}
	draw, ok := measureFigures[name]
	if !ok {
		return fmt.Errorf("unknown figure %q: %w", name, model.ErrNotFound)
	}
	m, err := h.read(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	f, ok := draw(m)
	if !ok {
		return fmt.Errorf("run %s has no data for this figure: %w", m.run.ID, model.ErrNotFound)
	}
	return handlers.SendFigure(w, r, f, kind)
}

// figureOf draws one of measureFigures for the page; none if the run lacks the data.
func (m measured) figureOf(names ...string) []views.FigureView {
	var all []views.FigureView
	for _, name := range names {
		if f, ok := measureFigures[name](m); ok {
			all = append(all, handlers.FigureView(f, "/runs/"+m.run.ID+"/measure", nil))
		}
	}
	return all
}

// valueName returns the name of a factor's value, or its number. Hues, 0 to 1 around the colour circle, get colour names too.
func (m measured) valueName(factor string, value int) string {
	for _, f := range m.factors {
		if f.Name == factor && value >= 0 && value < len(f.Values) {
			return f.Values[value] + hueName(factor, f.Values[value])
		}
	}
	return figure.Number(float64(value))
}

// hues names each tenth of the colour circle.
var hues = []string{"red", "orange", "yellow", "green", "sea green", "cyan", "blue", "indigo", "purple", "pink"}

func hueName(factor, value string) string {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !strings.HasSuffix(factor, "hue") || !(v >= 0 && v < 1) {
		return ""
	}
	return " " + hues[int(math.Round(10*v))%len(hues)]
}

// plainNames returns the display names of factors.
func plainNames(names []string) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = strings.ReplaceAll(n, "_", " ")
	}
	return all
}
