package workbench

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/query"
)

func (h Workbench) apiRoutes(r chi.Router) {
	r.Get("/api/runs", handlers.Handle(h.apiList))
	r.Get("/api/runs.csv", handlers.Handle(h.apiCSV))
	r.Get("/api/runs/fields", handlers.Handle(h.apiFields))
	r.Post("/api/runs/bulk", handlers.Handle(h.apiBulk))
	r.Get("/api/runs/{id}/evaluate", handlers.Handle(h.apiEvaluation))
	r.Post("/api/runs/{id}/evaluate", handlers.Handle(h.apiEvaluate))
	r.Delete("/api/runs/{id}/evaluate", handlers.Handle(h.apiCancel))
}

// asked lists all runs and parses the query of an API request, or returns its errors.
func (h Workbench) asked(r *http.Request) ([]model.Overview, ask, error) {
	runs, err := h.Runs.Overview(r.Context())
	if err != nil {
		return nil, ask{}, err
	}
	a := read(r.URL.Query(), query.Of(runs))
	if a.fault != "" {
		return nil, a, model.Invalid{"q": a.fault}
	}
	if len(a.notices) > 0 {
		return nil, a, model.Invalid{"": strings.Join(a.notices, " ")}
	}
	return runs, a, nil
}

// wholeOf parses a non-negative integer, with a default.
func wholeOf(q url.Values, name string, usual int, bad model.Invalid) int {
	text := q.Get(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		bad[name] = fmt.Sprintf("got %q; enter a whole number ≥ 0", text)
	}
	return n
}

// apiList writes the runs that match ?q=, sorted by ?sort=, from ?offset=, at most ?limit= of them.
func (h Workbench) apiList(w http.ResponseWriter, r *http.Request) error {
	runs, a, err := h.asked(r)
	if err != nil {
		return err
	}
	chosen, bad := a.choose(runs), model.Invalid{}
	matching := len(chosen)
	offset, limit := wholeOf(r.URL.Query(), "offset", 0, bad), wholeOf(r.URL.Query(), "limit", matching, bad)
	if err := bad.OrNil(); err != nil {
		return err
	}
	chosen = chosen[min(offset, matching):]
	chosen = chosen[:min(limit, len(chosen))]
	return handlers.JSON(w, http.StatusOK, map[string]any{"runs": chosen, "matching": matching, "total": len(runs)})
}

// apiFields lists the fields for queries.
func (h Workbench) apiFields(w http.ResponseWriter, r *http.Request) error {
	runs, err := h.Runs.Overview(r.Context())
	if err != nil {
		return err
	}
	type field struct {
		Name    string   `json:"name"`
		Label   string   `json:"label"`
		Unit    string   `json:"unit,omitempty"`
		Help    string   `json:"help"`
		Group   string   `json:"group"`
		Kind    string   `json:"kind"`
		Choices []string `json:"choices,omitempty"`
	}
	fields := []field{}
	for _, f := range query.Of(runs).Fields() {
		out := field{f.Name, f.Label, f.Unit, f.Help, f.Group, string(f.Kind), f.Choices}
		switch f.Name {
		case "tag":
			out.Choices = distinct(runs, func(r model.Overview) []string { return r.Tags.All() })
		case "dataset":
			out.Choices = distinct(runs, func(r model.Overview) []string { return []string{r.Config.Dataset} })
		}
		fields = append(fields, out)
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"fields": fields})
}

func distinct(runs []model.Overview, of func(model.Overview) []string) (all []string) {
	seen := map[string]bool{}
	for _, r := range runs {
		for _, text := range of(r) {
			if text != "" && !seen[text] {
				seen[text] = true
				all = append(all, text)
			}
		}
	}
	slices.Sort(all)
	return all
}

