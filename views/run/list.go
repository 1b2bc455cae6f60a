package run

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"slotscope/model"
)

// RunsView is the table of runs.
type RunsView struct {
	Rows     []RunRow
	Total    int    // runs that there are, before filtering
	Query    string // words to filter by
	LiveOnly bool
	Sort     string // column to order by, with a leading "-" for downwards
	Now      time.Time
	Problems []string // sentences on folders that are not runs

	CanEvaluate bool // runs can be selected to be evaluated
}

// RunRow is one run in the table; PSNR is in dB over its evaluation draw, nil before the first.
type RunRow struct {
	Run        model.Run
	PSNR       *float64
	Evaluation model.Evaluation
}

// evaluation is what a row says of an evaluation that is not over, or failed; empty otherwise.
func (r RunRow) evaluation() string {
	switch {
	case r.Evaluation.State == model.Queued:
		return "evaluation queued"
	case r.Evaluation.Under():
		return "evaluating"
	case r.Evaluation.Failure() != "":
		return "evaluation failed"
	}
	return ""
}

// DefaultRunSort puts the newest run first.
const DefaultRunSort = "-created"

type runColumn struct {
	key, label string
	number     bool
	down       bool // the first press orders downwards
}

var runColumns = []runColumn{
	{"state", "State", false, false},
	{"name", "Run", false, false},
	{"model", "Model", false, false},
	{"dataset", "Dataset", false, false},
	{"preset", "Preset", false, false},
	{"step", "Step", false, true},
	{"rate", "Images/s", true, true},
	{"left", "Time left", true, false},
	{"psnr", "PSNR, dB", true, true},
	{"created", "Created", true, true},
}

// ValidRunSort says whether the table can be ordered so.
func ValidRunSort(by string) bool {
	return slices.ContainsFunc(runColumns, func(c runColumn) bool { return c.key == strings.TrimPrefix(by, "-") })
}

// sortURL orders by the column, the other way round where it is ordered by already.
func (v RunsView) sortURL(c runColumn) string {
	by := c.key
	if c.down {
		by = "-" + by
	}
	if v.Sort == by {
		by = flip(by)
	}
	return v.url(by, v.LiveOnly)
}

func flip(by string) string {
	if key, down := strings.CutPrefix(by, "-"); down {
		return key
	}
	return "-" + by
}

func (v RunsView) url(sort string, live bool) string {
	q := url.Values{}
	if v.Query != "" {
		q.Set("q", v.Query)
	}
	if live {
		q.Set("live", "1")
	}
	if sort != DefaultRunSort {
		q.Set("sort", sort)
	}
	if len(q) == 0 {
		return "/runs"
	}
	return "/runs?" + q.Encode()
}

func (v RunsView) ariaSort(c runColumn) string {
	switch v.Sort {
	case c.key:
		return "ascending"
	case "-" + c.key:
		return "descending"
	}
	return "none"
}

func (v RunsView) arrow(c runColumn) string {
	switch v.Sort {
	case c.key:
		return " ↑"
	case "-" + c.key:
		return " ↓"
	}
	return ""
}
