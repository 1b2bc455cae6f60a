// Package compare serves comparisons and reports of runs, as pages and downloads.
package compare

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/measure/figure"
	"slotscope/model/measure/report"
	"slotscope/model/play"
	"slotscope/views"
	ui "slotscope/views/compare"
)

// compare draws the comparison of the runs in the URL, or the run picker if the URL has none.
func (h Reports) compare(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	c, err := readChoice(r.URL.Query())
	if err != nil {
		return err
	}
	all, err := h.Runs.List(ctx)
	if err != nil {
		return err
	}
	view := ui.CompareView{Query: c.query().Encode(), Rule: string(c.rule), Fields: hiddenFields(c), Picker: pickerView(all, c)}
	if c.empty() {
		return handlers.Draw(w, r, ui.Compare(view))
	}
	rep, err := h.report(ctx, c)
	if err != nil {
		return err
	}
	view.Title, view.Sections, view.Left, view.Notes = rep.Title, SectionViews(rep), leftViews(rep), rep.Notes()
	view.Settings = settings(rep)
	for i, s := range rep.Sections {
		if view.Sections[i].Figures, err = figureViews(s, i, c); err != nil {
			return err
		}
		view.Sections[i].Pairs = h.pairViews(ctx, s, i, c)
	}
	if view.Curves, err = h.curvesData(ctx, c, rep); err != nil {
		return err
	}
	return handlers.Draw(w, r, ui.Compare(view))
}

// pickerView lists the selectable runs, in groups that differ only in their seed.
func pickerView(all []model.Run, c choice) []ui.PickGroup {
	var entries []report.Entry
	for _, run := range all {
		entries = append(entries, report.Entry{Run: run})
	}
	var out []ui.PickGroup
	for _, g := range report.Groups(entries) {
		group := ui.PickGroup{Label: g.Label, Dataset: report.DatasetLabel(g.Dataset), Preset: g.Config.Preset, Steps: g.Config.Steps}
		for _, e := range g.All() {
			group.Runs = append(group.Runs, ui.PickRun{Run: e.Run, Chosen: slices.Contains(c.runs, e.Run.ID)})
		}
		slices.SortFunc(group.Runs, func(a, b ui.PickRun) int { return cmp.Compare(a.Run.Config.Seed, b.Run.Config.Seed) })
		out = append(out, group)
	}
	return out
}

// SectionViews returns the tables of a report.
func SectionViews(rep *report.Report) []ui.SectionView {
	var out []ui.SectionView
	for i, s := range rep.Sections {
		v := ui.SectionView{Name: s.Name, About: s.About, Key: fmt.Sprint(i)}
		if s.Scored() {
			for _, t := range slices.Concat(s.Tables(slices.Concat(report.Columns(), report.Further())), s.FieldTables()) {
				v.Tables = append(v.Tables, tableView(t))
			}
			v.Ablations = ablationView(s)
		}
		out = append(out, v)
	}
	for _, s := range rep.Selections {
		if len(out) > 0 {
			out[0].Choices = append(out[0].Choices, choiceView(s))
		}
	}
	return out
}

func tableView(t report.Table) ui.ScoreTable {
	v := ui.ScoreTable{Title: t.Title, Withheld: t.Withheld()}
	for _, m := range t.Metrics {
		v.Heads = append(v.Heads, ui.ScoreHead{Label: m.Label, Unit: m.Unit, About: m.About})
	}
	for _, row := range t.Rows {
		out := ui.ScoreRow{Label: row.Label, Seeds: row.Seeds(), Place: row.Place, Chance: row.Chance}
		for _, c := range row.Cells {
			cell := ui.ScoreCell{Text: c.Text(c.Metric.Decimals), Bold: c.Bold}
			for j, seed := range c.Seeds {
				cell.Each = append(cell.Each, ui.SeedValue(seed, c.Values[j]))
			}
			if c.Published != nil && c.N > 0 {
				cell.Published, cell.Other = strings.TrimSuffix(c.Published.String(), " ("+c.Published.Images+")"), c.Published.Images
				v.Other = cmp.Or(v.Other, cell.Other)
				cell.Equivalent, cell.Why = c.Match()
			}
			out.Cells = append(out.Cells, cell)
		}
		v.Rows = append(v.Rows, out)
	}
	for _, d := range t.Verdicts() {
		v.Verdicts = append(v.Verdicts, ui.Verdict{Metric: d.Metric.Label, Winner: d.Winner, Between: d.First + " − " + d.Next,
			Difference: strings.TrimSpace(d.Difference.Text(d.Metric.Decimals) + " " + d.Metric.Unit), Why: d.Why})
	}
	return v
}