// apiCSV sends the list as CSV: ID, name, then the shown columns. ?run= selects runs instead of ?q=.
func (h Workbench) apiCSV(w http.ResponseWriter, r *http.Request) error {
	runs, a, err := h.asked(r)
	if err != nil {
		return err
	}
	chosen := a.choose(runs)
	if q := r.URL.Query(); q.Has("run") {
		named, err := selected(runs, a.catalogue, q["run"], false, "")
		if err != nil {
			return err
		}
		if chosen, err = named.known(); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="runs.csv"`)
	out := csv.NewWriter(w)
	head := []string{"id", "name"}
	columns := slices.DeleteFunc(slices.Clone(a.columns), func(f query.Field) bool { return f.Name == "id" || f.Name == "name" })
	for _, f := range columns {
		head = append(head, f.Name)
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for i := range chosen {
		line := []string{chosen[i].ID, harmless(chosen[i].Name)}
		for _, f := range columns {
			line = append(line, plain(f, &chosen[i], a))
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// plain formats a value without rounding.
func plain(f query.Field, r *model.Overview, a ask) string {
	if v, ok := f.Number(r, a.now); ok && (f.Kind == query.Number || f.Kind == query.Duration) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return harmless(f.Shown(r, a.now))
}

// harmless prevents spreadsheets from interpreting text as a formula.
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// apiBulk applies an action to several runs, given by ID or query, and lists the failures.
func (h Workbench) apiBulk(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Do      string   `json:"do"`
		Runs    []string `json:"runs"`
		Query   *string  `json:"q"`
		Tag     string   `json:"tag"`
		Effort  string   `json:"effort"`
		Replace bool     `json:"replace"`
	}
	if err := handlers.ReadJSON(w, r, 1<<20, &in); err != nil {
		return err
	}
	if in.Query != nil && in.Runs != nil {
		return model.Invalid{"q": "give runs or a query, not both"}
	}
	d, err := h.deedOf(in.Do, in.Tag, model.Evaluation{Effort: in.Effort, Replace: in.Replace})
	if err != nil {
		return err
	}
	runs, err := h.Runs.Overview(r.Context())
	if err != nil {
		return err
	}
	text := ""
	if in.Query != nil {
		text = *in.Query
	}
	chosen, err := selected(runs, query.Of(runs), in.Runs, in.Query != nil, text)
	if err != nil {
		return err
	}
	type failure struct {
		Run   string `json:"run"`
		Error string `json:"error"`
	}
	done, failed := act(r.Context(), d, chosen)
	out := struct {
		Done   []string  `json:"done"`
		Failed []failure `json:"failed"`
	}{[]string{}, []failure{}}
	for _, run := range done {
		out.Done = append(out.Done, run.ID)
	}
	for _, f := range failed {
		out.Failed = append(out.Failed, failure{f.Run.ID, f.Why})
	}
	status := http.StatusOK
	if len(failed) > 0 && len(done) == 0 {
		status = http.StatusConflict
	}
	return handlers.JSON(w, status, out)
}

// apiEvaluate queues an evaluation of a run's newest checkpoint.
func (h Workbench) apiEvaluate(w http.ResponseWriter, r *http.Request) error {
	in := struct {
		Effort  string `json:"effort"`
		Now     bool   `json:"now"`
		Replace bool   `json:"replace"`
	}{Effort: model.Full}
	if r.ContentLength != 0 {
		if err := handlers.ReadJSON(w, r, 4<<10, &in); err != nil {
			return err
		}
	}
	ask := model.Evaluation{Effort: cmp.Or(in.Effort, model.Full), Now: in.Now, Replace: in.Replace}
	if _, err := h.evaluation(ask); err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if err := h.Evaluations.Queue(r.Context(), id, ask); err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusAccepted, h.Evaluations.State(id))
}

// apiEvaluation writes the state of a run's evaluation; the state is empty if none was requested.
func (h Workbench) apiEvaluation(w http.ResponseWriter, r *http.Request) error {
	if _, err := h.evaluation(model.Evaluation{}); err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	runs, err := h.Runs.Overview(r.Context())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(runs, func(o model.Overview) bool { return o.ID == id }) {
		return fmt.Errorf("unknown run %q: %w", id, model.ErrNotFound)
	}
	return handlers.JSON(w, http.StatusOK, h.Evaluations.State(id))
}

// apiCancel removes an evaluation from the queue or stops it; earlier scores are kept.
func (h Workbench) apiCancel(w http.ResponseWriter, r *http.Request) error {
	if _, err := h.evaluation(model.Evaluation{}); err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if err := h.Evaluations.Cancel(r.Context(), id); err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusAccepted, h.Evaluations.State(id))
}
