// Package workbench draws the list of runs: a table to filter, order, group and act on.
package workbench

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/views"
)

// RunsView is one page of the list of runs, as its address asks for it.
type RunsView struct {
	Address // of this page

	Total    int    // runs that there are
	Matching int    // that the query chooses
	Groups   int    // that they form; 0 where they are not grouped
	Fault    string // what is wrong with the query
	Notices  []string

	SaveFault, SaveName string   // why a view was not saved, and the name that was typed; empty for nothing
	Problems            []string // sentences on folders that are not runs

	Columns []Column
	Rows    []Row
	Pages   int

	CanEvaluate bool
	Saved       []SavedView
	SavedName   string // of the view that is open; "" for none
	SavedAt     int    // its version
	Changed     bool   // the page is not as the view was saved
}

// Address is what the list's address says.
type Address struct {
	Query   string
	Sort    string   // a column, with a leading "-" for downwards
	Columns []string // nil for the usual ones
	Group   string   // "" for none, "config", or a field
	Open    []string // keys of groups whose runs are shown
	Page    int      // from 1
	View    string   // the saved view that it began with
}

// DefaultSort puts the newest run first.
const DefaultSort = "-created"

// Values writes the address, leaving out what is usual.
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

// URL is the address as a link.
func (a Address) URL() string {
	q := a.Values()
	if len(q) == 0 {
		return "/runs"
	}
	return "/runs?" + q.Encode()
}

// Column is a head of the table.
type Column struct {
	Name, Label, Unit, Help string
	Number                  bool
	Down                    bool // the first press orders downwards
}

// Row is a run, or a group of runs.
type Row struct {
	Run    model.Run
	Cells  []Cell // one for each column
	Member bool   // of the group above
	Said   string // of an evaluation that is queued, under way or failed
	Active model.State

	Key   string // of a group; "" for a run
	Label string
	IDs   []string // of the group's runs
	Open  bool
}

// Cell is a value; Spread is the half width of its 95% interval and Count how many runs it is of, for groups.
type Cell struct {
	Text, Spread string
	Count        int
}

// SavedView is a link to a saved view.
type SavedView struct {
	Name, URL string
	Open      bool
}

// with is the address with something changed; what is listed may be shorter then, so it begins at the first page.
func (v RunsView) with(change func(*Address)) string {
	a := v.Address
	a.Page, a.Columns, a.Open = 1, slices.Clone(a.Columns), slices.Clone(a.Open)
	change(&a)
	return a.URL()
}

// sortURL orders by a column, the other way round where it is ordered by already.
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

// pageURL is another page of the same list.
func (v RunsView) pageURL(n int) string {
	a := v.Address
	a.Page = n
	return a.URL()
}

// toggleURL shows or hides the runs of a group, staying on the page.
func (v RunsView) toggleURL(r Row) string {
	a := v.Address
	if r.Open {
		a.Open = slices.DeleteFunc(slices.Clone(a.Open), func(key string) bool { return key == r.Key })
	} else {
		a.Open = append(slices.Clone(a.Open), r.Key)
	}
	return a.URL()
}

// shown says which part of the list the page has.
func (v RunsView) shown() string {
	text := views.Count(v.Matching) + " of " + views.Plural(v.Total, "run", "runs")
	if v.Groups > 0 {
		text += " in " + views.Plural(v.Groups, "group", "groups")
	}
	return text
}

// hidden are the entries of the address that the query form must carry on.
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

// groupings are the ways to group that are offered; the address takes any text field and hyperparameter.
var groupings = []GroupChoice{{"", "No groups"}, {"config", "By configuration"}, {"model", "By model"}, {"dataset", "By dataset"}, {"preset", "By preset"}, {"state", "By state"}}

// others adds the present grouping where it is none of those on offer.
func (v RunsView) others() []GroupChoice {
	if slices.ContainsFunc(groupings, func(g GroupChoice) bool { return g.Key == v.Group }) {
		return groupings
	}
	return append(slices.Clone(groupings), GroupChoice{v.Group, "By " + v.Group})
}

// ColumnsView is the choice of columns.
type ColumnsView struct {
	Address
	Groups []ColumnGroup
}

// ColumnGroup is the columns of one kind.
type ColumnGroup struct {
	Title  string
	Fields []ColumnChoice
}

// ColumnChoice is a column on offer.
type ColumnChoice struct {
	Column
	Chosen bool
}

// OutcomeView says what became of an action on several runs, or asks before it is done.
type OutcomeView struct {
	Title   string
	Said    string
	Done    []model.Run
	Failed  []Failure
	Back    string
	Confirm *Confirm
}

// Failure is a run on which an action failed, and why.
type Failure struct {
	Run model.Run
	Why string
}

// Confirm is what a form sends again once it is sure.
type Confirm struct {
	Button string
	Fields [][2]string
}

// starred is the action that a star's button asks for.
func starred(on bool) string {
	if on {
		return "unstar"
	}
	return "star"
}

// about says what the mean of a group's cell is of.
func (c Cell) about() string {
	switch {
	case c.Count == 0:
		return ""
	case c.Spread == "":
		return "of " + views.Plural(c.Count, "run", "runs")
	}
	return "mean of " + views.Count(c.Count) + " seeds with its 95% t-interval"
}
