// Package workbench serves the list of runs: the page, bulk actions, saved views, and the corresponding API.
package workbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/query"
	"slotscope/model/view"
	ui "slotscope/views/workbench"
)

// Service lists and edits runs. Methods with an id return an error that wraps model.ErrNotFound if the run is unknown, and
// model.ErrConflict if the run's state does not allow the action.
type Service interface {
	// Overview lists every run with its latest values and scores, newest first. Callers must not modify the maps in it.
	Overview(ctx context.Context) ([]model.Overview, error)
	Mark(ctx context.Context, id string, marks model.Marks) error
	Stop(ctx context.Context, id string) error
	Delete(ctx context.Context, id string) error
	// Watch sends on every change of a run, or of any run if id is ""; the channel buffers one.
	Watch(id string) (changes <-chan struct{}, cancel func())
}

// ViewStore stores saved views; view.Store implements it.
type ViewStore interface {
	List() ([]view.View, error)
	Save(name, address string, version int, now time.Time) (view.View, error)
	Delete(name string, version int) error
}

// Workbench serves the list of runs.
type Workbench struct {
	Runs        Service
	Views       ViewStore                  // nil disables saved views
	Evaluations handlers.EvaluationService // nil disables evaluations
}

// Routes registers /runs, the pages for several runs below it, and the API.
func (h Workbench) Routes(r chi.Router) {
	r.Get("/runs", handlers.Handle(h.list))
	r.Get("/runs/columns", handlers.Handle(h.columns))
	r.Post("/runs/bulk", handlers.Handle(h.bulk))
	r.Post("/runs/views", handlers.Handle(h.saveView))
	r.Get("/ws/runs", h.socket)
	h.apiRoutes(r)
}

// perPage is the number of runs or groups per page.
const perPage = 100

// usual are the default columns.
var usual = []string{"state", "name", "model", "dataset", "step", "rate", "left", "psnr/eval", "infom", "created"}

// ask is a parsed request for the list.
type ask struct {
	ui.Address
	catalogue *query.Catalogue
	query     query.Query
	fault     string // error in the query; empty if none
	notices   []string
	order     query.Field
	down      bool
	columns   []query.Field
	now       time.Time
}

// read parses a URL query; invalid entries become notices or a fault and use their defaults.
func read(q url.Values, c *query.Catalogue) ask {
	a := ask{Address: addressOf(q), catalogue: c, now: time.Now()}
	var err error
	if a.query, err = c.Parse(a.Query); err != nil {
		a.fault = err.Error()
	}
	by, down := strings.CutPrefix(a.Sort, "-")
	field, ok := c.Field(by)
	if !ok {
		a.notices = append(a.notices, ui.CannotSort(by))
		field, _ = c.Field("created")
		down, a.Sort = true, ui.DefaultSort
	}
	a.order, a.down = field, down
	names := a.Columns
	if len(names) == 0 {
		names = usual
	}
	for _, name := range names {
		switch field, ok := c.Field(name); {
		case ok:
			a.columns = append(a.columns, field)
		case len(a.Columns) > 0:
			a.notices = append(a.notices, ui.NoSeries(name))
		}
	}
	if a.Group != "" && a.Group != byConfig {
		if f, ok := c.Field(a.Group); !ok || f.Kind == query.Time {
			a.notices = append(a.notices, ui.CannotGroup(a.Group))
			a.Group = ""
		}
	}
	return a
}

func addressOf(q url.Values) ui.Address {
	page, err := strconv.Atoi(q.Get("page"))
	if err != nil || page < 1 {
		page = 1
	}
	a := ui.Address{Query: strings.TrimSpace(q.Get("q")), Sort: q.Get("sort"), Group: q.Get("group"), Page: page, View: q.Get("view")}
	if a.Sort == "" {
		a.Sort = ui.DefaultSort
	}
	a.Columns, a.Open = split(q["cols"]), split(q["open"])
	return a
}

