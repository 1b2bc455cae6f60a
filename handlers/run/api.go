package run

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
)

func (h Runs) apiRoutes(r chi.Router) {
	r.Post("/api/runs", handlers.Handle(h.apiCreate))
	r.Get("/api/runs/{id}", handlers.Handle(h.apiShow))
	r.Patch("/api/runs/{id}", handlers.Handle(h.apiPatch))
	r.Delete("/api/runs/{id}", handlers.Handle(h.apiDelete))
	r.Post("/api/runs/{id}/stop", handlers.Handle(h.apiStop))
	r.Post("/api/runs/{id}/resume", handlers.Handle(h.apiResume))
	r.Get("/api/runs/{id}/points", handlers.Handle(h.apiPoints))
	r.Post("/api/runs/{id}/points", handlers.Handle(h.logPoints))
	r.Get("/api/runs/{id}/points.csv", handlers.Handle(h.apiCSV))
	r.Get("/api/runs/{id}/verdict", handlers.Handle(h.apiVerdict))
	r.Get("/api/runs/{id}/alerts", handlers.Handle(h.apiAlerts))
	r.Get("/api/runs/{id}/log", handlers.Handle(h.apiLog))
	r.Get("/api/runs/{id}/samples", handlers.Handle(h.apiSamples))
	r.Get("/api/runs/{id}/samples/{step}.png", handlers.Handle(h.apiSample))
	r.Get("/api/runs/{id}/checkpoints", handlers.Handle(h.apiCheckpoints))
	r.Get("/api/runs/{id}/checkpoints/{step}.safetensors", handlers.Handle(h.apiCheckpoint))
	r.Get("/api/runs/{id}/bundle.zip", handlers.Handle(h.bundle))
	r.Get("/api/runs/{id}/points.parquet", handlers.Handle(h.parquet))
	r.Get("/api/runs/{id}/files/{name}", handlers.Handle(h.evaluationFile))
	r.Get("/api/fields", handlers.Handle(h.apiFields))
}

// apiBody is the maximum size of a JSON body, in bytes.
const apiBody = 256 << 10

func (h Runs) apiCreate(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name     string                     `json:"name"`
		Config   map[string]json.RawMessage `json:"config"`
		External map[string]any             `json:"external"`
		handlers.PlaceIn
	}
	if err := handlers.ReadJSON(w, r, apiBody, &in); err != nil {
		return err
	}
	if in.External != nil {
		return h.beginExternal(w, r, in.Name, in.External, len(in.Config) > 0)
	}
	typed, err := typedJSON(in.Config)
	if err != nil {
		return err
	}
	run, err := h.start(r.Context(), typed, strings.TrimSpace(in.Name), in.Placement())
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/runs/"+run.ID)
	return handlers.JSON(w, http.StatusCreated, run)
}

// apiAlerts writes the alerts of a run, newest first.
func (h Runs) apiAlerts(w http.ResponseWriter, r *http.Request) error {
	run, err := h.Service.Get(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	all, err := h.Service.Alerts(r.Context(), model.AlertQuery{Run: run.ID})
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, map[string][]model.Alert{"alerts": append([]model.Alert{}, all...)})
}

func (h Runs) apiShow(w http.ResponseWriter, r *http.Request) error {
	return h.answerRun(w, r, http.StatusOK)
}

func (h Runs) answerRun(w http.ResponseWriter, r *http.Request, status int) error {
	run, err := h.Service.Get(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return handlers.JSON(w, status, run)
}

func (h Runs) apiPatch(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name  *string `json:"name"`
		Notes *string `json:"notes"`
	}
	if err := handlers.ReadJSON(w, r, apiBody, &in); err != nil {
		return err
	}
	if err := h.describe(r.Context(), chi.URLParam(r, "id"), in.Name, in.Notes); err != nil {
		return err
	}
	return h.answerRun(w, r, http.StatusOK)
}

