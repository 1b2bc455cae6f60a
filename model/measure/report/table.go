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
	Published *Published // the paper's value; nil if it has none
	Departs   []string   // how the row's runs differ from the published ones
}

// Difference is our mean minus the paper's; NaN where either is missing.
func (c Cell) Difference() float64 {
	if c.Published == nil {
		return Summarise(nil).Mean
	}
	return c.Mean - c.Published.Mean()
}

// Row is the scores of a group, or of one model over several datasets.
type Row struct {
	Label string
	Group *Group // nil in an aggregated row
	Place int    // index of the label in the section; determines its colour in tables and figures
	Cells []Cell

	Departs []string // how its runs differ from the published ones; see Departures
	Chance  bool     // holds the chance level of the row above (factor rows shuffled); excluded from comparisons
}

// Table is the scores on one dataset; Dataset is empty for the aggregated table.
type Table struct {
	Title   string
	Dataset string
	Metrics []Metric
	Rows    []Row
}

// Part is a set of runs that answer one question.
type Part struct {
	Name    string // empty for the only part of a report
	About   string // one sentence
	Entries []Entry
}

// Section is a part with its runs grouped and summarized.
type Section struct {
	Name, About string
	Groups      []Group
	Rule        Rule
}

// NewSection groups the runs of a part.
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

// Labels lists the labels of the groups, in the paper's order of models.
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

// Place is the index of a label in Labels.
func (s Section) Place(label string) int { return max(0, slices.Index(s.Labels(), label)) }

// Left lists the excluded runs of the section.
func (s Section) Left() []Left {
	var all []Left
	for _, g := range s.Groups {
		all = append(all, g.Left...)
	}
	return all
}

// Scored reports whether any run of the section has scores.
func (s Section) Scored() bool {
	return slices.ContainsFunc(s.Groups, func(g Group) bool { return len(g.Entries) > 0 })
}

// Tables returns the scores on each dataset, the faithfulness to HRR, the scores on held-out images, and the scores over all datasets,
// if available.
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

// FieldTables returns, by dataset, the metrics from other papers and those that need no labels, with the chance level below every row;
// it skips tables without values.
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

// withChance inserts below each row the chance level of its scores, if measured.
func (t Table) withChance() Table {
	var rows []Row
	for _, row := range t.Rows {
		rows = append(rows, row)
		chance := Row{Label: row.Label + ", chance", Place: row.Place, Chance: true}
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

// faithful is the table of how closely the HRR models of a dataset are holographic reduced representations; false if not measured.
// It omits baselines, which have no bundles.
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
	t.Title = DatasetLabel(dataset) + ", faithfulness to HRR"
	return t, true
}

// unseen is the table of scores on the images held out of training; false if there are none or they were not measured.
func (s Section) unseen(dataset string) (Table, bool) {
	of := Section{Groups: s.Of(dataset)}
	for _, g := range of.Groups {
		for _, e := range g.Entries {
			if h := e.Scores.HeldOut; h != nil {
				t := s.Table(dataset, of.Measured(unseen))
				t.Title = DatasetLabel(h.Dataset) + ", held out of training"
				if strings.Contains(dataset, "corr(") {
					t.Title = DatasetLabel(h.Dataset) + ", without the training correlation"
				}
				return t, true
			}
		}
	}
	return Table{}, false
}

// Table returns the scores on one dataset, with the section's bold rule applied.
func (s Section) Table(dataset string, metrics []Metric) Table {
	t := Table{Title: DatasetLabel(dataset), Dataset: dataset, Metrics: metrics}
	for _, g := range s.Of(dataset) {
		if len(g.Entries) == 0 {
			continue // its runs are listed as excluded
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

// Aggregated averages each row over all datasets for each seed, so that the interval is over seeds. It omits rows and seeds that lack
// a dataset. With fewer than two datasets the table has no rows.
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

// aggregate is the mean of one metric over groups, for each seed that all of them have.
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

// anyBold reports whether any cell is bold.
func (t Table) anyBold() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Bold }) })
}

// Seeds is the smallest and the largest number of seeds among the cells that have a value.
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

// Measured returns the metrics that at least one row has a value for.
func (s Section) Measured(metrics []Metric) []Metric {
	var kept []Metric
	for _, m := range metrics {
		if slices.ContainsFunc(s.Groups, func(g Group) bool { return g.Score(m.Key).N > 0 }) {
			kept = append(kept, m)
		}
	}
	return kept
}