func ablationView(s report.Section) ui.ListTable {
	v := ui.ListTable{Heads: []string{"Change", "Dataset"}}
	metrics := s.Measured(report.Columns())
	for _, m := range metrics {
		v.Heads = append(v.Heads, m.Label)
	}
	for _, a := range s.Ablations() {
		row := []string{a.Change, report.DatasetLabel(a.Variant.Dataset)}
		for i, m := range report.Columns() {
			if slices.ContainsFunc(metrics, func(o report.Metric) bool { return o.Key == m.Key }) {
				row = append(row, a.Text(i))
			}
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

func choiceView(s report.Selection) ui.ChoiceView {
	v := ui.ChoiceView{Model: report.ModelLabel(s.Model), Dataset: report.DatasetLabel(s.Dataset), Field: s.Field, Chosen: s.Chosen}
	for _, o := range s.Options {
		v.Tried = append(v.Tried, o.Value+": "+o.Text())
	}
	return v
}

func leftViews(rep *report.Report) []ui.LeftRun {
	var out []ui.LeftRun
	for _, l := range rep.Left() {
		out = append(out, ui.LeftRun{Run: l.Run, Why: l.Why, Unscored: l.Scores == nil && l.Damage == "" && l.Run.State == model.Finished})
	}
	return out
}

// still returns the figures of a section that need no points: scores by seed, noise, grids and agreement of metrics.
func still(s report.Section, i int) ([]figure.Figure, error) {
	prefix := sectionName(i)
	var all []figure.Figure
	for _, d := range s.Datasets() {
		figures, err := s.NoiseFigures(prefix, d)
		if err != nil {
			return nil, err
		}
		all = append(append(all, s.ScoreFigures(prefix, d)...), figures...)
	}
	return append(all, s.AcrossFigures(prefix)...), nil
}

func figureViews(s report.Section, i int, c choice) ([]views.FigureView, error) {
	figures, err := still(s, i)
	var out []views.FigureView
	for _, f := range figures {
		out = append(out, views.FigureOf(f, "/compare/figures", c.query()))
	}
	return out, err
}

// figure sends one figure of a comparison as a file.
func (h Reports) figure(w http.ResponseWriter, r *http.Request) error {
	name, kind, err := handlers.SplitFigure(chi.URLParam(r, "file"))
	if err != nil {
		return err
	}
	c, err := readChoice(r.URL.Query())
	if err != nil {
		return err
	}
	rep, err := h.report(r.Context(), c)
	if err != nil {
		return err
	}
	for i, s := range rep.Sections {
		figures, err := still(s, i)
		if err != nil {
			return err
		}
		for _, f := range figures {
			if f.Name == name {
				return handlers.SendFigure(w, r, f, kind)
			}
		}
	}
	f, ok, err := pairFigure(rep, name, r.URL.Query())
	if err != nil {
		return err
	}
	if ok {
		return handlers.SendFigure(w, r, f, kind)
	}
	return fmt.Errorf("unknown figure %q of this comparison: %w", name, model.ErrNotFound)
}

// pairViews returns, for each dataset of a section, the runs that decode a pair of its images.
func (h Reports) pairViews(ctx context.Context, s report.Section, i int, c choice) []ui.PairView {
	var out []ui.PairView
	for _, d := range s.Datasets() {
		rows := s.Shown(d)
		if len(rows) == 0 || h.Pairs == nil {
			continue
		}
		swaps, strip := report.PairNames(sectionName(i), d)
		v := ui.PairView{Dataset: report.DatasetLabel(d), Name: d, Section: fmt.Sprint(i), Swaps: swaps, Strip: strip, Query: c.query().Encode()}
		for _, row := range rows {
			v.Rows = append(v.Rows, ui.SwapRow{Label: row.Label, Run: row.Entry.Run})
		}
		set, err := h.Pairs.Set(ctx, d)
		if err != nil {
			v.Problem = ui.NoImages(report.DatasetLabel(d))
		} else {
			v.A, v.B = play.GoodPair(set)
			v.Last = set.Info().Len - 1
		}
		out = append(out, v)
	}
	return out
}

// sectionName returns the prefix of the names of a section's figures.
func sectionName(i int) string { return fmt.Sprintf("s%d", i+1) }

// pairFigure draws the named figure for the image pair a, b of the query. ok is false if name is not a figure of a pair.
func pairFigure(rep *report.Report, name string, q url.Values) (f figure.Figure, ok bool, err error) {
	for i, s := range rep.Sections {
		for _, d := range s.Datasets() {
			if swaps, strip := report.PairNames(sectionName(i), d); name != swaps && name != strip {
				continue
			}
			a, b, err := readPair(q)
			if err != nil {
				return f, false, err
			}
			all, err := s.PairFigures(sectionName(i), d, a, b)
			for _, f := range all {
				if f.Name == name {
					return f, true, nil
				}
			}
			return f, false, err
		}
	}
	return f, false, nil
}

func readPair(q url.Values) (a, b int, err error) {
	bad := model.Invalid{}
	number := func(name string) int {
		n, err := strconv.Atoi(q.Get(name))
		if err != nil || n < 0 {
			bad[name] = fmt.Sprintf("%q is not an image number; use a whole number from 0", q.Get(name))
		}
		return n
	}
	a, b = number("a"), number("b")
	return a, b, bad.OrNil()
}