func (h Runs) apiDelete(w http.ResponseWriter, r *http.Request) error {
	if err := h.Service.Delete(r.Context(), chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h Runs) apiStop(w http.ResponseWriter, r *http.Request) error {
	if err := h.Service.Stop(r.Context(), chi.URLParam(r, "id")); err != nil {
		return err
	}
	return h.answerRun(w, r, http.StatusAccepted)
}

func (h Runs) apiResume(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Steps int `json:"steps"`
	}
	if r.ContentLength != 0 {
		if err := handlers.ReadJSON(w, r, apiBody, &in); err != nil {
			return err
		}
	}
	steps, err := handlers.StepsOf(strconv.Itoa(in.Steps))
	if err != nil {
		return err
	}
	if err := h.Service.Resume(r.Context(), chi.URLParam(r, "id"), steps); err != nil {
		return err
	}
	return h.answerRun(w, r, http.StatusAccepted)
}

// apiPoints writes series of points; query: since (exclusive), until, names (comma-separated), columns, smooth, only.
func (h Runs) apiPoints(w http.ResponseWriter, r *http.Request) error {
	in, err := readPointQuery(r)
	if err != nil {
		return err
	}
	page, err := h.Service.Points(r.Context(), chi.URLParam(r, "id"), in.PointQuery)
	if err != nil {
		return err
	}
	out := pointAnswer{PointPage: page}
	if in.smooth > 0 {
		if out.smoothed, err = h.smoothed(r.Context(), chi.URLParam(r, "id"), in, page); err != nil {
			return err
		}
	}
	if in.only {
		out.Series = nil
	}
	out.send(w, in.Columns > 0)
	return nil
}

type pointQuery struct {
	model.PointQuery
	smooth float64 // weight of the moving average; 0 for none
	only   bool    // return only the averages
}

func readPointQuery(r *http.Request) (pointQuery, error) {
	q, bad := r.URL.Query(), model.Invalid{}
	number := func(name string, most int) int {
		text := q.Get(name)
		if text == "" {
			return 0
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < 0 || v > most {
			bad[name] = fmt.Sprintf("got %q; enter a whole number from 0 to %d", text, most)
		}
		return v
	}
	in := pointQuery{PointQuery: model.PointQuery{Since: number("since", 1e9), Until: number("until", 1e9), Columns: number("columns", handlers.MaxColumns), Names: names(q.Get("names"))}}
	if in.Columns == 0 {
		in.Limit = handlers.RawSteps
	}
	if text := q.Get("smooth"); text != "" {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= handlers.MaxSmooth) {
			bad["smooth"] = fmt.Sprintf("got %q; enter a number from 0 to %v", text, handlers.MaxSmooth)
		}
		in.smooth = v
	}
	in.only = in.smooth > 0 && q.Get("only") == "smoothed"
	return in, bad.OrNil()
}

func names(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// apiCSV sends every stored point, never thinned: a line per step, a column per series, empty if a step has no value. If points are damaged,
// a comment before the header counts them.
func (h Runs) apiCSV(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), chi.URLParam(r, "id")
	columns := names(r.URL.Query().Get("names"))
	overview, err := h.Service.Points(ctx, id, model.PointQuery{Names: columns, Columns: 1})
	if err != nil {
		return err
	}
	if columns == nil {
		for name := range overview.Series {
			columns = append(columns, name)
		}
		slices.Sort(columns)
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.csv"`, id))
	if damaged, err := h.Service.DamagedPoints(ctx, id); err == nil && damaged > 0 {
		fmt.Fprintf(w, "# %d damaged lines of points.jsonl are missing here\n", damaged)
	}
	out := csv.NewWriter(w)
	out.Write(csvHead(columns))
	out.Flush()
	var lines bytes.Buffer
	for since := 0; since < overview.Head; {
		page, err := h.Service.Points(ctx, id, model.PointQuery{Since: since, Until: overview.Head, Names: columns, Limit: handlers.RawSteps})
		if err != nil || page.Last <= since {
			break // the response has started: truncate the file
		}
		lines.Reset()
		appendLines(&lines, page, columns)
		if _, err := w.Write(lines.Bytes()); err != nil {
			break // the client has gone
		}
		since = page.Last
	}
	return nil
}

// csvHead returns the header; series names are user input and are escaped.
func csvHead(columns []string) []string {
	head := []string{"step"}
	for _, name := range columns {
		head = append(head, model.CSVText(name))
	}
	return head
}

func (h Runs) apiLog(w http.ResponseWriter, r *http.Request) error {
	lines := logLines
	if text := r.URL.Query().Get("lines"); text != "" {
		v, err := strconv.Atoi(text)
		if err != nil || v < 1 || v > 10_000 {
			return model.Invalid{"lines": fmt.Sprintf("got %q; enter a whole number from 1 to 10,000", text)}
		}
		lines = v
	}
	text, err := h.Service.Log(r.Context(), chi.URLParam(r, "id"), lines)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(text))
	return nil
}

