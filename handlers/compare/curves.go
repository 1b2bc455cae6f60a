package compare

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/measure/figure"
	"slotscope/model/measure/report"
	"slotscope/views"
	ui "slotscope/views/compare"
	runview "slotscope/views/run"
)

// lister lists runs with their indexed values; a RunService may implement it.
type lister interface {
	Overview(ctx context.Context) ([]model.Overview, error)
}

// curvesData returns the data with which the page's script draws curves and follows runs.
func (h Reports) curvesData(ctx context.Context, c choice, rep *report.Report) (ui.CurvesData, error) {
	names, err := h.measured(ctx, rep.Runs)
	if err != nil {
		return ui.CurvesData{}, err
	}
	at, _, err := h.standing(ctx, c)
	if err != nil {
		return ui.CurvesData{}, err
	}
	data := ui.CurvesData{Query: c.query().Encode(), Series: []ui.SeriesView{}, Runs: len(rep.Runs), Standing: at}
	for _, name := range names {
		s := runview.NameOf(name)
		data.Series = append(data.Series, ui.SeriesView{Name: name, Title: s.Title, Unit: s.Unit, Group: s.Group})
	}
	return data, nil
}

// measured lists the series that any of the runs has, in the order of the run page; unknown series follow by name.
func (h Reports) measured(ctx context.Context, runs []report.Entry) ([]string, error) {
	seen := map[string]bool{}
	if index, ok := h.Runs.(lister); ok {
		all, err := index.Overview(ctx)
		if err != nil {
			return nil, err
		}
		chosen := map[string]bool{}
		for _, e := range runs {
			chosen[e.Run.ID] = true
		}
		for _, o := range all {
			for name := range o.Values {
				seen[name] = seen[name] || chosen[o.ID]
			}
		}
	} else {
		for _, e := range runs {
			page, err := h.Runs.Points(ctx, e.Run.ID, model.PointQuery{Columns: 1})
			if err != nil {
				continue // the later request for its curve reports the error
			}
			for name := range page.Series {
				seen[name] = true
			}
		}
	}
	var names []string
	for name, has := range seen {
		if has {
			names = append(names, name)
		}
	}
	place := func(name string) int {
		all := runview.Names()
		if i := slices.IndexFunc(all, func(s runview.NamedSeries) bool { return s.Name == name }); i >= 0 {
			return i
		}
		return len(all)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	return names, nil
}

// curveAnswer is the response with one series of every group.
type curveAnswer struct {
	Series string       `json:"series"`
	Groups []groupCurve `json:"groups"`
}

type groupCurve struct {
	Label   string        `json:"label"`
	Dataset string        `json:"dataset"`
	Section string        `json:"section,omitempty"`
	Color   int           `json:"color"`          // index into the series palette
	Dash    []float64     `json:"dash,omitempty"` // of the line; differs by dataset, so that a model keeps its colour
	Batch   int           `json:"batch"`
	Points  int           `json:"points"` // used in the mean
	Mean    curveData     `json:"mean"`
	Members []memberCurve `json:"members"`
}

type curveData struct {
	Steps   []int   `json:"steps"`
	Seconds numbers `json:"seconds,omitempty"` // training time up to each step, mean over runs; only with clock=true
	Mean    numbers `json:"mean"`              // null if no run has a finite value
	Low     numbers `json:"low"`               // null if fewer than two runs have one
	High    numbers `json:"high"`
	N       []int   `json:"n"`
}

type memberCurve struct {
	Run     string  `json:"run"`
	Name    string  `json:"name"`
	Seed    int64   `json:"seed"`
	Steps   []int   `json:"steps"`
	Seconds numbers `json:"seconds,omitempty"`
	Values  numbers `json:"values"`
}

// curveAsk holds the query parameters of a request for one series.
type curveAsk struct {
	series  string
	columns int
	alpha   float64
	clock   bool
}

// readCurve parses the query parameters of a request for one series.
func readCurve(q url.Values) (curveAsk, model.Invalid) {
	a, bad := curveAsk{series: q.Get("series"), columns: 300}, model.Invalid{}
	var err error
	if a.series == "" {
		bad["series"] = "missing; name a series, e.g. ?series=total"
	}
	if text := q.Get("columns"); text != "" {
		if a.columns, err = strconv.Atoi(text); err != nil || a.columns < 1 || a.columns > handlers.MaxColumns {
			bad["columns"] = fmt.Sprintf("%q is not a whole number from 1 to %d", text, handlers.MaxColumns)
		}
	}
	if text := q.Get("smooth"); text != "" {
		if a.alpha, err = strconv.ParseFloat(text, 64); err != nil || !(a.alpha >= 0 && a.alpha <= handlers.MaxSmooth) {
			bad["smooth"] = fmt.Sprintf("%q is not a number from 0 to %v", text, handlers.MaxSmooth)
		}
	}
	if text := q.Get("clock"); text != "" {
		if a.clock, err = strconv.ParseBool(text); err != nil {
			bad["clock"] = fmt.Sprintf("%q is not a boolean; use true or false", text)
		}
	}
	return a, bad
}

// curves writes one series of every group: mean, interval and members, computed from every point and thinned to columns.
func (h Reports) curves(w http.ResponseWriter, r *http.Request) error {
	c, err := readChoice(r.URL.Query())
	if err != nil {
		return err
	}
	a, bad := readCurve(r.URL.Query())
	if c.empty() {
		bad["runs"] = "missing; name runs (?runs=ID,ID) or a sweep (?sweep=ID)"
	}
	if err := bad.OrNil(); err != nil {
		return err
	}
	rep, err := h.outline(r.Context(), c)
	if err != nil {
		return err
	}
	out := curveAnswer{Series: a.series, Groups: []groupCurve{}}
	for _, s := range rep.Sections {
		for nth, d := range s.Datasets() {
			for _, g := range s.Of(d) {
				one, err := groupCurveOf(g, a)
				if err != nil {
					return err
				}
				if place := s.Place(g.Label); one.Points > 0 {
					one.Section, one.Color, one.Dataset, one.Dash = s.Name, place%figure.Series, report.DatasetLabel(d), figure.Dash(place+nth*figure.Slots)
					out.Groups = append(out.Groups, one)
				}
			}
		}
	}
	return handlers.JSON(w, http.StatusOK, out)
}

func groupCurveOf(g report.Group, a curveAsk) (groupCurve, error) {
	mean, lines, err := g.CurveOf(a.series, a.alpha)
	if err != nil {
		return groupCurve{}, err
	}
	out := groupCurve{Label: g.Label, Dataset: g.Dataset, Batch: g.Config.Batch, Points: mean.Points, Members: []memberCurve{}}
	thin := mean.Thin(a.columns)
	out.Mean = curveData{Steps: append([]int{}, thin.Steps...), Mean: thin.Mean, Low: thin.Low, High: thin.High, N: append([]int{}, thin.N...)}
	var clocks []func(int) float64
	for _, line := range lines {
		m := memberCurve{Run: line.Run.ID, Name: views.RunName(line.Run), Seed: line.Run.Config.Seed, Steps: []int{}}
		for _, s := range line.Thin(a.columns) {
			m.Steps, m.Values = append(m.Steps, s.Step), append(m.Values, s.Value)
		}
		if a.clock {
			clock, err := line.Clock()
			if err != nil {
				return out, err
			}
			if clock != nil {
				clocks, m.Seconds = append(clocks, clock), secondsOf(m.Steps, clock)
			}
		}
		out.Members = append(out.Members, m)
	}
	out.Mean.Seconds = secondsOf(out.Mean.Steps, clocks...)
	return out, nil
}

// secondsOf returns the mean of clocks at every step; nil if there are none.
func secondsOf(steps []int, clocks ...func(step int) float64) numbers {
	if len(clocks) == 0 {
		return nil
	}
	out := make(numbers, len(steps))
	for i, step := range steps {
		for _, clock := range clocks {
			out[i] += clock(step) / float64(len(clocks))
		}
	}
	return out
}

// numbers marshals as an array with 7 significant digits, more than a screen shows, and null for non-finite values. Marshalling
// the whole slice is several times as fast as marshalling value by value.
type numbers []float64

func (n numbers) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 2+12*len(n)), '[')
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, v, 'g', 7, 64)
		}
	}
	return append(b, ']'), nil
}
