// Package measure serves the page of a run's evaluation and the page that measures uploaded files.
package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/measure/report"
	"slotscope/model/play"
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

func (h Measure) read(ctx context.Context, id string) (ui.Measured, error) {
	run, err := h.Runs.Get(ctx, id)
	if err != nil {
		return ui.Measured{}, err
	}
	m := ui.Measured{Run: run, Values: map[string][]string{}}
	for _, info := range h.Datasets.List(ctx) {
		if info.Name == run.Config.Dataset {
			for _, f := range info.Factors {
				m.Values[f.Name] = f.Values
			}
		}
	}
	page, err := h.Runs.Points(ctx, id, model.PointQuery{Names: ui.OverTraining, Columns: ui.TrainingColumns})
	if err != nil {
		return m, err
	}
	m.Series = page.Series
	scores, err := h.Scores.Scores(ctx, id)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return m, nil
	case errors.As(err, new(model.Invalid)): // damaged; the page offers an evaluation that replaces them
		m.Damage = handlers.SentenceOf(err)
		return m, nil
	case err != nil:
		return m, fmt.Errorf("reading the scores of run %s: %w", id, err)
	}
	m.Scores = &scores
	if h.Names != nil {
		names, err := h.Names.NamesOf(id)
		if err != nil {
			m.Damage = handlers.SentenceOf(err)
		}
		m.Called = ui.Called{Slots: names.Slots, Codes: names.Codes}
	}
	if h.Noise != nil && scores.Noise != nil {
		if m.Noisy, err = report.OpenSheet(h.Noise.NoiseSheet(ctx, id)); err != nil {
			m.Damage = handlers.Sentence("cannot read the images under noise: " + err.Error())
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
	return handlers.Draw(w, r, ui.Measure(ui.NewMeasure(m, state, h.Evaluations != nil)))
}

// start queues a background evaluation with the form's effort and redirects to the page, which follows it.
func (h Measure) start(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if h.Evaluations == nil {
		return fmt.Errorf("evaluations cannot be started from this page: %w", model.ErrConflict)
	}
	ask := model.Evaluation{Effort: cmp.Or(r.PostFormValue("effort"), model.Full), Now: r.PostFormValue("now") != "", Replace: r.PostFormValue("replace") != ""}
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
	m, err := h.read(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	f, drawn, known := m.Figure(name)
	if !known {
		return fmt.Errorf("unknown figure %q: %w", name, model.ErrNotFound)
	}
	if !drawn {
		return fmt.Errorf("run %s has no data for this figure: %w", m.Run.ID, model.ErrNotFound)
	}
	return handlers.SendFigure(w, r, f, kind)
}
