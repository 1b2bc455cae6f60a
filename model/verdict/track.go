package verdict

import (
	"slices"

	"slotscope/model"
)

// trackedSamples is the maximum number of samples of a series in a Track.
const trackedSamples = 2_000

// Track collects the rules' input during training in bounded memory: for long series, one sample per span of equally many steps, and the
// newest sample.
type Track struct {
	config model.Config
	series map[string]*tracked
}

type tracked struct {
	width  int // of a span, in steps
	kept   []model.Sample
	newest model.Sample
}

// NewTrack returns a Track of the series in Names and in conditions.
func NewTrack(c model.Config, conditions []model.Condition) *Track {
	t := &Track{config: c, series: map[string]*tracked{}}
	for _, name := range Names() {
		t.series[name] = &tracked{width: 1}
	}
	for _, c := range conditions {
		if c.Series != "" {
			t.series[c.Series] = &tracked{width: 1}
		}
	}
	return t
}

// Add adds the values measured at a later step.
func (t *Track) Add(step int, values map[string]float64) {
	for name, s := range t.series {
		if v, measured := values[name]; measured {
			s.add(model.Sample{Step: step, Value: v})
		}
	}
}

func (s *tracked) add(x model.Sample) {
	s.newest = x
	if n := len(s.kept); n > 0 && s.kept[n-1].Step/s.width == x.Step/s.width {
		return
	}
	if s.kept = append(s.kept, x); len(s.kept) > trackedSamples {
		s.width *= 2
		s.kept = slices.CompactFunc(s.kept, func(a, b model.Sample) bool { return a.Step/s.width == b.Step/s.width })
	}
}

// Progress returns the rules' current input.
func (t *Track) Progress() Progress {
	p := Progress{Config: t.config, State: model.Running, Series: map[string][]model.Sample{}}
	for name, s := range t.series {
		samples := slices.Clone(s.kept)
		if n := len(samples); n > 0 && samples[n-1].Step < s.newest.Step {
			samples = append(samples, s.newest)
		}
		if len(samples) > 0 {
			p.Series[name] = samples
		}
	}
	return p
}

// Has reports whether a series was measured.
func (t *Track) Has(name string) bool { return t.series[name] != nil && len(t.series[name].kept) > 0 }
