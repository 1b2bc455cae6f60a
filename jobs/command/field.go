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

// tableScores is what can be said of a table: InfoMEC and DCI, and the field's other scores.
type tableScores struct {
	model.Metrics
	Field model.FieldScores `json:"field"`
}

// measureTable computes all scores. Where InfoMEC and DCI are refused, the others are computed all the same.
func measureTable(ctx context.Context, env environment, table metric.Table, extra metric.Extra, o metric.Options) (s tableScores, err error) {
	if err := metric.Measurable(table); err != nil {
		return s, err
	}
	bar := newProgress(env.err)
	defer bar.end()
	stage := func(name string) metric.Options {
		o.Progress = func(done, of float64) { bar.show(name, "", done, of) }
		return o
	}
	metrics, refused := metric.Measure(ctx, table, stage("measuring"))
	if refused != nil && ctx.Err() != nil {
		return s, refused
	}
	s.Field, err = metric.Field(ctx, table, extra, stage("measuring other metrics"))
	s.Metrics = metrics
	if refused != nil && err == nil {
		s.Metrics, s.Field.Problems["infomec"] = metric.Unmeasured(table), fmt.Sprintf("InfoMEC and DCI: %v", refused)
	}
	return s, err
}

// printField draws the field's scores as a table for a terminal, with what is wrong with any below.
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
	for _, name := range slices.Sorted(maps.Keys(f.Problems)) {
		fmt.Fprintln(out, oneLine(f.Problems[name]))
	}
	return nil
}
