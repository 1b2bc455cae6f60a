package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"slotscope/model"
)

// Curve is one series over training: of one run, or the mean over a group's runs at each step with its 95% interval. It is computed
// from every point and thinned only afterwards.
type Curve struct {
	Label     string
	Steps     []int
	Mean      []float64      // NaN if no run has a finite value at that step
	Low, High []float64      // NaN if fewer than two runs have one
	N         []int          // number of runs at each step
	Points    int            // number of values averaged
	Ends      []model.Sample // the last finite value of each run
}

// CurvesOf averages series over all runs of a group, including runs excluded from its scores, up to the step they reached. alpha in
// [0, 1) first smooths each run by an exponential moving average, corrected for its bias at the start.
func (g Group) CurvesOf(names []string, alpha float64) (map[string]Curve, error) {
	members := map[string][][]model.Sample{}
	for _, e := range g.All() {
		samples, err := e.series(names, alpha)
		if err != nil {
			return nil, err
		}
		for name, s := range samples {
			members[name] = append(members[name], s)
		}
	}
	curves := map[string]Curve{}
	for name, m := range members {
		c := average(m)
		c.Label, c.Ends = g.Label, ends(m)
		curves[name] = c
	}
	return curves, nil
}

// Line is one series of one run, with all its values.
type Line struct {
	Entry
	Samples []model.Sample
}

// CurveOf is CurvesOf for a single series; it also returns the lines of the individual runs, in the order of All.
func (g Group) CurveOf(name string, alpha float64) (Curve, []Line, error) {
	var lines []Line
	var members [][]model.Sample
	for _, e := range g.All() {
		samples, err := e.series([]string{name}, alpha)
		if err != nil {
			return Curve{}, nil, err
		}
		lines, members = append(lines, Line{e, samples[name]}), append(members, samples[name])
	}
	c := average(members)
	c.Label, c.Ends = g.Label, ends(members)
	return c, lines, nil
}

// All returns the runs of the group, including the excluded ones.
func (g Group) All() []Entry {
	all := slices.Clone(g.Entries)
	for _, l := range g.Left {
		all = append(all, l.Entry)
	}
	return all
}

// series reads series of a run, smoothed: through Samples if the entry has it, else in one pass over its points.
func (e Entry) series(names []string, alpha float64) (map[string][]model.Sample, error) {
	samples := map[string][]model.Sample{}
	if e.Samples != nil {
		for _, name := range names {
			all, err := e.Samples(name)
			if err != nil {
				return nil, fmt.Errorf("points of run %s: %w", e.Run.ID, err)
			}
			var s smoother
			for i := 0; alpha > 0 && i < len(all); i++ {
				all[i].Value = s.next(all[i].Value, alpha)
			}
			if len(all) > 0 {
				samples[name] = all
			}
		}
		return samples, nil
	}
	averages := make([]smoother, len(names))
	err := e.points(names, func(p model.Point) error {
		for i, name := range names {
			if v, ok := p.Values[name]; ok {
				samples[name] = append(samples[name], model.Sample{Step: p.Step, Value: averages[i].next(v, alpha)})
			}
		}
		return nil
	})
	return samples, err
}

// Clock returns the mapping from steps to seconds of training: each step takes batch / (images per second), as measured. It excludes
// pauses. It is nil if the speed was not measured.
func (e Entry) Clock() (func(step int) float64, error) {
	const name = "images_per_second"
	read, err := e.series([]string{name}, 0)
	if err != nil {
		return nil, err
	}
	steps, at, pace := []int{0}, []float64{0}, 0.0
	for _, s := range read[name] {
		if !finite(s.Value) || s.Value <= 0 {
			continue
		}
		pace = float64(e.Run.Config.Batch) / s.Value
		last := len(steps) - 1
		steps, at = append(steps, s.Step), append(at, at[last]+float64(s.Step-steps[last])*pace)
	}
	if pace == 0 {
		return nil, nil
	}
	return func(step int) float64 {
		i, _ := slices.BinarySearch(steps, step)
		if i == len(steps) {
			return at[i-1] + float64(step-steps[i-1])*pace
		}
		if i == 0 {
			return 0
		}
		share := float64(step-steps[i-1]) / float64(steps[i]-steps[i-1])
		return at[i-1] + share*(at[i]-at[i-1])
	}, nil
}

// smoother is an exponential moving average, corrected for its bias towards 0 at the start. Values that are not finite do not change it.
//
//	m_n = α·m_{n−1} + (1−α)·x_n      y_n = m_n / (1 − αⁿ)
type smoother struct{ m, weight float64 }

