package run

import (
	"context"
	"maps"
	"math"
	"slices"

	"slotscope/handlers"
	"slotscope/model"
)

// smoothed is every series of page as a moving average over all of its points from the first, read at the page's steps. The
// past never changes when points are added, and thinning to columns does not change the average.
func (h Runs) smoothed(ctx context.Context, id string, in pointQuery, page model.PointPage) (map[string][]model.Sample, error) {
	at := map[string]map[int]bool{}
	averages := map[string]*average{}
	for name, samples := range page.Series {
		at[name], averages[name] = map[int]bool{}, &average{alpha: in.smooth}
		for _, s := range samples {
			at[name][s.Step] = true
		}
	}
	out := map[string][]model.Sample{}
	names := slices.Collect(maps.Keys(page.Series))
	for since := 0; since < page.Last; {
		raw, err := h.Service.Points(ctx, id, model.PointQuery{Since: since, Until: page.Last, Names: names, Limit: handlers.RawSteps})
		if err != nil {
			return nil, err
		}
		if raw.Last <= since {
			break
		}
		for name, samples := range raw.Series {
			out[name] = averages[name].over(out[name], samples, at[name])
		}
		since = raw.Last
	}
	return out, nil
}

// average is an exponential moving average without its bias towards 0 at the start:
//
//	m_n = α·m_{n−1} + (1−α)·x_n      y_n = m_n / (1 − αⁿ)
//
// Values that are not finite are passed over.
type average struct {
	alpha, m, weight float64
}

func (a *average) next(x float64) float64 {
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		a.m = a.alpha*a.m + (1-a.alpha)*x
		a.weight = a.alpha*a.weight + (1 - a.alpha) // 1 − αⁿ
	}
	if a.weight == 0 {
		return math.NaN()
	}
	return a.m / a.weight
}

// over averages samples and appends those at the wanted steps to dst.
func (a *average) over(dst, samples []model.Sample, wanted map[int]bool) []model.Sample {
	for _, s := range samples {
		if y := a.next(s.Value); wanted[s.Step] {
			dst = append(dst, model.Sample{Step: s.Step, Value: y})
		}
	}
	return dst
}