// split splits comma-separated lists and removes duplicates.
func split(lists []string) (all []string) {
	for _, list := range lists {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// choose returns the matching runs in the requested order; none if the query is invalid.
func (a ask) choose(runs []model.Overview) []model.Overview {
	if a.fault != "" {
		return nil
	}
	chosen := a.query.Choose(runs, a.now)
	slices.SortStableFunc(chosen, func(x, y model.Overview) int {
		if c := a.order.Compare(&x, &y, a.now, a.down); c != 0 {
			return c
		}
		return strings.Compare(y.ID, x.ID)
	})
	return chosen
}

// list renders a page of the list.
func (h Workbench) list(w http.ResponseWriter, r *http.Request) error {
	v, err := h.listed(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	return handlers.Draw(w, r, ui.Runs(v))
}

// listed returns the list for a URL query.
func (h Workbench) listed(ctx context.Context, q url.Values) (ui.RunsView, error) {
	runs, err := h.Runs.Overview(ctx)
	if err != nil {
		return ui.RunsView{}, err
	}
	a := read(q, query.Of(runs))
	chosen := a.choose(runs)
	v := ui.RunsView{Address: a.Address, Total: len(runs), Matching: len(chosen), Fault: a.fault, Notices: a.notices, CanEvaluate: h.Evaluations != nil}
	for _, f := range a.columns {
		v.Columns = append(v.Columns, columnOf(f))
	}
	if a.Group == "" {
		v.Pages = pagesOf(len(chosen))
		v.Page = min(v.Page, v.Pages)
		for _, run := range chosen[from(v.Page):min(len(chosen), from(v.Page+1))] {
			v.Rows = append(v.Rows, h.row(a, run))
		}
	} else {
		groups := a.groups(chosen)
		v.Groups, v.Pages = len(groups), pagesOf(len(groups))
		v.Page = min(v.Page, v.Pages)
		for _, g := range groups[from(v.Page):min(len(groups), from(v.Page+1))] {
			v.Rows = append(v.Rows, h.groupRows(a, g)...)
		}
	}
	if p, ok := h.Runs.(interface{ Problems() []string }); ok {
		v.Problems = p.Problems()
	}
	if err := h.saved(&v); err != nil {
		v.Notices = append(v.Notices, handlers.SentenceOf(err))
	}
	return v, nil
}

func from(page int) int { return (page - 1) * perPage }

func pagesOf(n int) int { return max(1, (n+perPage-1)/perPage) }

func columnOf(f query.Field) ui.Column {
	unit := f.Unit
	if f.Kind == query.Duration {
		unit = "" // values include their own unit
	}
	return ui.Column{Name: f.Name, Label: f.Label, Unit: unit, Help: f.Help, Number: f.Kind == query.Number && f.Name != "step" || f.Kind == query.Duration || f.Kind == query.Time,
		Down: f.Kind == query.Number && f.Group != query.OfConfig || f.Kind == query.Time || f.Kind == query.Flag}
}

// row returns a run's table row.
func (h Workbench) row(a ask, run model.Overview) ui.Row {
	row := ui.Row{Run: run.Run, IDs: []string{run.ID}}
	for _, f := range a.columns {
		row.Cells = append(row.Cells, ui.Cell{Text: cellOf(f, &run, a.now)})
	}
	if h.Evaluations == nil {
		return row
	}
	row.Said, row.Active = ui.EvaluationSaid(h.Evaluations.State(run.ID))
	return row
}

// saved adds the saved views to v.
func (h Workbench) saved(v *ui.RunsView) error {
	if h.Views == nil {
		return nil
	}
	all, err := h.Views.List()
	if err != nil {
		return err
	}
	for _, s := range all {
		q, err := url.ParseQuery(s.Address)
		if err != nil {
			continue // invalid after a manual edit
		}
		address := addressOf(q)
		address.View = s.Name
		open := s.Name == v.View
		if open {
			now := v.Address
			now.Open, now.Page = address.Open, address.Page
			v.SavedName, v.SavedAt, v.Changed = s.Name, s.Version, now.URL() != address.URL()
		}
		v.Saved = append(v.Saved, ui.SavedView{Name: s.Name, URL: address.URL(), Open: open})
	}
	return nil
}

// saveView saves or deletes a view and redirects to the list.
func (h Workbench) saveView(w http.ResponseWriter, r *http.Request) error {
	if h.Views == nil {
		return fmt.Errorf("saved views are disabled on this server: %w", model.ErrConflict)
	}
	if err := handlers.ReadForm(w, r); err != nil {
		return err
	}
	f := r.PostForm
	name, version := strings.Join(strings.Fields(f.Get("name")), " "), 0
	q, err := url.ParseQuery(f.Get("address"))
	if err != nil {
		return model.Invalid{"address": "the view's URL query is invalid; open the runs page and save again"}
	}
	if name == f.Get("was") { // another name makes a new view
		if version, err = strconv.Atoi(f.Get("version")); err != nil && f.Get("version") != "" {
			return model.Invalid{"version": fmt.Sprintf("got %q; open the view again and save it", f.Get("version"))}
		}
	}
	address := addressOf(q)
	address.View, address.Page = name, 1
	if f.Get("do") == "delete" {
		if err := h.Views.Delete(f.Get("was"), version); err != nil {
			return h.told(w, r, ui.ViewNotDeleted, f, address, err)
		}
		address.View = ""
		http.Redirect(w, r, address.URL(), http.StatusSeeOther)
		return nil
	}
	stored := address
	stored.View = ""
	if _, err := h.Views.Save(name, stored.Values().Encode(), version, time.Now()); err != nil {
		return h.told(w, r, ui.ViewNotSaved, f, address, err)
	}
	http.Redirect(w, r, address.URL(), http.StatusSeeOther)
	return nil
}

// told renders the list with the entered name and the reason why the view was not saved or deleted.
func (h Workbench) told(w http.ResponseWriter, r *http.Request, title string, typed url.Values, back ui.Address, err error) error {
	var bad model.Invalid
	if !errors.Is(err, model.ErrConflict) && !errors.As(err, &bad) {
		return err
	}
	back.View = typed.Get("was")
	v, problem := h.listed(r.Context(), back.Values())
	if problem != nil {
		return problem
	}
	v.SaveFault, v.SaveName = title+": "+handlers.SentenceOf(err), typed.Get("name")
	return handlers.DrawStatus(w, r, handlers.StatusOf(err), ui.Runs(v))
}

// columns renders the page to choose columns.
func (h Workbench) columns(w http.ResponseWriter, r *http.Request) error {
	runs, err := h.Runs.Overview(r.Context())
	if err != nil {
		return err
	}
	c := query.Of(runs)
	v := ui.ColumnsView{Address: addressOf(r.URL.Query())}
	chosen := v.Columns
	if len(chosen) == 0 {
		chosen = usual
	}
	for _, name := range query.Groups {
		g := ui.ColumnGroup{Title: ui.GroupTitles[name]}
		for _, f := range c.Fields() {
			if f.Group == name {
				g.Fields = append(g.Fields, ui.ColumnChoice{Column: columnOf(f), Chosen: slices.Contains(chosen, f.Name)})
			}
		}
		if len(g.Fields) > 0 {
			v.Groups = append(v.Groups, g)
		}
	}
	return handlers.Draw(w, r, ui.Columns(v))
}
