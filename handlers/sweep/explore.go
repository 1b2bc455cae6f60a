package sweep

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/measure/report"
	"slotscope/model/sweep"
	ui "slotscope/views/sweep"
)

// look parses the score and the two hyperparameters selected in a URL; unknown names are errors.
func (h Sweeps) look(ctx context.Context, id string, q url.Values) (ui.Explored, error) {
	s, err := h.Service.Get(ctx, id)
	if err != nil {
		return ui.Explored{}, err
	}
	bad := model.Invalid{}
	key := cmp.Or(q.Get("metric"), "infom")
	metric, ok := report.MetricByKey(key)
	if !ok {
		bad["metric"] = fmt.Sprintf("%q is not a score; use one of %s", key, keysOf(report.AllMetrics()))
	}
	e := ui.Explored{ID: s.ID, Name: s.Plan.Name, Explored: report.Explored{Exploration: s.Board.Explore()}, X: -1, Y: -1}
	axes(&e, q, bad)
	if err := bad.OrNil(); err != nil {
		return e, err
	}
	e.Explored = report.Explore(e.Exploration, metric)
	return e, nil
}

func keysOf(metrics []report.Metric) string {
	var keys []string
	for _, m := range metrics {
		keys = append(keys, m.Key)
	}
	return strings.Join(keys, ", ")
}

// axes sets the two parameters of the heat map: those in the URL, or else the first ones other than model and dataset.
func axes(e *ui.Explored, q url.Values, bad model.Invalid) {
	var order []int
	for i, p := range e.Parameters {
		if p.Name != "model" && p.Name != "dataset" {
			order = append(order, i)
		}
	}
	for i := range e.Parameters {
		if !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	asked := func(name string, otherwise int) int {
		text := q.Get(name)
		if text == "" {
			return otherwise
		}
		i := e.Index(text)
		if i < 0 {
			bad[name] = fmt.Sprintf("this sweep does not vary %q", text)
		}
		return i
	}
	if len(order) == 0 {
		return
	}
	e.X = asked("x", order[0])
	second := slices.IndexFunc(order, func(i int) bool { return i != e.X })
	if second >= 0 {
		e.Y = asked("y", order[second])
	}
	if e.X == e.Y && e.X >= 0 && q.Get("y") != "" {
		bad["y"] = "choose two different hyperparameters"
	}
}

// explore draws the explore page of a sweep.
func (h Sweeps) explore(w http.ResponseWriter, r *http.Request) error {
	e, err := h.look(r.Context(), chi.URLParam(r, "id"), r.URL.Query())
	if err != nil {
		return err
	}
	return handlers.Draw(w, r, ui.Explore(ui.NewExplore(e)))
}

// exploreFigure sends a figure of the explorer as a file.
func (h Sweeps) exploreFigure(w http.ResponseWriter, r *http.Request) error {
	name, kind, err := handlers.SplitFigure(chi.URLParam(r, "file"))
	if err != nil {
		return err
	}
	e, err := h.look(r.Context(), chi.URLParam(r, "id"), r.URL.Query())
	if err != nil {
		return err
	}
	f, ok := e.Figure(name)
	if !ok {
		return fmt.Errorf("this sweep has no figure %q: %w", name, model.ErrNotFound)
	}
	return handlers.SendFigure(w, r, f, kind)
}

// apiExplore writes the data of the explore page as JSON.
func (h Sweeps) apiExplore(w http.ResponseWriter, r *http.Request) error {
	e, err := h.look(r.Context(), chi.URLParam(r, "id"), r.URL.Query())
	if err != nil {
		return err
	}
	type parameter struct {
		Field      string    `json:"field"`
		Label      string    `json:"label"`
		Levels     []string  `json:"levels"`
		Importance []float64 `json:"importance"` // median, then ends of its interval; null if it cannot be computed
	}
	type row struct {
		Run    string            `json:"run"`
		Seed   int64             `json:"seed"`
		Stage  sweep.Stage       `json:"stage"`
		Values map[string]string `json:"values"`
		Score  model.Score       `json:"score"`
	}
	out := struct {
		Metric     string      `json:"metric"`
		Parameters []parameter `json:"parameters"`
		Chance     []float64   `json:"chance"` // importance of the seed
		Runs       []row       `json:"runs"`
	}{Metric: e.Metric.Key, Parameters: []parameter{}, Runs: []row{}}
	all, ok := e.Importances()
	share := func(i int) []float64 {
		if !ok {
			return nil
		}
		return []float64{all[i].Value, all[i].Low, all[i].High}
	}
	out.Chance = share(len(e.Parameters))
	for i, p := range e.Parameters {
		one := parameter{Field: p.Name, Label: p.Title(), Levels: p.Levels, Importance: share(i)}
		out.Parameters = append(out.Parameters, one)
	}
	for k, r := range e.Rows {
		one := row{r.ID, r.Config.Seed, r.Stage, map[string]string{}, model.Score(e.Scores[k])}
		for i, p := range e.Parameters {
			one.Values[p.Name] = r.Values[i]
		}
		out.Runs = append(out.Runs, one)
	}
	return handlers.JSON(w, http.StatusOK, out)
}