func (h Runs) apiSamples(w http.ResponseWriter, r *http.Request) error {
	_, steps, err := h.Service.Sample(r.Context(), chi.URLParam(r, "id"), 0)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"steps": orEmpty(steps)})
}

func (h Runs) apiSample(w http.ResponseWriter, r *http.Request) error {
	step, err := pathStep(r)
	if err != nil {
		return err
	}
	path, _, err := h.Service.Sample(r.Context(), chi.URLParam(r, "id"), step)
	if err != nil {
		return err
	}
	return handlers.SendFile(w, r, path, "image/png")
}

func (h Runs) apiCheckpoints(w http.ResponseWriter, r *http.Request) error {
	steps, err := h.Service.Checkpoints(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"steps": orEmpty(steps)})
}

func (h Runs) apiCheckpoint(w http.ResponseWriter, r *http.Request) error {
	step, err := pathStep(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	path, err := h.Service.CheckpointPath(r.Context(), id, step)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-step-%d.safetensors"`, id, step))
	return handlers.SendFile(w, r, path, "application/octet-stream")
}

func (h Runs) apiFields(w http.ResponseWriter, r *http.Request) error {
	cfg, err := h.defaults(r.Context(), r.URL.Query().Get)
	if err != nil {
		return err
	}
	if err := h.unknown(r.Context(), cfg.Model, cfg.Dataset).OrNil(); err != nil {
		return err
	}
	out := make([]apiField, 0, 64)
	for _, f := range model.FieldsOf(cfg.Model) {
		out = append(out, newAPIField(f, f.Get(cfg), f.SourceIn(cfg)))
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"fields": out})
}

// apiField describes a hyperparameter in the API.
type apiField struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"`
	Symbol  string   `json:"symbol,omitempty"`
	Unit    string   `json:"unit,omitempty"`
	Group   string   `json:"group"`
	Default string   `json:"default"`
	Source  string   `json:"source"`
	Help    string   `json:"help"`
	Choices []string `json:"choices,omitempty"`
	Min     *float64 `json:"min,omitempty"`
	Max     *float64 `json:"max,omitempty"`
}

func newAPIField(f model.Field, def, source string) apiField {
	out := apiField{f.Name, f.Label, f.Symbol, f.Unit, f.Group, def, source, f.Help, f.Choices, nil, nil}
	if f.Kind == model.Int || f.Kind == model.Float || f.Kind == model.Widths {
		out.Min, out.Max = &f.Min, &f.Max
	}
	return out
}

// pathStep returns the step in the URL path, at least 1.
func pathStep(r *http.Request) (int, error) {
	step, err := strconv.Atoi(chi.URLParam(r, "step"))
	if err != nil || step < 1 || step > math.MaxInt32 {
		return 0, fmt.Errorf("%q is not a step: %w", chi.URLParam(r, "step"), model.ErrNotFound)
	}
	return step, nil
}

func orEmpty(steps []int) []int {
	if steps == nil {
		return []int{}
	}
	return steps
}
