// Package run serves the form that starts a run, and the page, API and WebSocket of a run.
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

// Runs serves the pages, API and WebSocket of training runs.
type Runs struct {
	Service  handlers.RunService
	Datasets handlers.DatasetList
	Places   handlers.Placer // nil if runs always execute on this machine
	// Evaluations reports the state of evaluations; nil hides them.
	Evaluations handlers.EvaluationService
	// Bundles builds export bundles; nil disables exports.
	Bundles Bundler
	// Folders opens run folders for file downloads; nil disables them.
	Folders Folders
	// Logs stores external runs; nil rejects them.
	Logs Logs
}

// Routes registers /runs, /api/runs and /ws/runs.
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

// show renders the page of a run.
func (h Runs) show(w http.ResponseWriter, r *http.Request) error {
	return h.page(w, r, http.StatusOK, ui.Trouble{})
}

// page renders the page of a run; if trouble names a dialog, it opens with the error.
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
		return handlers.DrawStatus(w, r, status, ui.Run(view)) // the page shows the damage and allows deleting the folder
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

// newestSample returns the newest sample of a series; the zero Sample if there is none.
func (h Runs) newestSample(ctx context.Context, id, name string) (s model.Sample, err error) {
	page, err := h.Service.Points(ctx, id, model.PointQuery{Names: []string{name}, Columns: 1})
	if n := len(page.Series[name]); n > 0 {
		s = page.Series[name][n-1]
	}
	return s, err
}

// logLines is the number of log lines on the page.
const logLines = 200

// act applies an action to a run and redirects to its page. A rejected action reopens its dialog with the error and the user's input.
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

// refused renders the page for an action that the run's state or the input does not allow.
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

// Maximum sizes of a run's name and notes, in bytes.
const (
	nameSize  = 200
	notesSize = 64 << 10
)

// describe sets name and notes; nil leaves a value unchanged.
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
