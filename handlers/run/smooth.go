package run

import (
	"context"
	"maps"
	"slices"

	"slotscope/model"
)

// smoothed returns the moving average of every series of page, computed over all points from the first and sampled at the page's steps; for
// columns, at the last step of each. Neither later points nor thinning to columns change an average.
func (h Runs) smoothed(ctx context.Context, id string, in pointQuery, page model.PointPage) (map[string][]model.Sample, error) {
	averages, width := map[string]*average{}, in.Width(page.Head)
	for name, samples := range page.Series {
		samples = lastOfEach(samples, width)
		averages[name] = &average{alpha: in.smooth, wanted: samples, out: make([]model.Sample, 0, len(samples))}
	}
	err := h.Service.Walk(ctx, id, slices.Collect(maps.Keys(page.Series)), page.Last, func(name string, block []model.Sample) {
		averages[name].over(block)
	})
	if err != nil {
		return nil, err
	}
	out := map[string][]model.Sample{}
	for name, a := range averages {
		out[name] = a.out
	}
	return out, nil
}

// lastOfEach returns the last sample of each span of width steps.
func lastOfEach(samples []model.Sample, width int) (last []model.Sample) {
	for i, s := range samples {
		if i == len(samples)-1 || samples[i+1].Step/width != s.Step/width {
			last = append(last, s)
		}
	}
	return last
}

// average is an exponential moving average, corrected for its bias towards 0 at the start:
//
//	m_n = α·m_{n−1} + (1−α)·x_n      y_n = m_n / (1 − αⁿ)
//
// Non-finite values are skipped. It is sampled only at the wanted steps, which ascend.
type average struct {
	alpha, m, weight float64
	wanted, out      []model.Sample
}

// over adds the next samples.
func (a *average) over(samples []model.Sample) {
	alpha, rest, m, weight, next := a.alpha, 1-a.alpha, a.m, a.weight, a.next()
	for i := range samples {
		if x := samples[i].Value; x-x == 0 { // finite
			m = alpha*m + rest*x
			weight = alpha*weight + rest // 1 − αⁿ
		}
		if samples[i].Step == next {
			a.wanted = a.wanted[1:]
			a.out = append(a.out, model.Sample{Step: next, Value: m / weight}) // NaN before the first finite value
			next = a.next()
		}
	}
	a.m, a.weight = m, weight
}

// next returns the next wanted step; 0 if none.
func (a *average) next() int {
	if len(a.wanted) == 0 {
		return 0
	}
	return a.wanted[0].Step
}
