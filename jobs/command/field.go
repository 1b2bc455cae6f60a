package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"slotscope/model"
	"slotscope/model/measure/metric"
)

// measureTable computes all scores of a table.
func measureTable(ctx context.Context, env environment, table metric.Table, extra metric.Extra, o metric.Options) (metric.TableScores, error) {
	bar := newProgress(env.err)
	defer bar.end()
	return metric.MeasureAll(ctx, table, extra, o, func(stage string, done, of float64) { bar.show(stage, "", done, of) })
}

// printField prints the other metrics as a table for a terminal, followed by the reasons for missing ones.
func printField(out io.Writer, f model.FieldScores) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nOther metrics\tvalue\tchance\t95% interval\t")
	for _, m := range model.FieldMetrics {
		if _, there := f.Scores[m.Name]; !there {
			continue
		}
		value, chance, interval := f.Headline(m.Name)
		between := "–"
		if interval.Low.Defined() {
			between = shown(interval.Low) + " to " + shown(interval.High)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", m.Title, shown(value), shown(chance), between)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(f.UDR)) {
		fmt.Fprintf(out, "UDR (%s) of the models:", kind)
		for _, s := range f.UDR[kind].Models {
			fmt.Fprint(out, " ", shown(s))
		}
		fmt.Fprintln(out)
	}
	var said []string // several scores may be missing for the same reason
	for _, name := range slices.Sorted(maps.Keys(f.Problems)) {
		if why := oneLine(f.Problems[name]); !slices.Contains(said, why) {
			said = append(said, why)
			fmt.Fprintln(out, why)
		}
	}
	return nil
}
