package sweep

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/measure/figure"
	"slotscope/model/measure/importance"
	"slotscope/model/measure/report"
	"slotscope/model/sweep"
	"slotscope/views"
	ui "slotscope/views/sweep"
)

// explored is a sweep's runs with the selected score.
type explored struct {
	sweep.Status
	sweep.Exploration
	metric  report.Metric
	metrics []report.Metric // scores that at least one run has
	scores  []float64       // of each row; NaN if missing
	x, y    int             // indices of the heat map's parameters; −1 if none
}

// look parses the score and the two hyperparameters selected in a URL; unknown names are errors.
func (h Sweeps) look(ctx context.Context, id string, q url.Values) (explored, error) {
	s, err := h.Service.Get(ctx, id)
	if err != nil {
		return explored{}, err
	}
	e := explored{Status: s, Exploration: s.Board.Explore(), x: -1, y: -1}
	for _, m := range report.AllMetrics() {
		if slices.ContainsFunc(e.Rows, func(r sweep.Row) bool { return r.Scores != nil && !math.IsNaN(m.Of(*r.Scores)) }) {
			e.metrics = append(e.metrics, m)
		}
	}
	bad := model.Invalid{}
	key := cmp.Or(q.Get("metric"), "infom")
	var ok bool
	if e.metric, ok = report.MetricByKey(key); !ok {
		bad["metric"] = fmt.Sprintf("%q is not a score; use one of %s", key, keysOf(report.AllMetrics()))
	}
	e.axes(q, bad)
	if err := bad.OrNil(); err != nil {
		return e, err
	}
	for _, r := range e.Rows {
		v := math.NaN()
		if r.Scores != nil {
			v = e.metric.Of(*r.Scores)
		}
		e.scores = append(e.scores, v)
	}
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
func (e *explored) axes(q url.Values, bad model.Invalid) {
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
	e.x = asked("x", order[0])
	second := slices.IndexFunc(order, func(i int) bool { return i != e.x })
	if second >= 0 {
		e.y = asked("y", order[second])
	}
	if e.x == e.y && e.x >= 0 && q.Get("y") != "" {
		bad["y"] = "choose two different hyperparameters"
	}
}

// query returns the URL parameters of the current view.
func (e explored) query() url.Values {
	q := url.Values{"metric": {e.metric.Key}}
	if e.x >= 0 {
		q.Set("x", e.Parameters[e.x].Name)
	}
	if e.y >= 0 {
		q.Set("y", e.Parameters[e.y].Name)
	}
	return q
}

// explore draws the explore page of a sweep.
func (h Sweeps) explore(w http.ResponseWriter, r *http.Request) error {
	e, err := h.look(r.Context(), chi.URLParam(r, "id"), r.URL.Query())
	if err != nil {
		return err
	}
	view := ui.ExploreView{ID: e.ID, Name: e.Plan.Name, Metric: e.metric.Key, MetricLabel: e.metric.Label, Unit: e.metric.Unit, Query: e.query().Encode()}
	for _, m := range e.metrics {
		view.Metrics = append(view.Metrics, ui.Choosable{Key: m.Key, Label: m.Label, Chosen: m.Key == e.metric.Key})
	}
	for i, p := range e.Parameters {
		view.X = append(view.X, ui.Choosable{Key: p.Name, Label: p.Title(), Chosen: i == e.x})
		view.Y = append(view.Y, ui.Choosable{Key: p.Name, Label: p.Title(), Chosen: i == e.y})
		view.Marginals = append(view.Marginals, views.FigureOf(e.marginal(i), "/sweeps/"+e.ID+"/figures", e.query()))
	}
	view.Heat, view.Scored = e.heat(), e.scored()
	view.Data, view.Rows = e.coordinates(), e.rows()
	return handlers.Draw(w, r, ui.Explore(view))
}

func (e explored) scored() (n int) {
	for _, v := range e.scores {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}

// heat returns the mean score of every pair of levels, over all other varied hyperparameters.
func (e explored) heat() ui.HeatView {
	v := ui.HeatView{}
	if e.x < 0 {
		return v
	}
	x := e.Parameters[e.x]
	v.X, v.Columns = x.Title(), x.Levels
	rows := []string{""}
	if e.y >= 0 {
		v.Y, rows = e.Parameters[e.y].Title(), e.Parameters[e.y].Levels
	}
	low, high := math.Inf(1), math.Inf(-1)
	cells := make([][]report.Summary, len(rows))
	for i, name := range rows {
		row := ui.HeatRow{Name: name}
		for j := range x.Levels {
			var values []float64
			cell := ui.HeatCell{}
			for k, r := range e.Rows {
				if r.Levels[e.x] != j || e.y >= 0 && r.Levels[e.y] != i {
					continue
				}
				cell.Of++
				if !math.IsNaN(e.scores[k]) {
					values, cell.Runs = append(values, e.scores[k]), append(cell.Runs, r.ID)
				}
			}
			s := report.Summarise(values)
			if cell.N = s.N; s.N > 0 {
				cell.Text, low, high = s.Text(e.metric.Decimals), min(low, s.Mean), max(high, s.Mean)
			}
			cells[i], row.Cells = append(cells[i], s), append(row.Cells, cell)
		}
		v.Rows = append(v.Rows, row)
	}
	for i := range v.Rows {
		for j := range v.Rows[i].Cells {
			if s := cells[i][j]; s.N > 0 {
				t := 0.5
				if high > low {
					t = (s.Mean - low) / (high - low)
				}
				v.Rows[i].Cells[j].Shade = figure.Heat(t)
			}
		}
	}
	return v
}

// marginal draws the mean score at every level of a parameter, over all other varied hyperparameters.
func (e explored) marginal(i int) figure.Figure {
	p := e.Parameters[i]
	bars := figure.Bars{Name: e.metric.Label}
	for level := range p.Levels {
		var values []float64
		for k, r := range e.Rows {
			if r.Levels[i] == level && !math.IsNaN(e.scores[k]) {
				values = append(values, e.scores[k])
			}
		}
		s := report.Summarise(values)
		bars.Value, bars.Low, bars.High, bars.Each = append(bars.Value, s.Mean), append(bars.Low, s.Lo), append(bars.High, s.Hi), append(bars.Each, values)
	}
	return figure.BarChart{Name: "marginal-" + strings.ReplaceAll(p.Name, "_", "-"), Title: e.metric.Label + " by " + p.Title(), Groups: p.Levels, Bars: []figure.Bars{bars},
		Y: figure.Axis{Label: strings.TrimSpace(e.metric.Label + " " + e.metric.Unit)}, Height: 160,
		Note: "Mean over all runs with that value, with 95% interval; points are runs.", Empty: "No run has this score yet."}.Draw()
}

// importances returns the share of the score's variance that each parameter alone explains; the last element is that of the seed, which
// is chance. ok is false if too few runs have a score or nothing differs.
func (e explored) importances() (all []importance.Input, ok bool) {
	var x [][]float64
	var y []float64
	var group []int
	for k, r := range e.Rows {
		if !math.IsNaN(e.scores[k]) {
			x, y, group = append(x, append(slices.Clone(r.Numbers), float64(r.Config.Seed))), append(y, e.scores[k]), append(group, r.Setting)
		}
	}
	if len(e.Parameters) == 0 {
		return nil, false
	}
	return importance.Of(x, y, group, 0)
}

// importanceFigure draws the importances, greatest first.
func (e explored) importanceFigure() figure.Figure {
	all, ok := e.importances()
	chart := figure.BarChart{Name: "importance", Title: "Importance for " + e.metric.Label, Y: figure.Axis{Label: "share of variance"}, Width: 560, Height: 180,
		Note:  "Share of the score's variance that each hyperparameter alone explains, by functional ANOVA on a regression forest; the rest up to 1 is interactions. Median and 95% interval over 40 bootstrap samples of settings. The seed shows the chance level.",
		Empty: "Needs at least 8 runs with different scores."}
	if ok {
		order := make([]int, len(all))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].Value, all[a].Value) })
		bars := figure.Bars{Name: "importance"}
		for _, i := range order {
			title := "Seed (chance)"
			if i < len(e.Parameters) {
				title = e.Parameters[i].Title()
			}
			chart.Groups = append(chart.Groups, title)
			bars.Value, bars.Low, bars.High = append(bars.Value, all[i].Value), append(bars.Low, all[i].Low), append(bars.High, all[i].High)
		}
		chart.Bars = []figure.Bars{bars}
	}
	return chart.Draw()
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
	if name == "importance" {
		return handlers.SendFigure(w, r, e.importanceFigure(), kind)
	}
	for i := range e.Parameters {
		if f := e.marginal(i); f.Name == name {
			return handlers.SendFigure(w, r, f, kind)
		}
	}
	return fmt.Errorf("this sweep has no figure %q: %w", name, model.ErrNotFound)
}

