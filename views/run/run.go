// Package run renders the form that starts a run and the page of a run.
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
	PSNR        model.Sample // newest, in dB; the zero Sample before the first evaluation
	Images      int          // number of images in the dataset; 0 if the dataset is not available
	Pixels      int          // pixels per image times channels; 0 if the dataset is not available
	Overview    Overview
	Trouble     Trouble  // error of the last rejected dialog, if any
	Checkpoints []int    // steps, ascending
	Damaged     int      // number of steps with damaged points
	Samples     []int    // steps with reconstructions, ascending
	Series      []string // logged series of a run that another program trained, sorted; such a run has no other charts
	Log         string   // the last lines
	Now         time.Time
}

// Panel is one chart: its series, their meaning and their target.
type Panel struct {
	Title  string    `json:"title"`
	Unit   string    `json:"unit"`
	Series []string  `json:"series"`
	Labels []string  `json:"labels"`          // of the series, if there are several
	Target *float64  `json:"target"`          // dashed line; nil if none
	Aim    string    `json:"aim,omitempty"`   // label of the dashed line, e.g. "m"
	Group  string    `json:"-"`               // heading above the chart
	About  string    `json:"-"`               // one sentence
	Floor  *float64  `json:"floor,omitempty"` // upper bound of the axis minimum
	Idle   bool      `json:"-"`               // a term of weight 0, collapsed within its group
	Scale  []float64 `json:"scale,omitempty"` // factor of each series; nil if unscaled
}

// RunData is the initial data of the page's scripts.
type RunData struct {
	Run     model.Run `json:"run"`
	Panels  []Panel   `json:"panels"`
	Samples []int     `json:"samples"`
}

// testID identifies a panel's chart in tests and URLs by its first series, or as "weighted" if it is scaled.
func (p Panel) testID() string {
	if p.Scale != nil {
		return "chart-weighted"
	}
	return "chart-" + p.Series[0]
}

func (v RunView) data() RunData {
	return RunData{Run: v.Run, Panels: v.panels(), Samples: append([]int{}, v.Samples...)}
}

// mostReferences is the maximum number of earlier runs offered as reference curves.
const mostReferences = 12

// references returns the earlier runs offered as reference curves.
func (v RunView) references() []model.Run {
	return v.Overview.Earlier[:min(mostReferences, len(v.Overview.Earlier))]
}

// referenceText labels an earlier run with what distinguishes it: name, seed and steps.
func referenceText(r model.Run) string {
	return fmt.Sprintf("%s, seed %d, %s steps", views.RunName(r), r.Config.Seed, views.Count(r.Step))
}

// numbered is a panel with its index among all panels.
type numbered struct {
	Panel
	At int
}

// panelGroup is a heading with its charts; Idle has the charts of terms with weight 0.
type panelGroup struct {
	Title        string
	Panels, Idle []numbered
}

// groups returns the panels by heading; the main charts come first, without a heading.
func (v RunView) groups() []panelGroup {
	var all []panelGroup
	for i, p := range v.panels() {
		if len(all) == 0 || all[len(all)-1].Title != p.Group {
			all = append(all, panelGroup{Title: p.Group})
		}
		g := &all[len(all)-1]
		if p.Idle {
			g.Idle = append(g.Idle, numbered{p, i})
		} else {
			g.Panels = append(g.Panels, numbered{p, i})
		}
	}
	return all
}

// key is a group's name in URLs.
func (g panelGroup) key() string {
	return strings.Trim(strings.ToLower(strings.Join(strings.FieldsFunc(g.Title, func(r rune) bool { return r == ' ' || r == ',' }), "-")), "-")
}

func (v RunView) canStop() bool { return v.Run.State == model.Running || v.Run.State == model.Queued }

// external reports whether another program trained the run, so that Slotscope cannot resume or repeat it.
func (v RunView) external() bool { return v.Run.Config.Model == model.External }

// adopted reports whether another program holds the run's model and serves it to Slotscope.
func (v RunView) adopted() bool { return v.external() && v.Run.Checkpoint > 0 }

func (v RunView) canResume() bool { return v.Run.State.Ended() }

// resumeSteps returns the default of the resume dialog: the configured steps, or 1.5 times as many for a finished run.
func (v RunView) resumeSteps() string {
	if v.Trouble.Dialog == "resume" {
		return v.Trouble.Steps
	}
	if v.Run.State != model.Finished || v.Run.Step < v.Run.Config.Steps {
		return strconv.Itoa(v.Run.Config.Steps)
	}
	return strconv.Itoa(v.Run.Config.Steps + max(1, v.Run.Config.Steps/2))
}

