package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/report"
	ui "slotscope/views/compare"
)

// settings returns the table of hyperparameters that differ between groups; runs that differ only in their seed are one group.
func settings(rep *report.Report) ui.SettingsView {
	v := ui.SettingsView{}
	var groups []report.Group
	for _, s := range rep.Sections {
		for _, g := range s.Groups {
			groups = append(groups, g)
			v.Rows = append(v.Rows, ui.SettingsRow{Label: g.Label, Place: s.Place(g.Label), Seeds: seedsOf(g)})
		}
	}
	for _, f := range differing(groups) {
		v.Heads = append(v.Heads, ui.ScoreHead{Label: strings.TrimSpace(f.Label + " " + f.Symbol), Unit: f.Unit, About: f.Help})
		for i, g := range groups {
			text := "–"
			if has(f, g.Config) {
				text = shown(f, g.Config)
			}
			v.Rows[i].Values = append(v.Rows[i].Values, text)
		}
	}
	return v
}

// has reports whether a group's runs have a hyperparameter; runs of another program have those that it set.
func has(f model.Field, c model.Config) bool {
	return f.Of(c.Model) && (c.Model != model.External || f.Get(c) != f.Get(model.Config{}))
}

// shown returns a field's value as displayed in the table.
func shown(f model.Field, c model.Config) string {
	switch value := f.Get(c); {
	case f.Name == "model":
		return report.ModelLabel(value)
	case f.Name == "dataset":
		return report.DatasetLabel(value)
	default:
		return value
	}
}

// differing returns the fields whose values differ between the groups whose model has them.
func differing(groups []report.Group) (fields []model.Field) {
	for _, f := range model.Fields() {
		if f.Name == "seed" || f.Computing() || f.Group == "cadence" && f.Name != "eval_images" {
			continue
		}
		values := map[string]bool{}
		for _, g := range groups {
			if has(f, g.Config) {
				values[f.Get(g.Config)] = true
			}
		}
		if len(values) > 1 {
			fields = append(fields, f)
		}
	}
	return fields
}

// seedsOf lists the seeds of a group's runs, ranges joined: "0–4, 7".
func seedsOf(g report.Group) string {
	var seeds []int64
	for _, e := range g.All() {
		seeds = append(seeds, e.Run.Config.Seed)
	}
	slices.Sort(seeds)
	seeds = slices.Compact(seeds)
	var parts []string
	for i := 0; i < len(seeds); {
		j := i
		for j+1 < len(seeds) && seeds[j+1] == seeds[j]+1 {
			j++
		}
		switch {
		case j > i+1:
			parts = append(parts, fmt.Sprintf("%d–%d", seeds[i], seeds[j]))
		default:
			for _, s := range seeds[i : j+1] {
				parts = append(parts, strconv.FormatInt(s, 10))
			}
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
