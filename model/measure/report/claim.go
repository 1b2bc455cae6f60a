package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"slotscope/model"
)

// The rules in this file decide which claims tables, figures, cards and pages may make. A value that supports no claim is still shown,
// with the reason.

// LeastSeeds is the minimum number of seeds of every group in a claim: bold, equivalence or winner.
const LeastSeeds = 3

// evaluated is the size of the evaluation set behind the paper's scores: Hsu et al. (2023) use 10,000 images.
const evaluated = 10_000

// Departures lists how runs of a configuration, scored on the given number of images, differ from the published runs, each as "this
// instead of that". It is empty if nothing published differs; seeds are checked separately.
func Departures(c model.Config, images int) []string {
	paper, err := model.Default(c.Model, "paper", c.Dataset)
	if err != nil {
		return []string{fmt.Sprintf("model %s, which has no published values", c.Model)}
	}
	var all []string
	differs := func(format string, ours, published any) {
		if ours != published {
			all = append(all, fmt.Sprintf(format, ours, published))
		}
	}
	if c.Model == model.External {
		return []string{"trained by another program"}
	}
	differs("preset %s instead of %s", c.Preset, paper.Preset)
	differs("%s steps instead of %s", grouped(c.Steps), grouped(paper.Steps))
	differs("batch %s instead of %s", grouped(c.Batch), grouped(paper.Batch))
	if data := dataDeparture(c.Dataset); data != "" {
		all = append(all, data)
	}
	if images < evaluated {
		all = append(all, fmt.Sprintf("%s evaluation images instead of %s", grouped(images), grouped(evaluated)))
	}
	return append(all, changes(c)...)
}

// dataDeparture describes how a dataset differs from the published ones; empty for a published dataset.
func dataDeparture(dataset string) string {
	whole, _, part := strings.Cut(dataset, "[")
	switch _, known := published[whole]; {
	case whole == rendered:
		return "other images (" + DatasetLabel(rendered) + ") instead of " + DatasetLabel(original)
	case known && part:
		return "a subset of " + DatasetLabel(whole) + " instead of all images"
	case !known:
		return "dataset " + DatasetLabel(whole) + ", which has no published values"
	}
	return ""
}

// changes lists the fields of network, objective, optimizer and ablation that differ from the preset. A value in the paper's own sweep
// of the hyperparameter is not a change.
func changes(c model.Config) []string {
	base, err := model.Default(c.Model, c.Preset, c.Dataset)
	if err != nil {
		return nil
	}
	swept, _ := model.Swept(c.Model, c.Dataset)
	var all []string
	for _, f := range changedFields(c) {
		switch {
		case !slices.Contains([]string{"network", "objective", "optimizer", "ablation"}, f.Group):
		case f.Name == swept.Field && slices.Contains(swept.Values, number(f.Get(c))):
		case f.Kind == model.Bool && f.Get(c) == "true":
			all = append(all, setting(f.Name, c))
		default:
			all = append(all, fmt.Sprintf("%s %s instead of %s", cmp.Or(f.Symbol, strings.ToLower(f.Label)), f.Get(c), f.Get(base)))
		}
	}
	return all
}

// departures are the Departures of a group, using the smallest evaluation set of its runs.
func (g Group) departures() []string {
	images := math.MaxInt
	for _, e := range g.Entries {
		images = min(images, e.Scores.Images)
	}
	return Departures(g.Config, images)
}

// withheld joins the reasons why a row with that many seeds makes no claim; empty if it may.
func withheld(seeds string, least int, departs []string) string {
	if least < LeastSeeds {
		departs = append([]string{fmt.Sprintf("%s instead of at least %d", seeds, LeastSeeds)}, departs...)
	}
	return strings.Join(departs, ", ")
}

