// Package run draws the list of runs, the form that starts one, and the page of a run.
package run

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/views"
)

// RunView is the page of one run.
type RunView struct {
	Run         model.Run
	PSNR        *float64 // newest, in dB; nil before the first evaluation
	Checkpoints []int    // steps, ascending
	Samples     []int    // steps that have reconstructions, ascending
	Log         string   // the last lines
	Now         time.Time
}

// Panel is one chart: which series it draws, what they mean, where they should go.
type Panel struct {
	Title   string   `json:"title"`
	Unit    string   `json:"unit"`
	Series  []string `json:"series"`
	Labels  []string `json:"labels"`          // of the series where there are several
	Target  *float64 `json:"target"`          // a dashed line; nil for none
	Aim     string   `json:"aim,omitempty"`   // what the dashed line is, as in "m"
	Group   string   `json:"-"`               // heading that it stands under
	About   string   `json:"-"`               // one sentence
	Decides bool     `json:"-"`               // large, above the others
	Floor   *float64 `json:"floor,omitempty"` // the axis begins there at most
}

// RunData is what the page's modules need to know at the start.
type RunData struct {
	Run     model.Run `json:"run"`
	Panels  []Panel   `json:"panels"`
	Samples []int     `json:"samples"`
}

func (v RunView) data() RunData {
	return RunData{Run: v.Run, Panels: v.panels(), Samples: append([]int{}, v.Samples...)}
}

// panelGroup is a heading with its charts; First is the number of the first among all.
type panelGroup struct {
	Title  string
	First  int
	Panels []Panel
}

func (v RunView) groups() []panelGroup {
	var all []panelGroup
	for i, p := range v.panels() {
		if len(all) == 0 || all[len(all)-1].Title != p.Group {
			all = append(all, panelGroup{Title: p.Group, First: i})
		}
		last := &all[len(all)-1]
		last.Panels = append(last.Panels, p)
	}
	return all
}

func (v RunView) canStop() bool   { return v.Run.State == model.Running || v.Run.State == model.Queued }
func (v RunView) canResume() bool { return v.Run.State.Ended() }

// resumeSteps proposes how far to go: to the end as configured, or for a finished run half as far again.
func (v RunView) resumeSteps() string {
	if v.Run.State != model.Finished {
		return strconv.Itoa(v.Run.Config.Steps)
	}
	return strconv.Itoa(v.Run.Config.Steps + max(1, v.Run.Config.Steps/2))
}

// kept says what a stop, crash or failure left behind.
func (v RunView) kept() string {
	switch {
	case !v.Run.State.Ended():
		return ""
	case v.Run.Checkpoint > 0:
		return fmt.Sprintf("The checkpoint of step %s and every measured step up to %s are kept.", views.Count(v.Run.Checkpoint), views.Count(v.Run.Step))
	case v.Run.Step > 0:
		return fmt.Sprintf("No checkpoint had been saved; the series up to step %s is kept.", views.Count(v.Run.Step))
	}
	return "It had not made its first step."
}

// reasonTone is the look of the notice that says why the run ended.
func (v RunView) reasonTone() string {
	switch v.Run.State {
	case model.Failed:
		return "bad"
	case model.Interrupted:
		return "warn"
	}
	return ""
}

// tellsReason says whether there is a reason to show: why the run ended, or what it waits for.
func (v RunView) tellsReason() bool {
	return v.Run.Reason != "" && (v.Run.State.Ended() || v.Run.State == model.Queued)
}

// noSamples says when the first reconstructions come, or that none did.
func (v RunView) noSamples() string {
	if v.Run.State.Ended() {
		return "The run ended before its first reconstructions, which are made every " + views.Plural(v.Run.Config.SampleEvery, "step", "steps") + "."
	}
	return "Images above, what the model makes of them below: the first sheet comes at step " + views.Count(v.Run.Config.SampleEvery) + "."
}

func (v RunView) newestSample() int {
	if len(v.Samples) == 0 {
		return 0
	}
	return v.Samples[len(v.Samples)-1]
}

func (v RunView) sampleURL() string {
	return fmt.Sprintf("/api/runs/%s/samples/%d.png?a=%d", v.Run.ID, v.newestSample(), v.Run.Attempt)
}

// configRow is one line of the configuration table.
type configRow struct {
	Field   model.Field
	Value   string
	Default string
	Changed bool // differs from the preset's default
}

// configGroup is a heading with its lines.
type configGroup struct {
	Title string
	Rows  []configRow
}

func (v RunView) config() []configGroup {
	c := v.Run.Config
	def, err := model.Default(c.Model, c.Preset, c.Dataset)
	byGroup := map[string][]configRow{}
	for _, f := range model.FieldsOf(c.Model) {
		row := configRow{Field: f, Value: f.Get(c)}
		if err == nil && f.Name != "engine" && f.Name != "seed" {
			row.Default = f.Get(def)
			row.Changed = row.Default != row.Value
		}
		byGroup[f.Group] = append(byGroup[f.Group], row)
	}
	var all []configGroup
	for _, g := range model.Groups {
		if len(byGroup[g]) > 0 {
			all = append(all, configGroup{groupTexts[g][0], byGroup[g]})
		}
	}
	return all
}

// parameters writes a count of learned numbers: 15.4 M.
func parameters(n int) string {
	switch {
	case n <= 0:
		return "–"
	case n < 1000:
		return strconv.Itoa(n)
	case n < 1e6:
		return strings.TrimSuffix(strconv.FormatFloat(math.Round(float64(n)/100)/10, 'f', 1, 64), ".0") + " k"
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) + " M"
}
