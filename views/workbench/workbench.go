// Package workbench renders the list of runs: a table to filter, sort, group and edit.
package workbench

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/views"
)

// RunsView is one page of the list of runs.
type RunsView struct {
	Address // of this page

	Total    int    // number of runs
	Matching int    // number of runs that match the query
	Groups   int    // number of groups; 0 without grouping
	Fault    string // error in the query; empty if none
	Notices  []string

	SaveFault, SaveName string   // why a view was not saved, and the name entered; empty if none
	Problems            []string // sentences about folders that are not runs

	Columns []Column
	Rows    []Row
	Pages   int

	CanEvaluate bool
	Saved       []SavedView
	SavedName   string // name of the open view; "" if none
	SavedAt     int    // its version
	Changed     bool   // the page differs from the saved view
}

// Address is the parsed query of the list's URL.
type Address struct {
	Query   string
	Sort    string   // a column, with a leading "-" for descending
	Columns []string // nil for the default columns
	Group   string   // "" for none, "config", or a field
	Open    []string // keys of expanded groups
	Page    int      // from 1
	View    string   // the saved view it started from
}

// DefaultSort lists the newest run first.
const DefaultSort = "-created"

// Values returns the URL query, without default values.
func (a Address) Values() url.Values {
	q := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			q.Set(name, value)
		}
	}
	set("q", a.Query, "")
	set("sort", a.Sort, DefaultSort)
	set("cols", strings.Join(a.Columns, ","), "")
	set("group", a.Group, "")
	set("open", strings.Join(a.Open, ","), "")
	set("page", strconv.Itoa(max(1, a.Page)), "1")
	set("view", a.View, "")
	return q
}

// URL returns the address as a URL.
func (a Address) URL() string {
	q := a.Values()
	if len(q) == 0 {
		return "/runs"
	}
	return "/runs?" + q.Encode()
}

// Column is a column of the table.
type Column struct {
	Name, Label, Unit, Help string
	Number                  bool
	Down                    bool // the first click sorts descending
}

// Row is a run, or a group of runs.
type Row struct {
	Run    model.Run
	Cells  []Cell // one per column
	Member bool   // belongs to the group above
	Said   string // status of a queued, running or failed evaluation
	Active model.State

	Key   string // group key; "" for a run
	Label string
	IDs   []string // IDs of the group's runs
	Open  bool
}

// Cell is a value. For groups, Spread is the half-width of its 95% interval and Count the number of runs.
type Cell struct {
	Text, Spread string
	Count        int
}

// SavedView is a link to a saved view.
type SavedView struct {
	Name, URL string
	Open      bool
}

// with returns the URL of a changed address. The changed list may be shorter, so it starts at the first page.
func (v RunsView) with(change func(*Address)) string {
	a := v.Address
	a.Page, a.Columns, a.Open = 1, slices.Clone(a.Columns), slices.Clone(a.Open)
	change(&a)
	return a.URL()
}

// sortURL sorts by a column, or reverses the order if it is the sort column already.
func (v RunsView) sortURL(c Column) string {
	return v.with(func(a *Address) {
		switch by := strings.TrimPrefix(a.Sort, "-"); {
		case by == c.Name:
			a.Sort = flip(a.Sort)
		case c.Down:
			a.Sort = "-" + c.Name
		default:
			a.Sort = c.Name
		}
	})
}

func flip(by string) string {
	if key, down := strings.CutPrefix(by, "-"); down {
		return key
	}
	return "-" + by
}

func (v RunsView) ariaSort(c Column) string {
	switch v.Sort {
	case c.Name:
		return "ascending"
	case "-" + c.Name:
		return "descending"
	}
	return "none"
}

func (v RunsView) arrow(c Column) string {
	switch v.Sort {
	case c.Name:
		return " ↑"
	case "-" + c.Name:
		return " ↓"
	}
	return ""
}

// pageURL returns the URL of page n of the same list.
func (v RunsView) pageURL(n int) string {
	a := v.Address
	a.Page = n
	return a.URL()
}

// toggleURL expands or collapses a group on the same page.
func (v RunsView) toggleURL(r Row) string {
	a := v.Address
	if r.Open {
		a.Open = slices.DeleteFunc(slices.Clone(a.Open), func(key string) bool { return key == r.Key })
	} else {
		a.Open = append(slices.Clone(a.Open), r.Key)
	}
	return a.URL()
}

// shown counts the matching runs and groups.
func (v RunsView) shown() string {
	text := views.Count(v.Matching) + " of " + views.Plural(v.Total, "run", "runs")
	if v.Groups > 0 {
		text += " in " + views.Plural(v.Groups, "group", "groups")
	}
	return text
}

// hidden returns the query parameters that a form must preserve, except those in but.
func (v RunsView) hidden(but ...string) [][2]string {
	var out [][2]string
	q := v.Values()
	for _, name := range []string{"q", "sort", "cols", "group", "view"} {
		if q.Has(name) && !slices.Contains(but, name) {
			out = append(out, [2]string{name, q.Get(name)})
		}
	}
	return out
}

func (r Row) value() string {
	if r.Key != "" {
		return strings.Join(r.IDs, ",")
	}
	return r.Run.ID
}

func (r Row) what() string {
	if r.Key != "" {
		return r.Label
	}
	return views.RunName(r.Run)
}

// GroupChoice is a way to group.
type GroupChoice struct{ Key, Label string }

// groupings are the offered groupings; the URL accepts any text field or hyperparameter.
var groupings = []GroupChoice{{"", "No groups"}, {"config", "By configuration"}, {"model", "By model"}, {"dataset", "By dataset"}, {"preset", "By preset"}, {"state", "By state"}}

// others returns the offered groupings, plus the current one if it is not among them.
func (v RunsView) others() []GroupChoice {
	if slices.ContainsFunc(groupings, func(g GroupChoice) bool { return g.Key == v.Group }) {
		return groupings
	}
	return append(slices.Clone(groupings), GroupChoice{v.Group, "By " + v.Group})
}

// ColumnsView is the view of the page to choose columns.
type ColumnsView struct {
	Address
	Groups []ColumnGroup
}

// ColumnGroup is a titled group of columns.
type ColumnGroup struct {
	Title  string
	Fields []ColumnChoice
}

// ColumnChoice is a column that can be chosen.
type ColumnChoice struct {
	Column
	Chosen bool
}

// OutcomeView is the result of an action on several runs, or a request to confirm it.
type OutcomeView struct {
	Title   string
	Said    string
	Done    []model.Run
	Failed  []Failure
	Back    string
	Confirm *Confirm
}

// Failure is a run on which an action failed, with the reason.
type Failure struct {
	Run model.Run
	Why string
}

// Confirm is the form that repeats an action after confirmation.
type Confirm struct {
	Button string
	Fields [][2]string
}

// starred returns the action of a star button: "unstar" if on, else "star".
func starred(on bool) string {
	if on {
		return "unstar"
	}
	return "star"
}

// about describes which runs a group's cell averages.
func (c Cell) about() string {
	switch {
	case c.Count == 0:
		return ""
	case c.Spread == "":
		return "of " + views.Plural(c.Count, "run", "runs")
	}
	return "mean of " + views.Count(c.Count) + " seeds with its 95% t-interval"
}
