package sweep

import (
	"fmt"
	"strings"

	"slotscope/views"
)

// ExploreView is the explore page of a sweep.
type ExploreView struct {
	ID, Name, Metric, MetricLabel, Unit, Query string
	Metrics, X, Y                              []Choosable
	Scored                                     int // runs
	Heat                                       HeatView
	Marginals                                  []views.FigureView
	Data                                       Coordinates
	Rows                                       []ExploreRow
}

// HeatView is the mean score over two hyperparameters.
type HeatView struct {
	X, Y    string // Y is empty if only one hyperparameter differs
	Columns []string
	Rows    []HeatRow
}

// HeatRow is one level of Y.
type HeatRow struct {
	Name  string
	Cells []HeatCell
}

// HeatCell is the runs with one level of X and one of Y.
type HeatCell struct {
	Text  string // mean and interval; empty if no run has the score
	N, Of int    // runs with the score, all runs
	Shade int    // index into the heat scale
	Runs  []string
}

// mostCompared is the most runs of one comparison.
const mostCompared = 200

// address returns the URL of the comparison of the cell's runs, at their swaps.
func (c HeatCell) address() string {
	return "/compare?runs=" + strings.Join(c.Runs[:min(len(c.Runs), mostCompared)], ",") + "#swaps"
}

func (c HeatCell) count() string {
	if c.N == c.Of {
		return views.Plural(c.N, "run", "runs")
	}
	return fmt.Sprintf("%d of %s", c.N, views.Plural(c.Of, "run", "runs"))
}

// Coordinates is the data of the parallel coordinates plot, as JSON.
type Coordinates struct {
	Axes  []CoordinateAxis `json:"axes"`
	Lines []CoordinateLine `json:"lines"`
}

// CoordinateAxis is a hyperparameter with its levels, or the score with its range.
type CoordinateAxis struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Levels []string `json:"levels"` // null for the score
	Low    float64  `json:"low"`
	High   float64  `json:"high"`
}

// CoordinateLine is the line of a run: its position on each axis, from 0 to 1, or −1 if it has no such hyperparameter.
type CoordinateLine struct {
	Run   string    `json:"run"`
	At    []float64 `json:"at"`
	Score float64   `json:"score"`
	Shade int       `json:"shade"`
}

// ExploreRow is a run with its hyperparameter values.
type ExploreRow struct {
	SweepItem
	Seed   int64
	Values []string
	Score  string
}
