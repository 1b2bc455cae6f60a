// Package compare draws comparisons and reports of runs.
package compare

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/figure"
	"slotscope/views"
)

// CompareView is the comparison of runs; without sections it asks which runs.
type CompareView struct {
	Title    string
	Query    string            // which runs, as an address says it
	Fields   map[string]string // the same, for a form
	Rule     string            // what is set in bold
	Picker   []PickGroup
	Sections []SectionView
	Left     []LeftRun
	Notes    []string
	Settings SettingsView
	Curves   CurvesData
}

// PickGroup is runs to choose from that differ in their seeds alone.
type PickGroup struct {
	Label, Dataset, Preset string
	Steps                  int
	Runs                   []PickRun
}

// PickRun is one run to choose.
type PickRun struct {
	Run    model.Run
	Chosen bool
}

// SectionView is one part of a comparison or report.
type SectionView struct {
	Key, Name, About string
	Tables           []ScoreTable
	Choices          []ChoiceView
	Ablations        ListTable
	Figures          []views.FigureView
	Pairs            []PairView
}

// ScoreTable is the scores on one dataset, or on all.
type ScoreTable struct {
	Title    string
	Heads    []ScoreHead
	Rows     []ScoreRow
	Withheld []string // sentences on rows that may claim nothing
	Other    string   // what published values marked with * are of
	Verdicts []Verdict
}

// NoWinner is the one reason why none of several metrics has a winner; empty where one has, or where the reasons differ.
func (t ScoreTable) NoWinner() string {
	for _, v := range t.Verdicts {
		if v.Winner != "" || v.Why != t.Verdicts[0].Why {
			return ""
		}
	}
	if len(t.Verdicts) < 2 {
		return ""
	}
	return t.Verdicts[0].Why
}

// ScoreHead is a metric.
type ScoreHead struct{ Label, Unit, About string }

// ScoreRow is one group of runs; Place is its own among the series, which gives it colour and dash.
type ScoreRow struct {
	Label, Seeds string
	Place        int
	Chance       bool // of the row above
	Cells        []ScoreCell
}

// ScoreCell is a mean with its interval; Published is the paper's value, Why the reason where ours is not said to be equivalent.
type ScoreCell struct {
	Text, Published, Why string
	Other                string // what the published value is of, where that is something else: "other images"
	Equivalent           bool
	Each                 []string // value by seed
	Bold                 bool
}

// Verdict names the winner by one metric, or says why none is named.
type Verdict struct {
	Metric, Winner, Between, Difference, Why string
}

// ListTable is a plain table.
type ListTable struct {
	Heads []string
	Rows  [][]string
}

// ChoiceView is a hyperparameter that a sweep chose.
type ChoiceView struct {
	Model, Dataset, Field, Chosen string
	Tried                         []string
}

// LeftRun is a run that no mean counts.
type LeftRun struct {
	Run      model.Run
	Why      string
	Unscored bool // it only waits to be evaluated
}

// unscored are the IDs of runs that only wait to be evaluated.
func unscored(left []LeftRun) (ids []string) {
	for _, l := range left {
		if l.Unscored {
			ids = append(ids, l.Run.ID)
		}
	}
	return ids
}

// PairView is one pair of a dataset's images through several runs.
type PairView struct {
	Dataset, Name  string // in words; as an address has it
	Section        string // key of the section
	Rows           []SwapRow
	A, B, Last     int    // numbers of the images; the greatest there is
	Swaps, Strip   string // names of the figures
	Query, Problem string // Problem says why there are no images to choose, empty for none
}

// SwapRow is a run whose single-slot swaps are shown.
type SwapRow struct {
	Label string
	Run   model.Run
}

// SettingsView says by which hyperparameters groups of runs differ.
type SettingsView struct {
	Heads []ScoreHead
	Rows  []SettingsRow
}

// SettingsRow is one group, with a value for each head.
type SettingsRow struct {
	Label, Seeds string
	Place        int
	Values       []string
}

// CurvesData is what the curves' module needs to know.
type CurvesData struct {
	Query    string       `json:"query"`
	Series   []SeriesView `json:"series"`
	Runs     int          `json:"runs"`
	Standing Standing     `json:"standing"`
}

// SeriesView is a series that can be drawn.
type SeriesView struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"`
	Group string `json:"group"`
}

// Standing is how far compared runs are: two sums, of their points, and of their states and scores. What differs is to be asked for again.
type Standing struct {
	Points string `json:"points"`
	Scores string `json:"scores"`
}

// seriesGroup is series under one heading.
type seriesGroup struct {
	Name   string
	Series []SeriesView
}

// groups are the series by heading, in order.
func (d CurvesData) groups() (all []seriesGroup) {
	for _, s := range d.Series {
		name := s.Group
		if name == "" {
			name = "Decisive"
		}
		i := slices.IndexFunc(all, func(g seriesGroup) bool { return g.Name == name })
		if i < 0 {
			i, all = len(all), append(all, seriesGroup{Name: name})
		}
		all[i].Series = append(all[i].Series, s)
	}
	return all
}

// dash is the dash of a series as an SVG attribute has it.
func dash(place int) string {
	var parts []string
	for _, d := range figure.Dash(place) {
		parts = append(parts, strconv.FormatFloat(d, 'g', -1, 64))
	}
	return strings.Join(parts, " ")
}

func seriesClass(place int) string { return fmt.Sprint("k-s", place%figure.Series) }

// ReportView is the page of a report.
type ReportView struct {
	Title    string
	Query    string
	Fields   map[string]string
	Rule     string
	Files    []ReportFile
	Models   int // runs whose model can be had, too
	Sections []SectionView
	Left     []LeftRun
	Notes    []string
}

// models says what the archive with models holds.
func (v ReportView) models() string {
	whose := "the models of the " + strconv.Itoa(v.Models) + " runs with a checkpoint"
	if v.Models == 1 {
		whose = "the model of the one run with a checkpoint"
	}
	return "The same, and under bundles/ " + whose + ", for PyTorch, ONNX and model hubs; several megabytes each."
}

// ReportFile is one thing to download.
type ReportFile struct{ Name, About string }

// manyRuns is from how many runs on single ones are drawn only when asked for: more lines hide the means.
const manyRuns = 60

// rules are the choices of what is set in bold.
var rules = []struct{ key, label string }{
	{"paper", "the paper's rule: lower end ≥ the leader's lower end"},
	{"overlap", "QLAE's rule: upper end ≥ the leader's lower end"},
	{"none", "nothing in bold"},
}

func reportURL(file, query string) string { return "/api/report/" + url.PathEscape(file) + "?" + query }

// withQuery adds a query to a path.
func withQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

// pickText is what the filter of the picker looks at.
func (g PickGroup) pickText() string {
	words := []string{g.Label, g.Dataset, g.Preset}
	for _, r := range g.Runs {
		words = append(words, r.Run.Name, r.Run.ID, string(r.Run.State))
	}
	return strings.ToLower(strings.Join(words, " "))
}

func (g PickGroup) chosen() bool {
	for _, r := range g.Runs {
		if r.Chosen {
			return true
		}
	}
	return false
}

// figure is the address of a drawing of the pair.
func (v PairView) figure(name, kind string) string {
	return fmt.Sprintf("/compare/figures/%s.%s?%s&a=%d&b=%d", name, kind, v.Query, v.A, v.B)
}

func joined(parts []string) string { return strings.Join(parts, "; ") }

func dashed(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