// coordinates returns the axes and lines of the parallel coordinates plot: every parameter, then the score.
func (e explored) coordinates() ui.Coordinates {
	c := ui.Coordinates{Axes: []ui.CoordinateAxis{}, Lines: []ui.CoordinateLine{}}
	for _, p := range e.Parameters {
		c.Axes = append(c.Axes, ui.CoordinateAxis{Name: p.Name, Title: p.Title(), Levels: p.Levels})
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range e.scores {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return c
	}
	c.Axes = append(c.Axes, ui.CoordinateAxis{Name: "score", Title: e.metric.Label, Low: low, High: high})
	for k, r := range e.Rows {
		if math.IsNaN(e.scores[k]) {
			continue
		}
		line := ui.CoordinateLine{Run: r.ID, Score: e.scores[k], Shade: figure.Heat((e.scores[k] - low) / max(high-low, 1e-12))}
		for i, p := range e.Parameters {
			at := -1.0
			if r.Levels[i] >= 0 {
				at = (float64(r.Levels[i]) + 0.5) / float64(len(p.Levels))
			}
			line.At = append(line.At, at)
		}
		line.At = append(line.At, (e.scores[k]-low)/max(high-low, 1e-12))
		c.Lines = append(c.Lines, line)
	}
	return c
}

// rows returns the runs, best first; those without the score come last.
func (e explored) rows() (rows []ui.ExploreRow) {
	order := make([]int, len(e.Rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := e.scores[a], e.scores[b]
		if math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Compare(map[bool]int{true: 1}[math.IsNaN(x)], map[bool]int{true: 1}[math.IsNaN(y)])
		}
		return cmp.Compare(y, x)
	})
	for _, k := range order {
		r := e.Rows[k]
		row := ui.ExploreRow{SweepItem: itemView(r.Standing), Seed: r.Config.Seed, Values: r.Values, Score: "–"}
		if v := e.scores[k]; !math.IsNaN(v) {
			row.Score = strconv.FormatFloat(v, 'f', e.metric.Decimals+1, 64)
		}
		rows = append(rows, row)
	}
	return rows
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
	}{Metric: e.metric.Key, Parameters: []parameter{}, Runs: []row{}}
	all, ok := e.importances()
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
		one := row{r.ID, r.Config.Seed, r.Stage, map[string]string{}, model.Score(e.scores[k])}
		for i, p := range e.Parameters {
			one.Values[p.Name] = r.Values[i]
		}
		out.Runs = append(out.Runs, one)
	}
	return handlers.JSON(w, http.StatusOK, out)
}