func (s *smoother) next(v, alpha float64) float64 {
	if !finite(v) {
		return v
	}
	s.m = alpha*s.m + (1-alpha)*v
	s.weight = alpha*s.weight + (1 - alpha)
	return s.m / s.weight
}

// average walks several series at once, step by step.
func average(members [][]model.Sample) Curve {
	most := 0
	for _, m := range members {
		most = max(most, len(m))
	}
	c := Curve{Steps: make([]int, 0, most), N: make([]int, 0, most), Mean: make([]float64, 0, most), Low: make([]float64, 0, most), High: make([]float64, 0, most)}
	at := make([]int, len(members))
	values := make([]float64, 0, len(members))
	step := math.MaxInt
	for _, m := range members {
		if len(m) > 0 {
			step = min(step, m[0].Step)
		}
	}
	for step < math.MaxInt {
		values = values[:0]
		next := math.MaxInt
		for i, m := range members {
			if at[i] < len(m) && m[at[i]].Step == step {
				values = append(values, m[at[i]].Value)
				at[i]++
				c.Points++
			}
			if at[i] < len(m) {
				next = min(next, m[at[i]].Step)
			}
		}
		s := Summarise(values)
		c.Steps, c.N = append(c.Steps, step), append(c.N, s.N)
		c.Mean, c.Low, c.High = append(c.Mean, s.Mean), append(c.Low, s.Lo), append(c.High, s.Hi)
		step = next
	}
	return c
}

// ends returns the last finite value of each series that has one.
func ends(members [][]model.Sample) []model.Sample {
	var all []model.Sample
	for _, m := range members {
		for i := len(m) - 1; i >= 0; i-- {
			if finite(m[i].Value) {
				all = append(all, m[i])
				break
			}
		}
	}
	return all
}

// Thin keeps the minimum, the maximum and the last mean of each of n equal spans of steps, so that no peak is lost.
func (c Curve) Thin(n int) Curve {
	keep := kept(len(c.Steps), n, func(i int) (int, float64) { return c.Steps[i], c.Mean[i] })
	if keep == nil {
		return c
	}
	out := Curve{Label: c.Label, Points: c.Points, Ends: c.Ends}
	for _, i := range keep {
		out.Steps, out.N = append(out.Steps, c.Steps[i]), append(out.N, c.N[i])
		out.Mean, out.Low, out.High = append(out.Mean, c.Mean[i]), append(out.Low, c.Low[i]), append(out.High, c.High[i])
	}
	return out
}

// Thin is Curve.Thin for a single run.
func (l Line) Thin(n int) []model.Sample {
	keep := kept(len(l.Samples), n, func(i int) (int, float64) { return l.Samples[i].Step, l.Samples[i].Value })
	if keep == nil {
		return l.Samples
	}
	out := make([]model.Sample, len(keep))
	for i, k := range keep {
		out[i] = l.Samples[k]
	}
	return out
}

// kept returns the ascending indices of the minimum, the maximum and the last of total values in each of n equal spans of steps; nil if
// there are too few values to drop any.
func kept(total, n int, at func(i int) (step int, value float64)) (keep []int) {
	if total <= 3*n || n < 1 {
		return nil
	}
	first, _ := at(0)
	last, _ := at(total - 1)
	width := last - first + 1
	low, high, of, least, greatest := 0, 0, 0, math.NaN(), math.NaN()
	end := func(end int) {
		span := []int{low, high, end - 1}
		slices.Sort(span)
		keep = append(keep, slices.Compact(span)...)
	}
	for i := range total {
		step, v := at(i)
		if i == 0 || (step-first)*n >= (of+1)*width {
			if i > 0 {
				end(i)
			}
			of, low, high, least, greatest = (step-first)*n/width, i, i, v, v
			continue
		}
		if finite(v) && !(v >= least) {
			low, least = i, v
		}
		if finite(v) && !(v <= greatest) {
			high, greatest = i, v
		}
	}
	end(total)
	return keep
}

// pages calls yield with all series of a run, one span of steps at a time.
func (e Entry) pages(yield func(series map[string][]model.Sample) error) error {
	if e.Pages != nil {
		if err := e.Pages(yield); err != nil {
			return fmt.Errorf("points of run %s: %w", e.Run.ID, err)
		}
		return nil
	}
	series, n := map[string][]model.Sample{}, 0
	err := e.points(nil, func(p model.Point) error {
		for name, v := range p.Values {
			series[name] = append(series[name], model.Sample{Step: p.Step, Value: v})
		}
		if n++; n%pageSteps > 0 {
			return nil
		}
		page := series
		series = make(map[string][]model.Sample, len(page))
		return yield(page)
	})
	if err == nil && len(series) > 0 {
		err = yield(series)
	}
	return err
}

