// Package sweep answers the pages and the API of sweeps.
package sweep

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/handlers/compare"
	"slotscope/model"
	"slotscope/model/measure/report"
	"slotscope/model/sweep"
	ui "slotscope/views/sweep"
)

// SweepService keeps sweeps and works through them. Methods that take an id return model.ErrNotFound in their chain for an
// unknown one.
type SweepService interface {
	// CreateAt stores a plan and begins to work on it, its runs computed where it says.
	CreateAt(ctx context.Context, p sweep.Plan, at model.Placement) (sweep.Status, error)
	List(ctx context.Context) ([]sweep.Status, error)
	Get(ctx context.Context, id string) (sweep.Status, error)
	Stop(ctx context.Context, id string) error
	Resume(ctx context.Context, id string, retry bool) error
	Delete(ctx context.Context, id string) error
}

// Sweeps are the pages and the API of sweeps.
type Sweeps struct {
	Service  SweepService
	Datasets handlers.DatasetList
	Places   handlers.Placer // nil where there is no choice
}

// Routes enters /sweeps and /api/sweeps.
func (h Sweeps) Routes(r chi.Router) {
	r.Get("/sweeps", handlers.Handle(h.list))
	r.Post("/sweeps", handlers.Handle(h.create))
	r.Get("/sweeps/new", handlers.Handle(h.form))
	r.Get("/sweeps/{id}", handlers.Handle(h.show))
	r.Post("/sweeps/{id}/{what}", handlers.Handle(h.act))
	r.Get("/api/sweeps", handlers.Handle(h.apiList))
	r.Post("/api/sweeps", handlers.Handle(h.apiCreate))
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

// sweepHead is what list and page say of a sweep alike.
func sweepHead(s sweep.Status) ui.SweepHead {
	b := s.Board
	v := ui.SweepHead{ID: s.ID, Name: s.Plan.Name, Preset: s.Plan.Preset, Created: s.Created, Active: s.Active, Worker: s.Worker, Evaluating: s.Evaluating, Problem: s.Problem,
		Done: b.Count(sweep.Done), Failed: b.Count(sweep.Failed), Live: b.Count(sweep.Live), Halted: b.Count(sweep.Halted), Total: b.Total(), Over: b.Over()}
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
				p.Items = append(p.Items, itemView(item))
			}
		}
		view.Parts = append(view.Parts, p)
	}
	rep, err := report.New(report.OfSweep(s.Board, func(id string) (report.Entry, bool) { return entryOn(s.Board, id) }))
	if err == nil {
		view.Results = compare.SectionViews(rep)
	}
	return handlers.Draw(w, r, ui.Sweep(view))
}

// entryOn is a run as a board has it: scores, no points.
func entryOn(b sweep.Board, id string) (report.Entry, bool) {
	for _, item := range b.Items {
		if item.ID == id && item.Stage != sweep.Planned {
			return report.Entry{Run: item.Run, Scores: item.Scores}, true
		}
	}
	return report.Entry{}, false
}

func itemView(s sweep.Standing) ui.SweepItem {
	v := ui.SweepItem{ID: s.ID, Name: s.Name, Stage: string(s.Stage), Run: s.Run, Exists: s.Stage != sweep.Planned, Steps: s.Config.Steps, Choosing: len(s.Parts) == 0, Problem: s.Problem}
	if s.Scores != nil {
		for _, key := range []string{"infom", "psnr"} {
			m, _ := report.MetricByKey(key)
			v.Scores = append(v.Scores, report.Summarise([]float64{m.Of(*s.Scores)}).Text(m.Decimals))
		}
	}
	return v
}

// act stops, resumes, retries or deletes a sweep, then shows where it stands.
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
	return fmt.Errorf("a sweep can be stopped, resumed and retried; %q is none of these: %w", what, model.ErrNotFound)
}

// sweepForm is a plan as the page's form has it.
type sweepForm struct {
	kind, name, preset, steps, seeds, field, values, set string
	models, datasets, parts                              []string
	place                                                url.Values
}

func (h Sweeps) form(w http.ResponseWriter, r *http.Request) error {
	return h.drawForm(w, r, sweepForm{kind: "paper", name: "my sweep", preset: "tiny", seeds: "3", parts: []string{"main"}, models: []string{"hrr"}}, nil)
}

func (h Sweeps) drawForm(w http.ResponseWriter, r *http.Request, f sweepForm, bad model.Invalid) error {
	view := ui.SweepFormView{Place: handlers.PlaceView(h.Places, f.place, bad), Kind: f.kind, Name: f.name, Preset: f.preset, Steps: f.steps, Seeds: f.seeds, Field: f.field, Values: f.values, Set: f.set, Bad: bad, Presets: model.PresetNames()}
	for _, name := range model.ModelNames() {
		view.Models = append(view.Models, ui.Choosable{Key: name, Label: report.ModelLabel(name), Chosen: slices.Contains(f.models, name)})
	}
	for i, info := range h.Datasets.List(r.Context()) {
		view.Datasets = append(view.Datasets, ui.Choosable{Key: info.Name, Label: info.Name, Chosen: slices.Contains(f.datasets, info.Name) || len(f.datasets) == 0 && i == 0})
	}
	for _, p := range [][2]string{{"main", "Main results: every model, its hyperparameter chosen first"}, {"grid", "Latent dimension and codebook size"}, {"ablations", "Ablations"}, {"ratio", "Number of slots and dimension, together"}} {
		view.Parts = append(view.Parts, ui.Choosable{Key: p[0], Label: p[1], Chosen: slices.Contains(f.parts, p[0])})
	}
	for _, field := range model.Fields() {
		if !slices.Contains([]string{"model", "dataset", "seed", "preset", "engine"}, field.Name) && field.Group != "cadence" {
			view.FieldNames = append(view.FieldNames, ui.Choosable{Key: field.Name, Label: field.Label, Chosen: field.Name == f.field})
		}
	}
	status := http.StatusOK
	if len(bad) > 0 {
		status = http.StatusUnprocessableEntity
	}
	return handlers.DrawStatus(w, r, status, ui.SweepForm(view))
}

