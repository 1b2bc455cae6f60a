// Package sweep serves the pages and the API of sweeps.
package sweep

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/handlers/compare"
	"slotscope/model"
	"slotscope/model/measure/report"
	"slotscope/model/sweep"
	ui "slotscope/views/sweep"
)

// SweepService stores and runs sweeps. Methods that take an ID return an error that wraps model.ErrNotFound if it is unknown.
type SweepService interface {
	// CreateAt stores a plan and starts it; its runs use the given placement.
	CreateAt(ctx context.Context, p sweep.Plan, at model.Placement) (sweep.Status, error)
	List(ctx context.Context) ([]sweep.Status, error)
	// Estimate returns how much work a plan is, and how long it takes at the speed of earlier runs.
	Estimate(ctx context.Context, p sweep.Plan) (sweep.Estimate, error)
	Get(ctx context.Context, id string) (sweep.Status, error)
	Stop(ctx context.Context, id string) error
	Resume(ctx context.Context, id string, retry bool) error
	Delete(ctx context.Context, id string) error
}

// Sweeps serves the pages and the API of sweeps.
type Sweeps struct {
	Service  SweepService
	Datasets handlers.DatasetList
	Places   handlers.Placer // nil if there is no choice
}

// Routes registers the routes of /sweeps and /api/sweeps.
func (h Sweeps) Routes(r chi.Router) {
	r.Get("/sweeps", handlers.Handle(h.list))
	r.Post("/sweeps", handlers.Handle(h.create))
	r.Get("/sweeps/new", handlers.Handle(h.form))
	r.Get("/sweeps/{id}", handlers.Handle(h.show))
	r.Get("/sweeps/{id}/explore", handlers.Handle(h.explore))
	r.Get("/sweeps/{id}/figures/{file}", handlers.Handle(h.exploreFigure))
	r.Get("/api/sweeps/{id}/explore", handlers.Handle(h.apiExplore))
	r.Post("/sweeps/{id}/{what}", handlers.Handle(h.act))
	r.Get("/api/sweeps", handlers.Handle(h.apiList))
	r.Post("/api/sweeps", handlers.Handle(h.apiCreate))
	r.Post("/api/sweeps/estimate", handlers.Handle(h.apiEstimate))
	r.Get("/api/sweeps/{id}", handlers.Handle(h.apiShow))
	r.Delete("/api/sweeps/{id}", handlers.Handle(h.apiDelete))
	r.Post("/api/sweeps/{id}/{what}", handlers.Handle(h.apiAct))
}

func (h Sweeps) list(w http.ResponseWriter, r *http.Request) error {
	all, err := h.Service.List(r.Context())
	if err != nil {
		return err
	}
	view := ui.SweepsView{}
	for _, s := range all {
		view.Rows = append(view.Rows, sweepHead(s))
	}
	return handlers.Draw(w, r, ui.Sweeps(view))
}

// sweepHead returns the part of a sweep that the list and its page share.
func sweepHead(s sweep.Status) ui.SweepHead {
	b := s.Board
	v := ui.SweepHead{ID: s.ID, Name: s.Plan.Name, Preset: s.Plan.Preset, Created: s.Created, Active: s.Active, Worker: s.Worker, Evaluating: s.Evaluating, Problem: s.Problem,
		Done: b.Count(sweep.Done), Failed: b.Count(sweep.Failed), Live: b.Count(sweep.Live), Halted: b.Count(sweep.Halted), Out: b.Count(sweep.Out), Total: b.Total(), Over: b.Over()}
	v.Steps, v.AllSteps = b.Steps()
	v.Left, v.LeftKnown = b.Left()
	for _, item := range b.Items {
		if item.Run.State == model.Running {
			v.Rate += item.Run.ImagesPerSecond
		}
	}
	return v
}

