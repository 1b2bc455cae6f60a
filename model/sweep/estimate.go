package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slotscope/model"
)

// Estimate is the amount of work of a plan before it begins.
type Estimate struct {
	Runs    int     // maximum number of runs, including those of choices
	Done    int     // runs already done
	Steps   int     // remaining training steps
	Seconds float64 // training time with runs in sequence, without evaluations
	Known   bool    // whether Seconds is known, because runs of the preset have been timed
	From    string  // source of Seconds: "12 earlier runs of tiny"
}

// Estimate estimates a plan's work from earlier runs, using the speed of runs of the same preset and, if there are any, of the same model.
// Without runs of the preset, the time is unknown.
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
		timed[cfg.Preset] = len(all.rates)
		e.Seconds += float64(steps*cfg.Batch) / cmp.Or(pace[cfg.Preset+" "+cfg.Model], all).images()
	}
	for _, s := range b.Items {
		if !s.Ended() {
			add(s.Config, max(0, s.Config.Steps-s.Run.Step))
		}
	}
	if b.Waiting > 0 && len(b.Items) > 0 { // assumes that runs after a choice are like those for it
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