func (h Sweeps) create(w http.ResponseWriter, r *http.Request) error {
	if err := handlers.ReadForm(w, r); err != nil {
		return err
	}
	q := r.PostForm
	f := sweepForm{kind: q.Get("kind"), name: strings.TrimSpace(q.Get("name")), preset: q.Get("preset"), steps: strings.TrimSpace(q.Get("steps")), seeds: strings.TrimSpace(q.Get("seeds")),
		field: q.Get("field"), values: q.Get("values"), set: q.Get("set"), models: q["models"], datasets: q["datasets"], parts: q["parts"], place: q}
	at, bad := handlers.Placed(q), model.Invalid{}
	if err := handlers.CheckPlace(h.Places, at, bad); err != nil {
		return err
	}
	plan, err := f.plan()
	if err == nil && len(bad) == 0 {
		var s sweep.Status
		if s, err = h.begin(r.Context(), plan, at); err == nil {
			http.Redirect(w, r, "/sweeps/"+s.ID, http.StatusSeeOther)
			return nil
		}
	}
	if err := handlers.Collect(bad, err); err != nil {
		return err
	}
	return h.drawForm(w, r, f, bad)
}

// begin creates a sweep once all of its datasets are found.
func (h Sweeps) begin(ctx context.Context, p sweep.Plan, at model.Placement) (sweep.Status, error) {
	p, err := p.Settle(func(dataset string) (int, error) {
		info, err := handlers.InfoOf(ctx, h.Datasets, dataset)
		return len(info.Factors), err
	})
	if err != nil {
		return sweep.Status{}, err
	}
	return h.Service.CreateAt(ctx, p, at)
}

// plan reads a form: the paper's protocol scaled, or one part with at most one hyperparameter.
func (f sweepForm) plan() (sweep.Plan, error) {
	bad := model.Invalid{}
	steps, err := handlers.StepsOf(f.steps)
	if err != nil {
		bad["steps"] = fmt.Sprintf("%q is not a number of steps", f.steps)
	}
	n, err := strconv.Atoi(f.seeds)
	if err != nil || n < 1 || n > 100 {
		bad["seeds"] = fmt.Sprintf("%q is not a number of seeds from 1 to 100", f.seeds)
	}
	if len(f.datasets) == 0 {
		bad["datasets"] = "choose at least one dataset"
	}
	if len(bad) > 0 {
		return sweep.Plan{}, bad
	}
	if f.kind == "paper" {
		return sweep.Paper(sweep.Scale{Preset: f.preset, Steps: steps, Seeds: n, Datasets: f.datasets, Parts: f.parts})
	}
	part := sweep.Part{Name: f.name, Models: f.models, Datasets: f.datasets}
	for seed := range int64(n) {
		part.Seeds = append(part.Seeds, seed)
	}
	if values := strings.FieldsFunc(f.values, func(r rune) bool { return r == ',' || r == ' ' }); f.field != "" {
		part.Vary = []sweep.Axis{{Field: f.field, Values: values}}
	}
	p := sweep.Plan{Name: f.name, Preset: f.preset, Steps: steps, Parts: []sweep.Part{part}}
	for line := range strings.Lines(f.set) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return p, model.Invalid{"set": fmt.Sprintf("%q is not of the form name=value", line)}
		}
		if p.Set == nil {
			p.Set = map[string]string{}
		}
		p.Set[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return p, p.Validate()
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

// apiCreate takes a plan, or {"paper": scale} for the paper's protocol.
func (h Sweeps) apiCreate(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		sweep.Plan
		Paper *struct {
			Preset   string   `json:"preset"`
			Steps    int      `json:"steps"`
			Seeds    int      `json:"seeds"`
			Datasets []string `json:"datasets"`
			Models   []string `json:"models"`
			Parts    []string `json:"parts"`
		} `json:"paper"`
		handlers.PlaceIn
	}
	if err := handlers.ReadJSON(w, r, 1<<20, &in); err != nil {
		return err
	}
	plan := in.Plan
	if s := in.Paper; s != nil {
		var err error
		if plan, err = sweep.Paper(sweep.Scale{Preset: s.Preset, Steps: s.Steps, Seeds: s.Seeds, Datasets: s.Datasets, Models: s.Models, Parts: s.Parts}); err != nil {
			return err
		}
	}
	s, err := h.begin(r.Context(), plan, in.Placement())
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/sweeps/"+s.ID)
	return handlers.JSON(w, http.StatusCreated, s.Record())
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
