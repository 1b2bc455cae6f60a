package report

import (
	"cmp"
	"slices"
	"strings"
)

// Cell is one score of one row.
type Cell struct {
	Scored
	Bold      bool       // by the table's rule, within its column
	Published *Published // the paper's value; nil where it has none
	Departs   []string   // how the row's runs differ from the published ones
}

// Difference is our mean minus the paper's; NaN where either is missing.
func (c Cell) Difference() float64 {
	if c.Published == nil {
		return Summarise(nil).Mean
	}
	return c.Mean - c.Published.Mean()
}

// Row is a group's scores, or one model's over several datasets.
type Row struct {
	Label string
	Group *Group // nil in an aggregated row
	Place int    // of the label among the section's, which is its colour in tables and figures alike
	Cells []Cell

	Departs []string // how its runs differ from the published ones; see Departures
	Chance  bool     // its scores are those of the row above with the factors' rows shuffled: it takes no part in comparisons
}

// Table is the scores of one dataset; Dataset is empty for the aggregated one.
type Table struct {
	Title   string
	Dataset string
	Metrics []Metric
	Rows    []Row
}

// Part is a set of runs that are looked at together: an answer to one question.
type Part struct {
	Name    string // empty for the only part of a report
	About   string // one sentence
	Entries []Entry
}

// Section is a part, grouped and summed up.
type Section struct {
	Name, About string
	Groups      []Group
	Rule        Rule
}

// NewSection groups a part.
func NewSection(p Part, rule Rule) Section {
	return Section{p.Name, p.About, Groups(p.Entries), rule}
}

// Datasets lists the datasets of the section in the paper's order.
func (s Section) Datasets() []string {
	var names []string
	for _, g := range s.Groups {
		if !slices.Contains(names, g.Dataset) {
			names = append(names, g.Dataset)
		}
	}
	return names
}

// Labels lists the labels of groups, in the paper's order of models.
func (s Section) Labels() []string {
	groups := slices.Clone(s.Groups)
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(rank(modelOrder, a.Model), rank(modelOrder, b.Model)), compareConfigs(a.Config, b.Config))
	})
	var labels []string
	for _, g := range groups {
		if !slices.Contains(labels, g.Label) {
			labels = append(labels, g.Label)
		}
	}
	return labels
}

// Place is where a label stands among Labels.
func (s Section) Place(label string) int { return max(0, slices.Index(s.Labels(), label)) }

// Left lists the runs of the section that were left out.
func (s Section) Left() []Left {
	var all []Left
	for _, g := range s.Groups {
		all = append(all, g.Left...)
	}
	return all
}

// Scored says whether any run of the section has scores.
func (s Section) Scored() bool {
	return slices.ContainsFunc(s.Groups, func(g Group) bool { return len(g.Entries) > 0 })
}

// Tables are the scores on each dataset, faithfulness to HRR, the scores on what its runs were not trained on, and those on all datasets together, as
// far as there are any.
func (s Section) Tables(metrics []Metric) []Table {
	var all []Table
	metrics = s.Measured(metrics)
	for _, d := range s.Datasets() {
		all = append(all, s.Table(d, metrics))
		if t, ok := s.faithful(d); ok {
			all = append(all, t)
		}
		if t, ok := s.unseen(d); ok {
			all = append(all, t)
		}
	}
	if t := s.Aggregated(metrics); len(t.Rows) > 0 {
		all = append(all, t)
	}
	return all
}

// FieldTables are the scores that other papers report and those that need no labels, by dataset, with chance under every row; none where
// they were not measured.
func (s Section) FieldTables() []Table {
	var all []Table
	for _, d := range s.Datasets() {
		for _, of := range []struct {
			title   string
			metrics []Metric
		}{{"other metrics", field}, {"without labels", append([]Metric{udr}, unlabelled...)}} {
			if metrics := (Section{Groups: s.Of(d)}).Measured(of.metrics); len(metrics) > 0 {
				t := s.Table(d, metrics).withChance()
				t.Title += ", " + of.title
				all = append(all, t)
			}
		}
	}
	return all
}

// withChance puts under each row the level of chance of its scores, as far as there is one.
func (t Table) withChance() Table {
	var rows []Row
	for _, row := range t.Rows {
		rows = append(rows, row)
		chance := Row{Label: row.Label + ", by chance", Place: row.Place, Chance: true}
		some := false
		for _, c := range row.Cells {
			chance.Cells = append(chance.Cells, Cell{Scored: Scored{Metric: c.Metric, Summary: c.Chance}})
			some = some || c.Chance.N > 0
		}
		if some {
			rows = append(rows, chance)
		}
	}
	t.Rows = rows
	return t
}

