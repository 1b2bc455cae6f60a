package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slotscope/model"
)

// Estimate is how much work a plan is before it begins.
type Estimate struct {
	Runs    int     // at most, those of choices included
	Done    int     // that are done already
	Steps   int     // left to train
	Seconds float64 // of training, one run after another; evaluations are not in it
	Known   bool    // whether runs of the preset have been timed
	From    string  // which: "12 earlier runs of tiny"
}

// Estimate holds a plan against earlier runs. The pace is that of runs of the same preset, of the same model where there are
// any; without any the time is not known.
func (b Board) Estimate(earlier []model.Run) Estimate {
	e := Estimate{Runs: b.Total(), Done: b.Count(Done)}
	pace := map[string]*speed{}
	for _, r := range earlier {
		if r.ImagesPerSecond <= 0 {
			continue
		}
		for _, key := range []string{r.Config.Preset, r.Config.Preset + " " + r.Config.Model} {
			if pace[key] == nil {
				pace[key] = &speed{}
			}
			pace[key].add(Standing{Found: Found{Run: r}})
		}
	}
	e.Known = true
	timed := map[string]int{} // runs, by preset
	add := func(cfg model.Config, steps int) {
		e.Steps += steps
		all := pace[cfg.Preset]
		if all == nil {
			e.Known = false
			return
		}
		timed[cfg.Preset] = all.runs
		e.Seconds += float64(steps*cfg.Batch) / cmp.Or(pace[cfg.Preset+" "+cfg.Model], all).images()
	}
	for _, s := range b.Items {
		if !s.Ended() {
			add(s.Config, max(0, s.Config.Steps-s.Run.Step))
		}
	}
	if b.Waiting > 0 && len(b.Items) > 0 { // the settings that a choice will make are as those it tries
		for range b.Waiting {
			add(b.Items[0].Config, b.Items[0].Config.Steps)
		}
	}
	if !e.Known || len(timed) == 0 {
		e.Known, e.Seconds = false, 0
		return e
	}
	var from []string
	for _, preset := range slices.Sorted(maps.Keys(timed)) {
		word := "runs"
		if timed[preset] == 1 {
			word = "run"
		}
		from = append(from, fmt.Sprintf("%d earlier %s of %s", timed[preset], word, preset))
	}
	e.From = strings.Join(from, ", ")
	return e
}
