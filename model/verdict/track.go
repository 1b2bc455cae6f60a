package verdict

import (
	"slices"

	"slotscope/model"
)

// trackedSamples is how many samples of a series a Track keeps at most.
const trackedSamples = 2_000

// Track gathers what the rules look at while a run trains, in bounded memory: of a long series one sample of each of equal spans of steps,
// and the newest.
type Track struct {
	config model.Config
	series map[string]*tracked
}

type tracked struct {
	width  int // of a span, in steps
	kept   []model.Sample
	newest model.Sample
}

// NewTrack gathers the series of Names and of conditions.
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

// Add takes what was measured at a later step.
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

// Progress is what the rules look at now.
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

// Has says whether a series was measured.
func (t *Track) Has(name string) bool { return t.series[name] != nil && len(t.series[name].kept) > 0 }
