package report

import (
	"fmt"
	"slices"

	"slotscope/model"
)

// turnable reports whether a field is an ablation row: a switch of the paper's negative results or one of our controls.
func turnable(f model.Field) bool {
	return f.Group == "ablation" || slices.Contains([]string{"lambda_tie", "lambda_coherence", "lambda_orth"}, f.Name)
}

// ablations lists the turnable fields in which a configuration differs from its preset.
func ablations(c model.Config) []string {
	var turned []string
	for _, f := range model.Fields() {
		if !turnable(f) {
			continue
		}
		def, err := model.Default(c.Model, c.Preset, c.Dataset)
		if err == nil && f.Get(def) != f.Get(c) {
			turned = append(turned, f.Name)
		}
	}
	return turned
}

// asPublished reports whether a configuration has its preset's network and no ablation, like the paper's published rows.
func asPublished(c model.Config) bool {
	for _, f := range changedFields(c) {
		if f.Group == "network" || f.Group == "ablation" {
			return false
		}
	}
	return true
}

// Ablation compares a variant of a model with the unmodified model.
type Ablation struct {
	Base, Variant *Group
	Change        string    // changed fields, as a label
	Differences   []Summary // variant minus base for each of Columns, with Welch's interval
}

// Ablations finds the variants of the section that differ from another group only in ablation switches.
func (s Section) Ablations() []Ablation {
	var all []Ablation
	for i := range s.Groups {
		v := &s.Groups[i]
		turned := ablations(v.Config)
		if len(turned) == 0 {
			continue
		}
		base := slices.IndexFunc(s.Groups, func(g Group) bool { return len(ablations(g.Config)) == 0 && sameButAblation(g.Config, v.Config) })
		if base < 0 {
			continue
		}
		a := Ablation{Base: &s.Groups[base], Variant: v, Change: change(turned, v.Config)}
		for _, m := range columns {
			a.Differences = append(a.Differences, Difference(v.Score(m.Key).Summary, a.Base.Score(m.Key).Summary))
		}
		all = append(all, a)
	}
	return all
}

func sameButAblation(a, b model.Config) bool {
	for _, f := range model.Fields() {
		if !turnable(f) && f.Group != "cadence" && f.Name != "seed" && !f.Computing() && f.Get(a) != f.Get(b) {
			return false
		}
	}
	return true
}

func change(fields []string, c model.Config) string {
	text := ""
	for _, name := range fields {
		word := setting(name, c)
		if word == "" {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += word
	}
	return text
}

// Grid is one metric over combinations of two hyperparameters, like the paper's figures of latent dimension and codebook size.
type Grid struct {
	Model, Dataset string
	Metric         Metric
	Rows, Columns  []string    // values of the two fields, ascending
	RowField       model.Field // k or m
	ColumnField    model.Field // d
	Cells          [][]Scored  // [row][column]; N is 0 if there is no run
}

// Grids finds groups of one model and dataset that vary d and either k or m, and returns a grid for each metric that has values.
func (s Section) Grids(metrics []Metric) []Grid {
	var grids []Grid
	for _, dataset := range s.Datasets() {
		for _, name := range model.ModelNames() {
			var of []*Group
			rows := ""
			for i := range s.Groups {
				if g := &s.Groups[i]; g.Dataset == dataset && g.Model == name && gridRows(g.Differs) != "" {
					of, rows = append(of, g), gridRows(g.Differs)
				}
			}
			for _, m := range metrics {
				if g, ok := grid(of, rows, m); ok {
					grids = append(grids, g)
				}
			}
		}
	}
	return grids
}

// seeds is the number of seeds per cell, in words.
func (g Grid) seeds() string {
	least, most := 0, 0
	for _, row := range g.Cells {
		for _, c := range row {
			if c.N > 0 && (least == 0 || c.N < least) {
				least = c.N
			}
			most = max(most, c.N)
		}
	}
	if least == most {
		return plural(most, "seed")
	}
	return fmt.Sprintf("%d to %d seeds", least, most)
}

// gridRows is the row field of a grid over d: k, or m if k does not vary; empty if there is no grid.
func gridRows(differs []string) string {
	for _, field := range []string{"k", "m"} {
		if slices.Contains(differs, "d") && slices.Contains(differs, field) {
			return field
		}
	}
	return ""
}

func grid(groups []*Group, rows string, m Metric) (Grid, bool) {
	if len(groups) == 0 {
		return Grid{}, false
	}
	g := Grid{Model: groups[0].Model, Dataset: groups[0].Dataset, Metric: m, RowField: mustField(rows), ColumnField: mustField("d")}
	g.Rows, g.Columns = valuesOf(groups, g.RowField), valuesOf(groups, g.ColumnField)
	g.Cells = make([][]Scored, len(g.Rows))
	some := false
	for i := range g.Cells {
		g.Cells[i] = make([]Scored, len(g.Columns))
	}
	for _, group := range groups {
		if len(ablations(group.Config)) > 0 {
			continue
		}
		s := group.Score(m.Key)
		some = some || s.N > 0
		i, j := slices.Index(g.Rows, g.RowField.Get(group.Config)), slices.Index(g.Columns, g.ColumnField.Get(group.Config))
		if g.Cells[i][j].N == 0 {
			g.Cells[i][j] = s
		}
	}
	return g, some
}

func valuesOf(groups []*Group, f model.Field) []string {
	var values []string
	for _, g := range groups {
		if v := f.Get(g.Config); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return int(number(a) - number(b)) })
	return values
}