// psnr formats the newest PSNR, or a dash.
func (v RunView) psnr() string {
	if v.PSNR.Step == 0 {
		return "–"
	}
	return views.Decibels(&v.PSNR.Value)
}

func (v RunView) psnrStep() string {
	if v.PSNR.Step == 0 {
		return ""
	}
	return "at step " + views.Count(v.PSNR.Step)
}

// hint is a caveat for readers of this run's curves; empty if none.
func (v RunView) hint() string {
	if v.Run.Config.Model != "betatcvae" || v.Run.Config.Batch < 1 {
		return ""
	}
	return fmt.Sprintf("The mutual information of β-TCVAE is estimated within a batch: it cannot exceed log(batch) = log(%d) = %.2f nats, regardless of the latents.",
		v.Run.Config.Batch, math.Log(float64(v.Run.Config.Batch)))
}

// pairs returns the dataset indices of the image pairs that are swapped at each checkpoint, as JSON.
func (v RunView) pairs() string {
	n := v.Images
	if n < 2 {
		return "[]"
	}
	return fmt.Sprintf("[[%d,%d],[%d,%d]]", 0, n/2, n/3, n-1)
}

// bestText names the score that chose the best checkpoint, with its value.
func (v RunView) bestText() string {
	return fmt.Sprintf("best %s: %s", bestTitles[v.Run.Config.BestBy], strconv.FormatFloat(v.Run.BestValue, 'g', 4, 64))
}

var bestTitles = map[string]string{"psnr": "PSNR in dB", "infom": "InfoM", "infoe": "InfoE", "infoc": "InfoC", "owned": "count of owned factors"}

// kept describes the checkpoint and points of an ended run.
func (v RunView) kept() string {
	switch {
	case !v.Run.State.Ended() || v.external():
		return ""
	case v.Run.Checkpoint > 0:
		return fmt.Sprintf("The checkpoint at step %s and the points up to step %s are saved.", views.Count(v.Run.Checkpoint), views.Count(v.Run.Step))
	case v.Run.Step > 0:
		return fmt.Sprintf("No checkpoint was saved; the points up to step %s are.", views.Count(v.Run.Step))
	}
	return "The run ended before its first step."
}

// reasonTone returns the CSS class of the notice with the reason.
func (v RunView) reasonTone() string {
	switch v.Run.State {
	case model.Failed:
		return "bad"
	case model.Interrupted:
		return "warn"
	}
	return ""
}

// tellsReason reports whether to show a reason: why the run ended, or what it is waiting for.
func (v RunView) tellsReason() bool {
	return v.Run.Reason != "" && (v.Run.State.Ended() || v.Run.State == model.Queued)
}

// noSamples explains why there are no reconstructions, or when the first appear.
func (v RunView) noSamples() string {
	if v.external() {
		return "No reconstructions were imported with this run."
	}
	switch {
	case !v.Run.State.Ended():
	case v.Run.Step == 0:
		return "No reconstructions: the run ended before its first step."
	default:
		return "No reconstructions: they were removed from the run's folder."
	}
	return "Reconstructions appear after step 1, then every " + views.Plural(v.Run.Config.SampleEvery, "step", "steps") + "."
}

// noCheckpoints explains why there are no checkpoints, or when the first is saved.
func (v RunView) noCheckpoints() string {
	if v.Run.State.Ended() {
		return "No checkpoints: the run ended before the first one, or their files were removed."
	}
	return "The first checkpoint is saved at step " + views.Count(v.Run.Config.CheckpointEvery) + ", or when the run is stopped."
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

// configRow is one row of the configuration table.
type configRow struct {
	Field   model.Field
	Value   string
	Default string
	Changed bool // differs from the preset's default
}

// configGroup is a heading with its rows.
type configGroup struct {
	Title string
	Rows  []configRow
}

func (v RunView) config() []configGroup {
	c := v.Run.Config
	def, err := model.Default(c.Model, c.Preset, c.Dataset)
	byGroup := map[string][]configRow{}
	for _, f := range model.FieldsOf(c.Model) {
		if v.external() && f.Get(c) == f.Get(model.Config{}) { // not logged by the other program
			continue
		}
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

// parameters formats a parameter count: 15.40 M.
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
