package verdict

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"slotscope/model"
)

const (
	columns     = 400 // spans of steps that the rules read
	mostEarlier = 20  // earlier runs that a run is compared with
)

// Points reads the stored series of runs.
type Points interface {
	Points(ctx context.Context, id string, q model.PointQuery) (model.PointPage, error)
}

// Read returns the rules' input: the run's own series, and the newest values of the earlier runs in all with the same configuration.
// further are additional series, used by conditions.
func Read(ctx context.Context, points Points, run model.Run, all []model.Run, further ...string) (Progress, error) {
	page, err := points.Points(ctx, run.ID, model.PointQuery{Names: append(Names(), further...), Columns: columns})
	if err != nil {
		return Progress{}, err
	}
	p := Progress{Config: run.Config, State: run.State, Series: page.Series}
	for _, other := range Earlier(run, all) {
		if e := newestOf(ctx, points, other.ID, page.Last); len(e) > 0 {
			p.Earlier = append(p.Earlier, e)
		}
	}
	return p, nil
}

// Earlier returns the runs with the same configuration that were created before, newest first, at most mostEarlier.
func Earlier(run model.Run, all []model.Run) (earlier []model.Run) {
	for _, other := range all {
		if other.ID != run.ID && other.Created.Before(run.Created) && SameConfiguration(run.Config, other.Config) {
			earlier = append(earlier, other)
		}
	}
	slices.SortFunc(earlier, func(a, b model.Run) int { return b.Created.Compare(a.Created) })
	return earlier[:min(mostEarlier, len(earlier))]
}

// newestOf returns the newest values of Compared at or before a step; nil if they cannot be read, because a run may be deleted meanwhile.
func newestOf(ctx context.Context, points Points, id string, step int) map[string]float64 {
	if step == 0 {
		return nil
	}
	page, err := points.Points(ctx, id, model.PointQuery{Names: Compared(), Until: step, Columns: 1})
	if err != nil {
		return nil
	}
	values := map[string]float64{}
	for name, s := range page.Series {
		values[name] = s[len(s)-1].Value
	}
	return values
}

// Holds reports whether a condition holds now, by which rule, and why.
func (p Progress) Holds(c model.Condition) (rule, why string, ok bool) {
	if c.Verdict != "" {
		v := Judge(p)
		return v.Rule, v.Why, string(v.Kind) == c.Verdict
	}
	s, ok := newest(p.Series[c.Series])
	if !ok || !c.Passes(s) {
		return "", "", false
	}
	return c.String(), fmt.Sprintf("%s is %s at step %s (rule %s)", c.Series, strconv.FormatFloat(s.Value, 'g', 4, 64), count(s.Step), c), true
}
