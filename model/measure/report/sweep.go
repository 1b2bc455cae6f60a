package report

import (
	"slices"

	"slotscope/model/sweep"
)

// OfSweep builds a report's input from a sweep: its parts in order, and the hyperparameters it selected. entry finds a run by id; runs
// that it does not find are omitted.
func OfSweep(b sweep.Board, entry func(id string) (Entry, bool)) Input {
	in := Input{Title: b.Plan.Name}
	for i, part := range b.Plan.Parts {
		p := Part{Name: part.Name, About: part.About}
		for _, s := range b.Items {
			if e, ok := entry(s.ID); ok && slices.Contains(s.Parts, i) {
				p.Entries = append(p.Entries, e)
			}
		}
		if len(p.Entries) > 0 {
			in.Parts = append(in.Parts, p)
		}
	}
	for _, c := range b.Choices {
		in.Selections = append(in.Selections, selectionOf(c, b.Items))
	}
	return in
}

func selectionOf(c sweep.Choice, items []sweep.Standing) Selection {
	s := Selection{Model: c.Model, Dataset: c.Dataset, Field: c.Axis.Field, Chosen: c.Chosen}
	infoM, _ := MetricByKey("infom")
	for _, value := range c.Axis.Values {
		o := Option{Value: value}
		var values []float64
		for _, item := range items {
			if item.Selecting && item.Value == value && item.Config.Model == c.Model && item.Config.Dataset == c.Dataset && item.Part == c.Part {
				o.Runs = append(o.Runs, item.ID)
				if item.Scores != nil {
					values = append(values, infoM.Of(*item.Scores))
				}
			}
		}
		o.InfoM = Summarise(values)
		s.Options = append(s.Options, o)
	}
	return s
}
