package workbench

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/measure/report"
	"slotscope/model/query"
	"slotscope/views"
	ui "slotscope/views/workbench"
)

// byConfig is the grouping of runs that differ only in their seed.
const byConfig = "config"

// group is a set of runs shown as one row.
type group struct {
	key, label string
	runs       []model.Overview // in list order
	counted    []model.Overview // the runs in means: only the newest run of each seed if grouped by configuration
}

// groups groups the runs. Groups are sorted by the list's sort column: by its mean if numeric, otherwise by their first run.
func (a ask) groups(runs []model.Overview) []*group {
	var all []*group
	at := map[any]*group{}
	field, _ := a.catalogue.Field(a.Group)
	for _, run := range runs {
		var key any
		if a.Group == byConfig {
			key = report.SameBut(run.Run)
		} else {
			key = field.Shown(&run, a.now)
		}
		g := at[key]
		if g == nil {
			g = &group{}
			at[key] = g
			all = append(all, g)
			g.key = short(fmt.Sprintf("%#v", key))
			if a.Group != byConfig {
				g.label = cmp.Or(fmt.Sprint(key), "no "+strings.ToLower(field.Label))
				if a.Group == "model" {
					g.label = model.ModelTitle(g.label)
				}
			}
		}
		g.runs = append(g.runs, run)
	}
	if a.Group == byConfig {
		name(all)
	}
	for _, g := range all {
		g.counted = g.runs
		if a.Group == byConfig {
			g.counted = newestOfSeeds(g.runs)
		}
	}
	if a.order.Numeric() {
		slices.SortStableFunc(all, func(x, y *group) int { return a.byMean(x, y) })
	}
	return all
}

// short returns a short name for a long key.
func short(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text))
	return strconv.FormatUint(h.Sum64(), 36)
}

// name labels groups by model and preset, plus the fields that distinguish groups with the same model, dataset and preset.
func name(all []*group) {
	type kind struct{ model, dataset, preset string }
	alike := map[kind][]*group{}
	for _, g := range all {
		c := g.runs[0].Config
		k := kind{c.Model, c.Dataset, c.Preset}
		alike[k] = append(alike[k], g)
	}
	for k, groups := range alike {
		configs := make([]model.Config, len(groups))
		for i, g := range groups {
			configs[i] = report.SameBut(g.runs[0].Run)
		}
		differing := report.Differing(configs)
		for i, g := range groups {
			g.label = model.ModelTitle(k.model) + " " + k.preset
			for _, field := range differing {
				if f, ok := model.FieldByName(field); ok && field != "dataset" && field != "model" && field != "preset" {
					g.label += ", " + field + " " + f.Get(configs[i])
				}
			}
		}
	}
}

// newestOfSeeds keeps only the newest run of each seed.
func newestOfSeeds(runs []model.Overview) []model.Overview {
	newest := map[int64]int{}
	for i, r := range runs {
		if j, ok := newest[r.Config.Seed]; !ok || runs[j].Created.Before(r.Created) {
			newest[r.Config.Seed] = i
		}
	}
	kept := make([]model.Overview, 0, len(newest))
	for i, r := range runs {
		if newest[r.Config.Seed] == i {
			kept = append(kept, r)
		}
	}
	return kept
}

func (g *group) summary(f query.Field, now time.Time) report.Summary {
	values := make([]float64, 0, len(g.counted))
	for i := range g.counted {
		if v, ok := f.Number(&g.counted[i], now); ok {
			values = append(values, v)
		}
	}
	return report.Summarise(values)
}

func (a ask) byMean(x, y *group) int {
	p, q := x.summary(a.order, a.now).Mean, y.summary(a.order, a.now).Mean
	switch {
	case math.IsNaN(p) && math.IsNaN(q):
		return 0
	case math.IsNaN(p):
		return 1
	case math.IsNaN(q):
		return -1
	case a.down:
		return cmp.Compare(q, p)
	}
	return cmp.Compare(p, q)
}

// groupRows returns a group's row, followed by its runs if it is expanded.
func (h Workbench) groupRows(a ask, g *group) []ui.Row {
	row := ui.Row{Key: g.key, Label: g.label, Open: slices.Contains(a.Open, g.key)}
	for _, run := range g.runs {
		row.IDs = append(row.IDs, run.ID)
	}
	for _, f := range a.columns {
		row.Cells = append(row.Cells, g.cell(f, a.now))
	}
	rows := []ui.Row{row}
	if row.Open {
		for _, run := range g.runs {
			member := h.row(a, run)
			member.Member = true
			rows = append(rows, member)
		}
	}
	return rows
}

// cell returns the mean and interval of a numeric field; for other fields the value that all runs share, or the number of values.
func (g *group) cell(f query.Field, now time.Time) ui.Cell {
	if f.Numeric() && f.Name != "seed" {
		s := g.summary(f, now)
		switch {
		case s.N == 0:
			return ui.Cell{}
		case s.N < 2 || s.SD == 0:
			return ui.Cell{Text: numberOf(f, s.Mean), Count: s.N}
		case f.Kind == query.Duration:
			return ui.Cell{Text: views.Duration(s.Mean), Spread: views.Duration(s.Half), Count: s.N}
		}
		mean, half := s.Rounded(max(f.Decimals(), 2))
		return ui.Cell{Text: mean, Spread: half, Count: s.N}
	}
	seen := map[string]int{}
	for i := range g.runs {
		seen[cellOf(f, &g.runs[i], now)]++
	}
	if len(seen) == 1 {
		for text := range seen {
			return ui.Cell{Text: text}
		}
	}
	if f.Name == "state" {
		return ui.Cell{Text: states(seen)}
	}
	return ui.Cell{Text: views.Count(len(seen)) + " different"}
}

// states counts runs by state, states that need attention first.
func states(seen map[string]int) string {
	field, _ := query.New().Field("state")
	var parts []string
	for _, s := range field.Choices {
		if seen[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", seen[s], s))
		}
	}
	return strings.Join(parts, ", ")
}

// cellOf formats a value for the table.
func cellOf(f query.Field, r *model.Overview, now time.Time) string {
	switch f.Name {
	case "model":
		if r.Config.Model != "" {
			return model.ModelTitle(r.Config.Model)
		}
	case "rate":
		return views.RunRate(r.Run)
	case "left":
		return views.TimeLeft(r.Run)
	case "created", "started", "ended", "updated":
		if v, ok := f.Number(r, now); ok {
			return views.Day(time.UnixMilli(int64(v * 1000)))
		}
		return ""
	}
	v, ok := f.Number(r, now)
	if !ok {
		return f.Shown(r, now)
	}
	return numberOf(f, v)
}

// numberOf formats a number for the table, with the field's decimals or four significant digits.
func numberOf(f query.Field, v float64) string {
	switch {
	case f.Kind == query.Duration:
		return views.Duration(v)
	case f.Kind != query.Number:
		return f.Format(v)
	case math.IsNaN(v) || math.IsInf(v, 0):
		return f.Format(v)
	case v == math.Trunc(v) && math.Abs(v) < 1e9 && f.Decimals() <= 0:
		if f.Name == "seed" {
			return f.Format(v)
		}
		return views.Count(int(v))
	case f.Decimals() >= 0:
		return f.Format(v)
	case f.Group == query.OfConfig:
		return f.Format(v)
	}
	return fmt.Sprintf("%#.4g", v)
}
