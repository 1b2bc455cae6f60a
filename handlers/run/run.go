// Package run answers the list of runs, the form that starts one, the page of a run, its API and its socket.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	ui "slotscope/views/run"
)

// Runs are the pages, the API and the socket of training runs.
type Runs struct {
	Service  handlers.RunService
	Datasets handlers.DatasetList
	Places   handlers.Placer // nil where there is no choice
	// Evaluations measures runs that are chosen in the list; nil where none can be started from here.
	Evaluations handlers.EvaluationService
	// Bundles gathers what a checkpoint is exported with; nil where nothing is exported.
	Bundles Bundler
}

// Routes enters /runs, /api/runs and /ws/runs.
func (h Runs) Routes(r chi.Router) {
	r.Get("/runs", handlers.Handle(h.list))
	r.Post("/runs", handlers.Handle(h.create))
	r.Get("/runs/new", handlers.Handle(h.form))
	r.Post("/runs/evaluate", handlers.Handle(h.evaluate))
	r.Get("/runs/{id}", handlers.Handle(h.show))
	r.Post("/runs/{id}/stop", handlers.Handle(h.act("stop", func(r *http.Request, id string) error { return h.Service.Stop(r.Context(), id) })))
	r.Post("/runs/{id}/resume", handlers.Handle(h.act("resume", h.resume)))
	r.Post("/runs/{id}/edit", handlers.Handle(h.act("edit", h.edit)))
	r.Post("/runs/{id}/delete", handlers.Handle(h.actThen("delete", h.delete, func(string) string { return "/runs" })))
	r.Get("/runs/{id}/overview", handlers.Handle(h.overview))
	r.Get("/ws/runs/{id}", h.socket)
	h.apiRoutes(r)
}

// list draws the table of runs; ?q= filters by words, ?live=1 keeps live ones, ?sort= orders, a leading "-" downwards.
func (h Runs) list(w http.ResponseWriter, r *http.Request) error {
	runs, err := h.Service.List(r.Context())
	if err != nil {
		return err
	}
	q := r.URL.Query()
	view := ui.RunsView{Total: len(runs), Query: strings.TrimSpace(q.Get("q")), LiveOnly: q.Get("live") != "", Sort: q.Get("sort"), Now: time.Now()}
	if !ui.ValidRunSort(view.Sort) {
		view.Sort = ui.DefaultRunSort
	}
	for _, run := range runs {
		if matches(run, view.Query) && (!view.LiveOnly || !run.State.Ended()) {
			row := ui.RunRow{Run: run, PSNR: h.lastOf(r.Context(), run.ID, "psnr/eval")}
			if h.Evaluations != nil {
				row.Evaluation = h.Evaluations.State(run.ID)
			}
			view.Rows = append(view.Rows, row)
		}
	}
	view.CanEvaluate = h.Evaluations != nil
	sortRows(view.Rows, view.Sort)
	if p, ok := h.Service.(interface{ Problems() []string }); ok {
		view.Problems = p.Problems()
	}
	return handlers.Draw(w, r, ui.Runs(view))
}

