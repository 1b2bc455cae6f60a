package sweep

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slotscope/model/measure/figure"
	"slotscope/model/measure/report"
	"slotscope/model/sweep"
	"slotscope/views"
)

// Explored is the data of the explore page: a sweep's runs with the selected score.
type Explored struct {
	report.Explored
	ID, Name string
	X, Y     int // indices of the heat map's parameters; −1 if none
}

// NewExplore returns the view of the explore page.
func NewExplore(e Explored) ExploreView {
	view := ExploreView{ID: e.ID, Name: e.Name, Metric: e.Metric.Key, MetricLabel: e.Metric.Label, Unit: e.Metric.Unit, Query: e.query().Encode()}
	for _, m := range e.Measured() {
		view.Metrics = append(view.Metrics, Choosable{Key: m.Key, Label: m.Label, Chosen: m.Key == e.Metric.Key})
	}
	for i, p := range e.Parameters {
		view.X = append(view.X, Choosable{Key: p.Name, Label: p.Title(), Chosen: i == e.X})
		view.Y = append(view.Y, Choosable{Key: p.Name, Label: p.Title(), Chosen: i == e.Y})
		view.Marginals = append(view.Marginals, views.FigureOf(e.marginal(i), "/sweeps/"+e.ID+"/figures", e.query()))
	}
	view.Heat, view.Scored = e.heat(), e.Scored()
	view.Data, view.Rows = e.coordinates(), e.rows()
	return view
}

// query returns the URL parameters of the current view.
func (e Explored) query() url.Values {
	q := url.Values{"metric": {e.Metric.Key}}
	if e.X >= 0 {
		q.Set("x", e.Parameters[e.X].Name)
	}
	if e.Y >= 0 {
		q.Set("y", e.Parameters[e.Y].Name)
	}
	return q
}

// Figure draws a figure of the page by name; false if there is none.
func (e Explored) Figure(name string) (figure.Figure, bool) {
	if name == "importance" {
		return e.importanceFigure(), true
	}
	for i := range e.Parameters {
		if f := e.marginal(i); f.Name == name {
			return f, true
		}
	}
	return figure.Figure{}, false
}

// heat returns the mean score of every pair of levels, over all other varied hyperparameters.
func (e Explored) heat() HeatView {
	v := HeatView{}
	if e.X < 0 {
		return v
	}
	x := e.Parameters[e.X]
	v.X, v.Columns = x.Title(), x.Levels
	rows := []string{""}
	if e.Y >= 0 {
		v.Y, rows = e.Parameters[e.Y].Title(), e.Parameters[e.Y].Levels
	}
	low, high := math.Inf(1), math.Inf(-1)
	cells := make([][]report.Summary, len(rows))
	for i, name := range rows {
		row := HeatRow{Name: name}
		for j := range x.Levels {
			var values []float64
			cell := HeatCell{}
			for k, r := range e.Rows {
				if r.Levels[e.X] != j || e.Y >= 0 && r.Levels[e.Y] != i {
					continue
				}
				cell.Of++
				if !math.IsNaN(e.Scores[k]) {
					values, cell.Runs = append(values, e.Scores[k]), append(cell.Runs, r.ID)
				}
			}
			s := report.Summarise(values)
			if cell.N = s.N; s.N > 0 {
				cell.Text, low, high = s.Text(e.Metric.Decimals), min(low, s.Mean), max(high, s.Mean)
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
func (e Explored) marginal(i int) figure.Figure {
	p := e.Parameters[i]
	bars := figure.Bars{Name: e.Metric.Label}
	for level := range p.Levels {
		values := e.At(i, level)
		s := report.Summarise(values)
		bars.Value, bars.Low, bars.High, bars.Each = append(bars.Value, s.Mean), append(bars.Low, s.Lo), append(bars.High, s.Hi), append(bars.Each, values)
	}
	return figure.BarChart{Name: "marginal-" + strings.ReplaceAll(p.Name, "_", "-"), Title: e.Metric.Label + " by " + p.Title(), Groups: p.Levels, Bars: []figure.Bars{bars},
		Y: figure.Axis{Label: strings.TrimSpace(e.Metric.Label + " " + e.Metric.Unit)}, Height: 160,
		Note: "Mean over all runs with that value, with 95% interval; points are runs.", Empty: "No run has this score yet."}.Draw()
}

// importanceFigure draws the importances, greatest first.
func (e Explored) importanceFigure() figure.Figure {
	all, ok := e.Importances()
	chart := figure.BarChart{Name: "importance", Title: "Importance for " + e.Metric.Label, Y: figure.Axis{Label: "share of variance"}, Width: 560, Height: 180,
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

// coordinates returns the axes and lines of the parallel coordinates plot: every parameter, then the score.
func (e Explored) coordinates() Coordinates {
	c := Coordinates{Axes: []CoordinateAxis{}, Lines: []CoordinateLine{}}
	for _, p := range e.Parameters {
		c.Axes = append(c.Axes, CoordinateAxis{Name: p.Name, Title: p.Title(), Levels: p.Levels})
	}
	low, high := e.Range()
	if low > high {
		return c
	}
	c.Axes = append(c.Axes, CoordinateAxis{Name: "score", Title: e.Metric.Label, Low: low, High: high})
	for k, r := range e.Rows {
		if math.IsNaN(e.Scores[k]) {
			continue
		}
		line := CoordinateLine{Run: r.ID, Score: e.Scores[k], Shade: figure.Heat((e.Scores[k] - low) / max(high-low, 1e-12))}
		for i, p := range e.Parameters {
			at := -1.0
			if r.Levels[i] >= 0 {
				at = (float64(r.Levels[i]) + 0.5) / float64(len(p.Levels))
			}
			line.At = append(line.At, at)
		}
		line.At = append(line.At, (e.Scores[k]-low)/max(high-low, 1e-12))
		c.Lines = append(c.Lines, line)
	}
	return c
}

// rows returns the runs, best first; those without the score come last.
func (e Explored) rows() (rows []ExploreRow) {
	for _, k := range e.Order() {
		r := e.Rows[k]
		row := ExploreRow{SweepItem: ItemOf(r.Standing), Seed: r.Config.Seed, Values: r.Values, Score: "–"}
		if v := e.Scores[k]; !math.IsNaN(v) {
			row.Score = strconv.FormatFloat(v, 'f', e.Metric.Decimals+1, 64)
		}
		rows = append(rows, row)
	}
	return rows
}

// ItemOf returns the table row of a run.
func ItemOf(s sweep.Standing) SweepItem {
	v := SweepItem{ID: s.ID, Name: s.Name, Stage: string(s.Stage), Run: s.Run, Exists: s.Stage != sweep.Planned, Steps: s.Config.Steps, Choosing: len(s.Parts) == 0, Problem: s.Problem}
	if s.Scores != nil {
		for _, key := range []string{"infom", "psnr"} {
			m, _ := report.MetricByKey(key)
			v.Scores = append(v.Scores, report.Summarise([]float64{m.Of(*s.Scores)}).Text(m.Decimals))
		}
	}
	return v
}