// pageSteps is the number of points in a page for entries without Pages.
const pageSteps = 1_000

// names returns the series names of a run.
func (e Entry) names() ([]string, error) {
	if e.Names != nil {
		names, err := e.Names()
		if err != nil {
			return nil, fmt.Errorf("points of run %s: %w", e.Run.ID, err)
		}
		return names, nil
	}
	has := map[string]bool{}
	err := e.points(nil, func(p model.Point) error {
		for name := range p.Values {
			has[name] = true
		}
		return nil
	})
	return slices.Collect(maps.Keys(has)), err
}

// points calls yield for the points of an entry; an entry without Points has none.
func (e Entry) points(names []string, yield func(model.Point) error) error {
	if e.Points == nil {
		return nil
	}
	if err := e.Points(names, yield); err != nil {
		return fmt.Errorf("points of run %s: %w", e.Run.ID, err)
	}
	return nil
}

// NoiseCurve is PSNR, or another value, of a group under noise: for each strength the mean over seeds with its interval.
type NoiseCurve struct {
	Label string
	SNR   []float64   // dB, descending; E_s/N_0 if the view uses energy
	PSNR  []Summary   // or the view's other value
	Seeds [][]float64 // values at each SNR, in the order of the group's runs
}

// noiseView is one chart of noise: where it is added, on which axis, and what is measured.
type noiseView struct {
	name, title string
	y           string
	energy      bool // E_s/N_0, else SNR per component
	of          func(model.Noise) []model.NoisePoint
	value       func(model.NoisePoint) float64
}

func psnrOf(p model.NoisePoint) float64 { return float64(p.PSNR.Value) }

func flippedOf(p model.NoisePoint) float64 { return meanOf(p.Flipped) }

func accuracyOf(p model.NoisePoint) float64 { return meanOf(p.Accuracy) }

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x)) // NaN if empty
}

func onZ(n model.Noise) []model.NoisePoint { return n.Curve }

func onBundle(n model.Noise) []model.NoisePoint { return n.BundleRaw }

func cleanedUp(n model.Noise) []model.NoisePoint { return n.BundleClean }

const psnrAxis = "PSNR, dB"

// axis is the label of the noise axis.
func (v noiseView) axis() string {
	if v.energy {
		return "E_s/N_0 per image, dB"
	}
	return "SNR per component, dB"
}

// noiseViews are the noise charts. Energy per image compares models whose latents differ in length.
var noiseViews = []noiseView{
	{"noise", "PSNR under noise on z", psnrAxis, false, onZ, psnrOf},
	{"noise-energy", "PSNR under noise on z, at equal energy", psnrAxis, true, onZ, psnrOf},
	{"noise-flips", "Codes changed by noise on z", "share of codes", true, onZ, flippedOf},
	{"noise-accuracy", "Probe accuracy on factors under noise on z", "accuracy, mean over factors", true, onZ, accuracyOf},
	{"noise-bundle", "PSNR under noise on ẑ, without cleanup", psnrAxis, true, onBundle, psnrOf},
	{"noise-cleaned", "PSNR under noise on ẑ, with cleanup", psnrAxis, true, cleanedUp, psnrOf},
}

// Noise returns the PSNR of the group under noise on z, by SNR over seeds; empty if not measured.
func (g Group) Noise() NoiseCurve { return g.noiseOf(noiseViews[0]) }

func (g Group) noiseOf(v noiseView) NoiseCurve {
	byLevel := map[float64][]float64{}
	for _, e := range g.Entries {
		if e.Scores.Noise == nil {
			continue
		}
		for _, p := range v.of(*e.Scores.Noise) {
			at := p.SNR
			if v.energy {
				if e.Scores.Noise.Components == 0 {
					continue // scored before energy was recorded
				}
				at = p.EsN0
			}
			if y := v.value(p); finite(y) {
				byLevel[at] = append(byLevel[at], y)
			}
		}
	}
	c := NoiseCurve{Label: g.Label}
	for snr := range byLevel {
		c.SNR = append(c.SNR, snr)
	}
	slices.Sort(c.SNR)
	slices.Reverse(c.SNR)
	for _, snr := range c.SNR {
		c.PSNR, c.Seeds = append(c.PSNR, Summarise(byLevel[snr])), append(c.Seeds, byLevel[snr])
	}
	return c
}