// matches says whether every word of query occurs in what the table shows of the run.
func matches(run model.Run, query string) bool {
	c := run.Config
	text := strings.ToLower(strings.Join([]string{run.Name, run.ID, string(run.State), c.Model, c.Dataset, c.Preset, run.Engine, run.Notes}, " "))
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// lastOf is the newest value of one series, nil while it has none; a list is shown without it rather than not at all.
func (h Runs) lastOf(ctx context.Context, id, name string) *float64 {
	page, err := h.Service.Points(ctx, id, model.PointQuery{Names: []string{name}, Columns: 1})
	if err != nil || len(page.Series[name]) == 0 {
		return nil
	}
	s := page.Series[name]
	return &s[len(s)-1].Value
}

var runOrder = map[string]func(a, b ui.RunRow) int{
	"state": func(a, b ui.RunRow) int { return cmp.Compare(stateRank(a.Run.State), stateRank(b.Run.State)) },
	"name": func(a, b ui.RunRow) int {
		return cmp.Compare(strings.ToLower(a.Run.Name), strings.ToLower(b.Run.Name))
	},
	"model":   func(a, b ui.RunRow) int { return cmp.Compare(a.Run.Config.Model, b.Run.Config.Model) },
	"dataset": func(a, b ui.RunRow) int { return cmp.Compare(a.Run.Config.Dataset, b.Run.Config.Dataset) },
	"preset":  func(a, b ui.RunRow) int { return cmp.Compare(a.Run.Config.D, b.Run.Config.D) },
	"step":    func(a, b ui.RunRow) int { return cmp.Compare(a.Run.Step, b.Run.Step) },
	"rate":    func(a, b ui.RunRow) int { return cmp.Compare(a.Run.ImagesPerSecond, b.Run.ImagesPerSecond) },
	"left":    func(a, b ui.RunRow) int { return cmp.Compare(a.Run.SecondsLeft, b.Run.SecondsLeft) },
	"psnr":    func(a, b ui.RunRow) int { return cmp.Compare(orZero(a.PSNR), orZero(b.PSNR)) },
	"created": func(a, b ui.RunRow) int { return a.Run.Created.Compare(b.Run.Created) },
}

func sortRows(rows []ui.RunRow, by string) {
	key, down := strings.CutPrefix(by, "-")
	order := runOrder[key]
	slices.SortStableFunc(rows, func(a, b ui.RunRow) int {
		c := order(a, b)
		if down {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(b.Run.ID, a.Run.ID))
	})
}

func stateRank(s model.State) int {
	return slices.Index([]model.State{model.Running, model.Stopping, model.Queued, model.Failed, model.Interrupted, model.Stopped, model.Finished}, s)
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// show draws the page of one run.
func (h Runs) show(w http.ResponseWriter, r *http.Request) error {
	return h.page(w, r, http.StatusOK, ui.Trouble{})
}

// page draws the page of one run, with the dialog open in which something was refused.
func (h Runs) page(w http.ResponseWriter, r *http.Request, status int, trouble ui.Trouble) error {
	ctx, id := r.Context(), chi.URLParam(r, "id")
	run, err := h.Service.Get(ctx, id)
	if err != nil {
		return err
	}
	view := ui.RunView{Run: run, Now: time.Now(), Trouble: trouble}
	if info, err := handlers.InfoOf(ctx, h.Datasets, run.Config.Dataset); err == nil {
		view.Pixels = info.H * info.W * info.C
	}
	if view.PSNR, err = h.newestSample(ctx, id, "psnr/eval"); err != nil {
		return err
	}
	if view.Overview, err = h.overviewOf(ctx, run); err != nil {
		return err
	}
	var damaged model.Invalid
	if view.Checkpoints, err = h.Service.Checkpoints(ctx, id); errors.As(err, &damaged) {
		return handlers.DrawStatus(w, r, status, ui.Run(view)) // which says why, and lets the folder be deleted
	}
	if err != nil {
		return err
	}
	if _, view.Samples, err = h.Service.Sample(ctx, id, 0); err != nil {
		return err
	}
	if view.Log, err = h.Service.Log(ctx, id, logLines); err != nil {
		return err
	}
	return handlers.DrawStatus(w, r, status, ui.Run(view))
}

// newestSample is the newest value of a series with its step, the zero Sample while there is none.
func (h Runs) newestSample(ctx context.Context, id, name string) (s model.Sample, err error) {
	page, err := h.Service.Points(ctx, id, model.PointQuery{Names: []string{name}, Columns: 1})
	if n := len(page.Series[name]); n > 0 {
		s = page.Series[name][n-1]
	}
	return s, err
}

// logLines is how much of a log the page shows.
const logLines = 200

// act does something to a run, then shows it. What is refused stays in its dialog, with the reason and what was typed.
func (h Runs) act(dialog string, do func(r *http.Request, id string) error) handlers.Func {
	return h.actThen(dialog, do, func(id string) string { return "/runs/" + id })
}

func (h Runs) actThen(dialog string, do func(r *http.Request, id string) error, next func(id string) string) handlers.Func {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := chi.URLParam(r, "id")
		if err := handlers.ReadForm(w, r); err != nil {
			return err
		}
		if err := do(r, id); err != nil {
			return h.refused(w, r, dialog, err)
		}
		http.Redirect(w, r, next(id), http.StatusSeeOther)
		return nil
	}
}

// refused answers an action that the run's state or the entries do not allow.
func (h Runs) refused(w http.ResponseWriter, r *http.Request, dialog string, why error) error {
	trouble := ui.Trouble{Dialog: dialog, Steps: r.PostFormValue("steps"), Name: formValue(r, "name"), Notes: formValue(r, "notes")}
	var invalid model.Invalid
	switch {
	case errors.As(why, &invalid):
		trouble.Text = handlers.Sentence(invalid.Error())
		return h.page(w, r, http.StatusUnprocessableEntity, trouble)
	case errors.Is(why, model.ErrConflict):
		trouble.Text = handlers.ErrorText(why)
		return h.page(w, r, http.StatusConflict, trouble)
	}
	return why
}

func (h Runs) resume(r *http.Request, id string) error {
	steps, err := handlers.StepsOf(r.PostFormValue("steps"))
	if err != nil {
		return err
	}
	return h.Service.Resume(r.Context(), id, steps)
}

func (h Runs) edit(r *http.Request, id string) error {
	return h.describe(r.Context(), id, formValue(r, "name"), formValue(r, "notes"))
}

// Limits of what people write about a run, in bytes.
const (
	nameSize  = 200
	notesSize = 64 << 10
)

// describe changes name and notes; nil leaves one as it is.
func (h Runs) describe(ctx context.Context, id string, name, notes *string) error {
	bad := model.Invalid{}
	if name != nil && len(*name) > nameSize {
		bad["name"] = fmt.Sprintf("has %d bytes; %d are the most", len(*name), nameSize)
	}
	if notes != nil && len(*notes) > notesSize {
		bad["notes"] = fmt.Sprintf("have %d bytes; %d are the most", len(*notes), notesSize)
	}
	if err := bad.OrNil(); err != nil {
		return err
	}
	if name != nil {
		if err := h.Service.Rename(ctx, id, strings.TrimSpace(*name)); err != nil {
			return err
		}
	}
	if notes != nil {
		return h.Service.Annotate(ctx, id, *notes)
	}
	return nil
}

func formValue(r *http.Request, name string) *string {
	if !r.PostForm.Has(name) {
		return nil
	}
	v := r.PostForm.Get(name)
	return &v
}

func (h Runs) delete(r *http.Request, id string) error { return h.Service.Delete(r.Context(), id) }

// evaluate queues an evaluation of every run that was chosen in the list. One that is being evaluated already is left as it is.
func (h Runs) evaluate(w http.ResponseWriter, r *http.Request) error {
	if h.Evaluations == nil {
		return fmt.Errorf("evaluations are not started from here: %w", model.ErrConflict)
	}
	if err := handlers.ReadForm(w, r); err != nil {
		return err
	}
	ask := model.Evaluation{Effort: cmp.Or(r.PostFormValue("effort"), model.Full)}
	bad := model.Invalid{}
	if !slices.Contains(model.EffortNames(), ask.Effort) {
		bad["effort"] = fmt.Sprintf("%q is not one of %s", ask.Effort, strings.Join(model.EffortNames(), ", "))
	}
	if len(r.PostForm["run"]) == 0 {
		bad["run"] = "no run is selected; select at least one"
	}
	if err := bad.OrNil(); err != nil {
		return err
	}
	for _, id := range r.PostForm["run"] {
		if err := h.Evaluations.Queue(r.Context(), id, ask); err != nil && !h.Evaluations.State(id).Under() {
			return err
		}
	}
	http.Redirect(w, r, "/runs", http.StatusSeeOther)
	return nil
}
