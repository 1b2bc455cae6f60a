// Package run answers the form that starts a run, the page of a run, its API and its socket.
package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// Evaluations says how measuring a run stands; nil where none can be started from here.
	Evaluations handlers.EvaluationService
	// Bundles gathers what a checkpoint is exported with; nil where nothing is exported.
	Bundles Bundler
	// Folders opens runs' folders for what is answered as files; nil where nothing is.
	Folders Folders
	// Logs keeps runs that other programs log; nil where none are taken.
	Logs Logs
}

// Routes enters /runs, /api/runs and /ws/runs.
func (h Runs) Routes(r chi.Router) {
	r.Post("/runs", handlers.Handle(h.create))
	r.Get("/runs/new", handlers.Handle(h.form))
	r.Get("/runs/{id}", handlers.Handle(h.show))
	r.Post("/runs/{id}/stop", handlers.Handle(h.act("stop", func(r *http.Request, id string) error { return h.Service.Stop(r.Context(), id) })))
	r.Post("/runs/{id}/resume", handlers.Handle(h.act("resume", h.resume)))
	r.Post("/runs/{id}/edit", handlers.Handle(h.act("edit", h.edit)))
	r.Post("/runs/{id}/delete", handlers.Handle(h.actThen("delete", h.delete, func(string) string { return "/runs" })))
	r.Get("/runs/{id}/overview", handlers.Handle(h.overview))
	r.Get("/ws/runs/{id}", h.socket(&share{}))
	h.apiRoutes(r)
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
		view.Images, view.Pixels = info.Len, info.H*info.W*info.C
	}
	if view.PSNR, err = h.newestSample(ctx, id, "psnr/eval"); err != nil {
		return err
	}
	if view.Overview, err = h.overviewOf(ctx, run); err != nil {
		return err
	}
	if run.Config.Model == model.External {
		page, err := h.Service.Points(ctx, id, model.PointQuery{Columns: 1})
		if err != nil {
			return err
		}
		view.Series = slices.Sorted(maps.Keys(page.Series))
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
	if view.Damaged, err = h.Service.DamagedPoints(ctx, id); err != nil {
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
		bad["name"] = fmt.Sprintf("has %d bytes; the limit is %d", len(*name), nameSize)
	}
	if notes != nil && len(*notes) > notesSize {
		bad["notes"] = fmt.Sprintf("have %d bytes; the limit is %d", len(*notes), notesSize)
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
