// Package compare renders the comparison and report pages.
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

// CompareView is the comparison page; without sections it shows only the run picker.
type CompareView struct {
	Title    string
	Query    string            // query string that selects the runs
	Fields   map[string]string // the same as hidden form fields
	Rule     string            // key of the rule for bold values
	Picker   []PickGroup
	Sections []SectionView
	Left     []LeftRun
	Notes    []string
	Settings SettingsView
	Curves   CurvesData
}

// PickGroup is selectable runs that differ only in their seed.
type PickGroup struct {
	Label, Dataset, Preset string
	Steps                  int
	Runs                   []PickRun
}

// PickRun is one selectable run.
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

// ScoreTable is the scores on one dataset, or on all datasets.
type ScoreTable struct {
	Title    string
	Heads    []ScoreHead
	Rows     []ScoreRow
	Withheld []string // reasons why rows support no claim
	Other    string   // footnote of published values marked with *
	Verdicts []Verdict
}

// NoWinner returns the reason shared by all metrics why none has a winner. It is empty if any metric has a winner, if the
// reasons differ, or if there are fewer than two metrics.
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

// ScoreHead is the column head of a metric.
type ScoreHead struct{ Label, Unit, About string }

// ScoreRow is one group of runs; Place is its index among the series, which determines colour and dash.
type ScoreRow struct {
	Label, Seeds string
	Place        int
	Chance       bool // chance level of the row above
	Cells        []ScoreCell
}

// ScoreCell is a mean with its interval. Published is the paper's value; Why is the reason if ours is not called equivalent.
type ScoreCell struct {
	Text, Published, Why string
	Other                string // what the published value was measured on, if different: "other images"
	Equivalent           bool
	Each                 []string // value per seed
	Bold                 bool
}

// Verdict is the winner by one metric, or the reason why there is none.
type Verdict struct {
	Metric, Winner, Between, Difference, Why string
}

// ListTable is a plain table.
type ListTable struct {
	Heads []string
	Rows  [][]string
}

// ChoiceView is a hyperparameter that a sweep selected.
type ChoiceView struct {
	Model, Dataset, Field, Chosen string
	Tried                         []string
}

// LeftRun is a run excluded from all means.
type LeftRun struct {
	Run      model.Run
	Why      string
	Unscored bool // only its evaluation is missing
}

// unscored returns the IDs of the runs that are excluded only because they are not evaluated yet.
func unscored(left []LeftRun) (ids []string) {
	for _, l := range left {
		if l.Unscored {
			ids = append(ids, l.Run.ID)
		}
	}
	return ids
}

// PairView is one pair of dataset images decoded by several runs.
type PairView struct {
	Dataset, Name  string // label; name as used in URLs
	Section        string // key of the section
	Rows           []SwapRow
	A, B, Last     int    // image numbers; Last is the largest valid one
	Swaps, Strip   string // names of the figures
	Query, Problem string // Problem is why no images can be chosen; empty if none
}

// NoImages says that the images of a dataset cannot be read.
func NoImages(dataset string) string {
	return fmt.Sprintf("The images of %s cannot be read. See the Datasets page for what is missing.", dataset)
}

// SeedValue is the value of one seed.
func SeedValue(seed int64, v float64) string {
	return fmt.Sprintf("seed %d: %s", seed, strconv.FormatFloat(v, 'f', 4, 64))
}

// SwapRow is a run with its single-slot swaps.
type SwapRow struct {
	Label string
	Run   model.Run
}

// SettingsView is the table of hyperparameters that differ between groups of runs.
type SettingsView struct {
	Heads []ScoreHead
	Rows  []SettingsRow
}

// SettingsRow is one group with a value for each head.
type SettingsRow struct {
	Label, Seeds string
	Place        int
	Values       []string
}

// CurvesData is the input of the curves module, as JSON.
type CurvesData struct {
	Query    string       `json:"query"`
	Series   []SeriesView `json:"series"`
	Runs     int          `json:"runs"`
	Standing Standing     `json:"standing"`
}

// SeriesView is a series that can be plotted.
type SeriesView struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"`
	Group string `json:"group"`
}

// Standing is the progress of the compared runs as two checksums, one of their points, one of their states and scores. The page
// reloads the part whose checksum changed.
type Standing struct {
	Points string `json:"points"`
	Scores string `json:"scores"`
}

// seriesGroup is series under one heading.
type seriesGroup struct {
	Name   string
	Series []SeriesView
}

// groups returns the series grouped by heading, in order.
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

// dash returns the stroke-dasharray of a series.
func dash(place int) string {
	var parts []string
	for _, d := range figure.Dash(place) {
		parts = append(parts, strconv.FormatFloat(d, 'g', -1, 64))
	}
	return strings.Join(parts, " ")
}

func seriesClass(place int) string { return fmt.Sprint("k-s", place%figure.Series) }

// ReportView is the report page.
type ReportView struct {
	Title    string
	Query    string
	Fields   map[string]string
	Rule     string
	Files    []ReportFile
	Models   int // runs whose model can be included
	Sections []SectionView
	Left     []LeftRun
	Notes    []string
}

// models describes the contents of the archive with models.
func (v ReportView) models() string {
	whose := "the models of the " + strconv.Itoa(v.Models) + " runs with a checkpoint"
	if v.Models == 1 {
		whose = "the model of the one run with a checkpoint"
	}
	return "The same files plus, in bundles/, " + whose + ", for PyTorch, ONNX and model hubs; several megabytes each."
}

// ReportFile is one download.
type ReportFile struct{ Name, About string }

// Archives are the downloads that cover all files of a report: their sums, and an archive, by name.
func Archives(sums, archive string) []ReportFile {
	return []ReportFile{{sums, "SHA-256 of every file in the archive."}, {archive, "All of these files, plus every figure as SVG and PNG."}}
}

// manyRuns is the largest number of runs for which individual curves are shown by default; more lines would hide the means.
const manyRuns = 60

// rules are the choices for bold values.
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

// pickText returns the text that the picker's filter searches.
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

// figure returns the URL of a figure of the pair.
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