func (h Sweeps) show(w http.ResponseWriter, r *http.Request) error {
	s, err := h.Service.Get(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	view := ui.SweepView{SweepHead: sweepHead(s), Plan: string(s.Plan.JSON()), Problems: s.Board.Problems(), Waiting: s.Board.Waiting}
	for i, part := range s.Plan.Parts {
		p := ui.SweepPart{Name: part.Name, About: part.About}
		for _, item := range s.Board.Items {
			if slices.Contains(item.Parts, i) || item.Selecting && item.Part == i {
				p.Items = append(p.Items, ui.ItemOf(item))
			}
		}
		view.Parts = append(view.Parts, p)
	}
	view.Varies = len(s.Board.Explore().Parameters) > 0
	rep, err := report.New(report.OfSweep(s.Board, func(id string) (report.Entry, bool) { return entryOn(s.Board, id) }))
	if err == nil {
		view.Results = compare.SectionViews(rep)
	}
	return handlers.Draw(w, r, ui.Sweep(view))
}

// entryOn returns a board's run with its scores but without points.
func entryOn(b sweep.Board, id string) (report.Entry, bool) {
	for _, item := range b.Items {
		if item.ID == id && item.Stage != sweep.Planned {
			return report.Entry{Run: item.Run, Scores: item.Scores}, true
		}
	}
	return report.Entry{}, false
}

// act stops, resumes, retries or deletes a sweep, then redirects to its page or to the list.
func (h Sweeps) act(w http.ResponseWriter, r *http.Request) error {
	id, what := chi.URLParam(r, "id"), chi.URLParam(r, "what")
	if what == "delete" {
		if err := h.Service.Delete(r.Context(), id); err != nil {
			return err
		}
		http.Redirect(w, r, "/sweeps", http.StatusSeeOther)
		return nil
	}
	if err := h.do(r.Context(), id, what); err != nil {
		return err
	}
	http.Redirect(w, r, "/sweeps/"+id, http.StatusSeeOther)
	return nil
}

func (h Sweeps) do(ctx context.Context, id, what string) error {
	switch what {
	case "stop":
		return h.Service.Stop(ctx, id)
	case "resume":
		return h.Service.Resume(ctx, id, false)
	case "retry":
		return h.Service.Resume(ctx, id, true)
	}
	return fmt.Errorf("unknown action %q; use stop, resume or retry: %w", what, model.ErrNotFound)
}

func (h Sweeps) apiList(w http.ResponseWriter, r *http.Request) error {
	all, err := h.Service.List(r.Context())
	if err != nil {
		return err
	}
	out := []sweep.Record{}
	for _, s := range all {
		out = append(out, s.Head())
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"sweeps": out})
}

// planIn is the body of an API request: a plan, or {"paper": scale} or {"field": scale} for the paper's or the field's protocol.
type planIn struct {
	sweep.Plan
	Paper *scaleIn `json:"paper"`
	Field *scaleIn `json:"field"`
	handlers.PlaceIn
}

// scaleIn is the requested part and size of a protocol.
type scaleIn struct {
	Preset   string   `json:"preset"`
	Steps    int      `json:"steps"`
	Seeds    int      `json:"seeds"`
	Datasets []string `json:"datasets"`
	Models   []string `json:"models"`
	Parts    []string `json:"parts"`
}

// readPlan reads the plan of an API request.
func readPlan(w http.ResponseWriter, r *http.Request) (p sweep.Plan, at model.Placement, err error) {
	var in planIn
	if err := handlers.ReadJSON(w, r, 1<<20, &in); err != nil {
		return p, at, err
	}
	p = in.Plan
	if in.Paper != nil {
		p, err = sweep.Paper(sweep.Scale(*in.Paper))
	} else if in.Field != nil {
		p, err = sweep.Field(sweep.Scale(*in.Field))
	}
	return p, in.Placement(), err
}

func (h Sweeps) apiCreate(w http.ResponseWriter, r *http.Request) error {
	plan, at, err := readPlan(w, r)
	if err != nil {
		return err
	}
	s, err := h.begin(r.Context(), plan, at)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/sweeps/"+s.ID)
	return handlers.JSON(w, http.StatusCreated, s.Record())
}

// apiEstimate writes how much work a plan is, without starting it.
func (h Sweeps) apiEstimate(w http.ResponseWriter, r *http.Request) error {
	plan, _, err := readPlan(w, r)
	if err != nil {
		return err
	}
	e, err := h.estimate(r.Context(), plan)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, e.Record())
}

func (h Sweeps) apiShow(w http.ResponseWriter, r *http.Request) error {
	return h.answer(w, r, http.StatusOK)
}

func (h Sweeps) answer(w http.ResponseWriter, r *http.Request, status int) error {
	s, err := h.Service.Get(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return handlers.JSON(w, status, s.Record())
}

func (h Sweeps) apiDelete(w http.ResponseWriter, r *http.Request) error {
	if err := h.Service.Delete(r.Context(), chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h Sweeps) apiAct(w http.ResponseWriter, r *http.Request) error {
	if err := h.do(r.Context(), chi.URLParam(r, "id"), chi.URLParam(r, "what")); err != nil {
		return err
	}
	return h.answer(w, r, http.StatusAccepted)
}