// faithful is how much the HRR models of a dataset are holographic reduced representations; false where that was not measured. Baselines, which
// have no bundles, are not in it.
func (s Section) faithful(dataset string) (Table, bool) {
	var of Section
	for _, g := range s.Of(dataset) {
		if slices.ContainsFunc(g.Entries, func(e Entry) bool { return e.Scores.Faithfulness != nil }) {
			of.Groups = append(of.Groups, g)
		}
	}
	if len(of.Groups) == 0 {
		return Table{}, false
	}
	t := of.Table(dataset, of.Measured(faithful))
	for i := range t.Rows {
		t.Rows[i].Place = s.Place(t.Rows[i].Label)
	}
	t.Title = DatasetLabel(dataset) + ", is it an HRR?"
	return t, true
}

// unseen is the scores on what runs on a dataset were not trained on; false where that is nothing, or was not measured.
func (s Section) unseen(dataset string) (Table, bool) {
	of := Section{Groups: s.Of(dataset)}
	for _, g := range of.Groups {
		for _, e := range g.Entries {
			if h := e.Scores.HeldOut; h != nil {
				t := s.Table(dataset, of.Measured(unseen))
				t.Title = DatasetLabel(h.Dataset) + ", left out of training"
				if strings.Contains(dataset, "corr(") {
					t.Title = DatasetLabel(h.Dataset) + ", without the correlation of training"
				}
				return t, true
			}
		}
	}
	return Table{}, false
}

// Table is the scores on one dataset, bold by the section's rule.
func (s Section) Table(dataset string, metrics []Metric) Table {
	t := Table{Title: DatasetLabel(dataset), Dataset: dataset, Metrics: metrics}
	for _, g := range s.Of(dataset) {
		if len(g.Entries) == 0 {
			continue // its runs are listed among those left out
		}
		row := Row{Label: g.Label, Group: &g, Place: s.Place(g.Label), Departs: g.departures()}
		for _, m := range metrics {
			cell := Cell{Scored: g.Score(m.Key), Departs: row.Departs}
			cell.Metric = m
			if p, ok := PublishedFor(dataset, g.Model, m.Key); ok && asPublished(g.Config) {
				cell.Published = &p
			}
			row.Cells = append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	t.embolden(s.Rule)
	return t
}

// Aggregated averages each row over all datasets, seed by seed, so that its interval is over seeds; a row that lacks a
// dataset is left out, and so is a seed. With one dataset there is nothing to aggregate, and no row.
func (s Section) Aggregated(metrics []Metric) Table {
	t := Table{Title: "All datasets", Metrics: metrics}
	datasets := s.Datasets()
	if len(datasets) < 2 {
		return t
	}
	for place, label := range s.Labels() {
		var groups []Group
		for _, d := range datasets {
			if i := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Dataset == d && g.Label == label && len(g.Entries) > 0 }); i >= 0 {
				groups = append(groups, s.Groups[i])
			}
		}
		if len(groups) < len(datasets) {
			continue
		}
		row := Row{Label: label, Place: place}
		for _, g := range groups {
			for _, why := range g.departures() {
				if !slices.Contains(row.Departs, why) {
					row.Departs = append(row.Departs, why)
				}
			}
		}
		for _, m := range metrics {
			row.Cells = append(row.Cells, Cell{Scored: aggregate(groups, m), Departs: row.Departs})
		}
		t.Rows = append(t.Rows, row)
	}
	t.embolden(s.Rule)
	return t
}

// aggregate is one metric as the mean over groups of each seed that all of them have.
func aggregate(groups []Group, m Metric) Scored {
	out := Scored{Metric: m}
	first := groups[0].Score(m.Key)
	for i, seed := range first.Seeds {
		sum, n := first.Values[i], 1
		for _, g := range groups[1:] {
			s := g.Score(m.Key)
			if j := slices.Index(s.Seeds, seed); j >= 0 {
				sum, n = sum+s.Values[j], n+1
			}
		}
		if n == len(groups) {
			out.Seeds, out.Values = append(out.Seeds, seed), append(out.Values, sum/float64(n))
		}
	}
	out.Summary = Summarise(out.Values)
	return out
}

func (t *Table) embolden(rule Rule) {
	for j := range t.Metrics {
		column, may := make([]Summary, len(t.Rows)), make([]bool, len(t.Rows))
		for i, row := range t.Rows {
			column[i], may[i] = row.Cells[j].Summary, row.Cells[j].Withheld() == "" && !t.Metrics[j].Neutral
		}
		for i, bold := range rule.Bold(column, may) {
			t.Rows[i].Cells[j].Bold = bold
		}
	}
}

// anyBold says whether any cell is set in bold.
func (t Table) anyBold() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Bold }) })
}

// Seeds is the least and the greatest number of seeds behind the cells that have a value.
func (t Table) Seeds() (least, most int) {
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			if c.N == 0 {
				continue
			}
			if least == 0 || c.N < least {
				least = c.N
			}
			most = max(most, c.N)
		}
	}
	return least, most
}

// Measured keeps the metrics that some row has a value for.
func (s Section) Measured(metrics []Metric) []Metric {
	var kept []Metric
	for _, m := range metrics {
		if slices.ContainsFunc(s.Groups, func(g Group) bool { return g.Score(m.Key).N > 0 }) {
			kept = append(kept, m)
		}
	}
	return kept
}