// Withheld explains in one sentence why the cell may be neither bold nor compared with the paper's value; empty if it may.
func (c Cell) Withheld() string {
	if c.N == 0 {
		return ""
	}
	if why := withheld(plural(c.N, "seed"), c.N, c.Departs); why != "" {
		return "No claim: " + why + "."
	}
	return ""
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Match reports whether our value is equivalent to the paper's, and if not, why, in one sentence. Equivalent means that our interval
// is no wider than the published one and that the difference between the means is within it:
//
//	h ≤ h_p  and  |x̄ − x̄_p| ≤ h_p           h, h_p half-widths of the 95% intervals
func (c Cell) Match() (equivalent bool, why string) {
	if c.Published == nil || c.N == 0 {
		return false, ""
	}
	if why := c.Withheld(); why != "" {
		return false, why
	}
	half := c.Published.Half()
	switch d := c.Difference(); {
	case !(c.Half <= half+negligible):
		return false, fmt.Sprintf("Not shown to be equivalent: our interval (± %.3g) is wider than the published one (± %s).", c.Half, c.Published.half)
	case !(math.Abs(d) <= half+negligible):
		return false, fmt.Sprintf("Not equivalent: the difference (%s) exceeds the published ± %s.", strings.Replace(fmt.Sprintf("%+.2g", d), "-", "−", 1), c.Published.half)
	}
	return true, ""
}

// Withheld lists the reasons why rows of a table make no claim, one sentence per reason with all rows that share it.
func (t Table) Withheld() []string {
	labels, reasons := map[string][]string{}, []string{}
	for _, row := range t.Rows {
		least, most := Table{Rows: []Row{row}}.Seeds()
		if most == 0 || row.Chance {
			continue
		}
		seeds := plural(most, "seed")
		if least < most {
			seeds = fmt.Sprintf("%d to %d seeds", least, most)
		}
		why := withheld(seeds, least, row.Departs)
		if why == "" {
			continue
		}
		if labels[why] == nil {
			reasons = append(reasons, why)
		}
		labels[why] = append(labels[why], row.Label)
	}
	for i, why := range reasons {
		reasons[i] = "No claim for " + strings.Join(labels[why], "; ") + ": " + why + "."
	}
	return reasons
}

// Verdict is the comparison of the best rows in one column.
type Verdict struct {
	Metric      Metric
	First, Next string  // labels of the row with the highest mean, and of the row compared with it
	Difference  Summary // First minus Next, with Welch's interval
	Winner      string  // First, or empty if there is no winner
	Why         string  // the reason for or against a winner, in one sentence
}

// Verdicts has one entry for each column in which at least two rows have values.
func (t Table) Verdicts() []Verdict {
	var all []Verdict
	for j, m := range t.Metrics {
		if m.Neutral {
			continue
		}
		rows := slices.DeleteFunc(slices.Clone(t.Rows), func(r Row) bool { return r.Chance || r.Cells[j].N == 0 })
		column := make([]Summary, len(rows))
		for i, r := range rows {
			column[i] = r.Cells[j].Summary
		}
		first, next, wins := Winner(column)
		if next < 0 {
			continue
		}
		v := Verdict{Metric: m, First: rows[first].Label, Next: rows[next].Label, Difference: Difference(column[first], column[next])}
		switch fewest := slices.MinFunc(column, func(a, b Summary) int { return cmp.Compare(a.N, b.N) }).N; {
		case wins:
			v.Winner, v.Why = v.First, fmt.Sprintf("The 95%% interval of the difference excludes 0, with at least %d seeds each.", LeastSeeds)
		case fewest < LeastSeeds:
			v.Why = fmt.Sprintf("No winner: a row has %s; at least %d per row are needed.", plural(fewest, "seed"), LeastSeeds)
		default:
			v.Why = "No winner: the 95% interval of the difference includes 0."
		}
		all = append(all, v)
	}
	return all
}

// Winner finds the row whose mean is significantly higher than every other: Welch's interval of each difference excludes zero, and each
// row has at least LeastSeeds. first is the row with the highest mean; next is the row that prevents the win, else the one with the
// next highest mean. Both are −1 if fewer than two rows have values. Higher is better.
func Winner(column []Summary) (first, next int, wins bool) {
	order := []int{}
	for i, s := range column {
		if s.N > 0 {
			order = append(order, i)
		}
	}
	if len(order) < 2 {
		return -1, -1, false
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(column[b].Mean, column[a].Mean) })
	first = order[0]
	for _, i := range order[1:] {
		d := Difference(column[first], column[i])
		if d.N < LeastSeeds || !(d.Lo > 0) {
			return first, i, false
		}
	}
	return first, order[1], true
}
